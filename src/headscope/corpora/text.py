"""Plain text without annotation: running text with paragraphs, or one sentence a line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from headscope.core.document import Document, Sentence, Word
from headscope.corpora.files import Line
from headscope.corpora.source import Flaw, Source, sound

_OPENING = "\"'“‘«([{"
_CLOSING = "\"'”’»)]}"


def read_text(source: Source) -> Iterator[Document]:
    """A file as one document; blank lines separate its paragraphs, and the lines of a paragraph are joined."""
    sentences: list[Sentence] = []
    paragraphs = 0
    for lines in _groups(source.lines()):
        try:
            text = "\n".join(map(sound, lines))
        except Flaw as flaw:
            source.report(flaw, "paragraphs")
            continue
        sentences += split_paragraph(text, paragraphs)
        paragraphs += 1
    if sentences:
        yield Document(source.name, tuple(sentences))


def read_lines(source: Source) -> Iterator[Document]:
    """One sentence a line, a blank line between documents: the input of Clark et al. (2019)."""
    for number, lines in enumerate(_groups(source.lines()), start=1):
        sentences = []
        for line in lines:
            try:
                sentences.append(_sentence(sound(line).split(), 0))
            except Flaw as flaw:
                source.report(flaw)
        if sentences:
            yield Document(f"{source.name}#{number}", tuple(sentences))


def text_paragraphs(text: str) -> Iterator[Sentence]:
    """The sentences of a text whose paragraphs are separated by blank lines."""
    numbered = (Line(number, line) for number, line in enumerate(text.split("\n"), start=1))
    for paragraph, lines in enumerate(_groups(numbered)):
        yield from split_paragraph("\n".join(line.text for line in lines), paragraph)


def split_paragraph(text: str, paragraph: int) -> Iterator[Sentence]:
    """The sentences of a paragraph, of words as white space separates them.

    A sentence ends at a word in . ! or ? (quotes and brackets after it aside) if the next word begins with an upper-case
    letter. So `Mr. Smith` is cut in two: enough for cutting text into pieces to feed to a model, not for linguistics.
    """
    words: list[str] = []
    for word in text.split():
        if words and words[-1].rstrip(_CLOSING).endswith((".", "!", "?")) and word.lstrip(_OPENING)[:1].isupper():
            yield _sentence(words, paragraph)
            words = []
        words.append(word)
    if words:
        yield _sentence(words, paragraph)


def _groups(lines: Iterable[Line]) -> Iterator[list[Line]]:
    return (list(group) for filled, group in groupby(lines, key=lambda line: bool(line.text.strip())) if filled)


def _sentence(words: Iterable[str], paragraph: int) -> Sentence:
    return Sentence(tuple(map(Word, words)), paragraph=paragraph)
