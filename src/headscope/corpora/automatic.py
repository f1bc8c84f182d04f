"""Automatic annotation, made by a parser and not corrected: how CoNLL-U files and results mark it.

Documents, files and results without a mark are assumed to be annotated by people, or not annotated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from headscope.corpora.files import lines
from headscope.corpora.readers.blocks import LineBlock, blocks

KEY = "annotation"  # of the comment in CoNLL-U files: # annotation = automatic; spaCy 3.8.18; en_core_web_sm 3.8.0
_WORD = "automatic"
_PARTLY = f"partly {_WORD}"
_UNNAMED = "a parser without a name"
SOUGHT = KEY.encode()  # bytes that a file with such a comment must contain


def mark(parser: str) -> str:
    """The value of the comment that marks what `parser` made."""
    return f"{_WORD}; {parser}"


def parser_of(value: str) -> str | None:
    """The parser named by such a value; None for any other value."""
    word, _, parser = value.partition(";")
    return parser.strip() or _UNNAMED if word.strip().casefold() == _WORD else None


def summed_up(parsers: Iterable[str | None]) -> str | None:
    """A summary of the parsers of documents: `automatic; spaCy 3.8.18; …`, `partly automatic; …`, or None."""
    different = dict.fromkeys(parsers)
    named = sorted(parser for parser in different if parser is not None)
    return f"{_PARTLY if None in different else _WORD}; {' / '.join(named)}" if named else None


def joined(summaries: Iterable[str | None]) -> str | None:
    """One summary from the summaries of several corpora."""
    parsers: list[str | None] = []
    for summary in summaries:
        word, _, names = (summary or "").partition("; ")
        parsers += names.split(" / ") if names else []
        parsers += [None] if word != _WORD else []
    return summed_up(parsers)


def short(summary: str) -> str:
    """The form in signatures: `automatic(spaCy-3.8.18)`."""
    word, _, names = summary.partition("; ")
    parsers = dict.fromkeys(name.partition(";")[0].strip().replace(" ", "-").replace("|", "-") for name in names.split(" / "))
    return f"{word.replace(' ', '-')}({'+'.join(parsers)})"


def sentence(summary: str) -> str:
    """The sentence with which findings begin."""
    word, _, names = summary.partition("; ")
    some = "Some of the annotation" if word == _PARTLY else "The annotation"
    return (
        f"{some} is automatic: sentences, words, tags and trees are what a parser found ({names.replace('; ', ', ')}), its mistakes "
        "included, and not what people annotated."
    )


class Marks:
    """Tracks, while a file is read, where documents begin and which parser annotated each.

    A mark belongs to the document in which it stands, most of all at its head. One before the first `# newdoc` holds
    from there on.
    """

    def __init__(self) -> None:
        self.declared = False  # the file has named a document: sentences belong to it
        self.parser: str | None = None  # of the document that is being read
        self._standing: str | None = None

    def take(self, block: LineBlock) -> bool:
        """Process the comments of a block. Return whether a document begins with it."""
        named = any(comment.key in ("newdoc", "newdoc id") for comment in block.comments)
        begins = named or (bool(block.rows) and not self.declared)
        self.declared = self.declared or named
        if begins:
            self.parser = self._standing
        if (value := block.comment(KEY)) is not None:
            self.parser = parser_of(value)
            if not self.declared:
                self._standing = self.parser
        return begins


def marks(path: Path) -> Iterator[str | None]:
    """The parser of every document of a file, or None, without reading its sentences."""
    state, parser, begun = Marks(), None, False
    for block in blocks(lines(path)):
        begins = state.take(block)
        if begins and begun:
            yield parser
        parser, begun = state.parser, begun or begins
    if begun:
        yield parser
