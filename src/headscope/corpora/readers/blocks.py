"""Blocks of lines between blank lines, with their comments: the layout that all CoNLL formats share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from headscope.corpora.files import Line


class Comment(NamedTuple):
    """A line `# key = value`; `value` is empty if there is no equals sign. `text` is all of it but the #."""

    line: int
    key: str
    value: str
    text: str


@dataclass
class LineBlock:
    """The comments and rows of one sentence in the file. Either may be empty."""

    comments: list[Comment] = field(default_factory=list)
    rows: list[Line] = field(default_factory=list)

    @property
    def line(self) -> int:
        """The line where the block begins."""
        return self.comments[0].line if self.comments else self.rows[0].number

    def comment(self, *keys: str) -> str | None:
        """The first non-empty value of a comment with one of these keys."""
        return next((comment.value for comment in self.comments if comment.key in keys and comment.value), None)


def blocks(lines: Iterable[Line]) -> Iterator[LineBlock]:
    """The blocks of a file, without the blank lines; the last one needs none after it."""
    block = LineBlock()
    for line in lines:
        text = line.text
        if not text or text.isspace():
            if block.comments or block.rows:
                yield block
            block = LineBlock()
        elif text[0] == "#":
            key, _, value = text[1:].partition("=")
            block.comments.append(Comment(line.number, key.strip(), value.strip(), text[1:].strip()))
            if line.invalid:
                # Among the rows it makes the sentence invalid, but a boundary that it marks is kept.
                block.rows.append(line)
        else:
            block.rows.append(line)
    if block.comments or block.rows:
        yield block
