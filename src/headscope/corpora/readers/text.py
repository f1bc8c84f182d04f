"""Plain text without annotation: running text with paragraphs, or one sentence per line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from headscope.core.document import Document, Sentence, Word
from headscope.corpora.files import Line
from headscope.corpora.source import Flaw, Source, sound

LONGEST = 1 << 20  # characters of a document (a long novel has a million)
CUT = f"documents made of a text longer than {LONGEST:,} characters, which was cut between paragraphs or sentences"
_OPENING = "\"'“‘«([{"
_CLOSING = "\"'”’»)]}"
_LAST = frozenset(f".!?{_CLOSING}")  # the last characters of a word that can end a sentence
_SHORT = 32  # characters of a word that is cached


class _Stretch(NamedTuple):
    """Sentences that stay in one document; `size` is in characters, `begins` tells whether they begin a paragraph."""

    line: int
    size: int
    begins: bool
    sentences: list[tuple[Word, ...]]


def read_text(source: Source, longest: float = LONGEST) -> Iterator[Document]:
    """A file as one document or, if it has more than `longest` characters, as several, so that any file is read in
    bounded memory.

    Blank lines separate paragraphs, and the lines of a paragraph are joined.
    """
    return _documents(source, source.name, _stretches(source, longest), longest)


def read_lines(source: Source, longest: float = LONGEST) -> Iterator[Document]:
    """One sentence per line, a blank line between documents, of which long ones are cut: the input of Clark et al.
    (2019).
    """
    for number, lines in enumerate(_groups(source.lines()), start=1):
        yield from _documents(source, f"{source.name}#{number}", _sentences(source, lines), longest)


def _documents(source: Source, id: str, stretches: Iterable[_Stretch], longest: float) -> Iterator[Document]:
    """One document with the id `id`, or several with ids `id#1`, `id#2` ... if it would be too long."""
    held: list[Sentence] = []
    size = paragraph = parts = 0
    for stretch in stretches:
        if held and size + stretch.size > longest:
            parts += 1
            source.note(CUT, stretch.line, read=True)
            yield Document(f"{id}#{parts}", tuple(held))
            held, size, paragraph = [], 0, 0
        paragraph += bool(held) and stretch.begins
        held += (Sentence(words, paragraph=paragraph) for words in stretch.sentences)
        size += stretch.size
    if parts:
        source.note(CUT, stretch.line, read=True)
    if held:
        yield Document(f"{id}#{parts + 1}" if parts else id, tuple(held))


def _stretches(source: Source, longest: float) -> Iterator[_Stretch]:
    """The paragraphs of a file; paragraphs that are too long are cut between sentences."""
    for lines in _groups(source.lines(pieces=True)):
        begins, rest = True, ""
        for block, last in _bounded(lines, longest):
            try:
                text = rest + "\n".join(map(sound, block))
            except Flaw as flaw:
                source.report(flaw, "paragraphs")
                begins, rest = True, ""
                continue
            sentences = list(_split(text))
            rest = "" if last or len(sentences) == 1 else " ".join(word.form for word in sentences.pop()) + "\n"
            yield _Stretch(block[0].number, len(text), begins, sentences)
            begins = False


def _bounded(lines: Iterable[Line], longest: float) -> Iterator[tuple[list[Line], bool]]:
    """Lines in blocks of at most this many characters, and whether a block is the last."""
    block: list[Line] = []
    size = 0
    for line in lines:
        if block and size + len(line.text) > longest:
            yield block, False
            block, size = [], 0
        block.append(line)
        size += len(line.text)
    yield block, True


def _sentences(source: Source, lines: Iterable[Line]) -> Iterator[_Stretch]:
    """Each line as a sentence."""
    for line in lines:
        try:
            yield _Stretch(line.number, len(line.text), False, [plain_words(sound(line))])
        except Flaw as flaw:
            source.report(flaw)


def text_paragraphs(text: str) -> Iterator[Sentence]:
    """The sentences of a text whose paragraphs are separated by blank lines."""
    numbered = (Line(number, line) for number, line in enumerate(text.split("\n"), start=1))
    for paragraph, lines in enumerate(_groups(numbered)):
        yield from split_paragraph("\n".join(line.text for line in lines), paragraph)


def split_paragraph(text: str, paragraph: int) -> Iterator[Sentence]:
    """The sentences of a paragraph, of words as white space separates them.

    A sentence ends at a word in . ! or ? (quotes and brackets after it aside) if the next word begins with an
    upper-case letter. So `Mr. Smith` is split in two. This suffices to cut text into inputs for a model, but not for
    linguistics.
    """
    return (Sentence(words, paragraph=paragraph) for words in _split(text))


def plain_words(text: str) -> tuple[Word, ...]:
    """Words separated by white space. Equal words are one object: a text of a million words has some ten thousand
    different ones.
    """
    return _words(text.split())


def _words(forms: list[str]) -> tuple[Word, ...]:
    if max(map(len, forms), default=0) <= _SHORT:
        return tuple(map(_known, forms))
    return tuple(_known(form) if len(form) <= _SHORT else Word(form) for form in forms)


_known = lru_cache(maxsize=1 << 16)(Word)


def _split(text: str) -> Iterator[tuple[Word, ...]]:
    forms = text.split()
    words = _words(forms)
    begin = 0
    for place in [place for place, form in enumerate(forms, start=1) if form[-1] in _LAST]:
        ends = forms[place - 1].rstrip(_CLOSING).endswith((".", "!", "?"))
        if ends and place < len(forms) and forms[place].lstrip(_OPENING)[:1].isupper():
            yield words[begin:place]
            begin = place
    if words:
        yield words[begin:]


def _groups(lines: Iterable[Line]) -> Iterator[Iterator[Line]]:
    """Lines between blank lines; each group must be consumed before the next."""
    return (group for filled, group in groupby(lines, key=lambda line: bool(line.text.strip())) if filled)
