"""Which documents of a CoNLL-U file a parser annotated, by the comments in it: `# annotation = automatic; spaCy
3.8.18; …`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from headscope.core.automatic import KEY, parser_of
from headscope.corpora.files import lines
from headscope.corpora.readers.blocks import LineBlock, blocks

SOUGHT = KEY.encode()  # what a file must hold if it has such a comment


class Marks:
    """Where documents begin while a file is read, and the parser of each.

    A mark belongs to the document in which it stands, most of all at its head. One before the first `# newdoc` holds
    from there on.
    """

    def __init__(self) -> None:
        self.declared = False  # the file has named a document: sentences belong to it
        self.parser: str | None = None  # of the document that is being read
        self._standing: str | None = None

    def take(self, block: LineBlock) -> bool:
        """Take in the comments of a block, and say whether a document begins with it: where one is named or, if none
        is, at a sentence.
        """
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
    """The parser of every document of a file, or None, found without reading its sentences."""
    found, parser, begun = Marks(), None, False
    for block in blocks(lines(path)):
        begins = found.take(block)
        if begins and begun:
            yield parser
        parser, begun = found.parser, begun or begins
    if begun:
        yield parser
