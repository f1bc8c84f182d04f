"""A sentence in the form that rules check: its comments, its rows, and the tree of its words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from headscope.corpora.readers.blocks import Comment, LineBlock
from headscope.corpora.readers.conllu_rows import Row
from headscope.corpora.source import natural

NEW_DOCUMENT = ("newdoc", "newdoc id")
NEW_PARAGRAPH = ("newpar", "newpar id")


@dataclass
class CheckedSentence:
    """The readable rows of a block. `whole` is False if rows could not be read or their numbers are out of order."""

    block: LineBlock
    rows: Sequence[Row]
    whole: bool = True

    @property
    def line(self) -> int:
        """The line where it begins."""
        return self.block.line

    @cached_property
    def words(self) -> list[Row]:
        """The rows that are neither multi-word tokens nor empty nodes."""
        return [row for row in self.rows if not row.range and row.node is None]

    @cached_property
    def nodes(self) -> list[Row]:
        """The rows that are not multi-word tokens."""
        return [row for row in self.rows if not row.range]

    @property
    def new_document(self) -> bool:
        """Whether a document begins here."""
        return bool(self.comments(*NEW_DOCUMENT))

    def comments(self, *keys: str) -> list[Comment]:
        """The comments with one of these keys."""
        return [comment for comment in self.block.comments if comment.key in keys]

    def tokens(self) -> Iterator[Row]:
        """The written tokens: multi-word tokens in place of their words."""
        last = 0
        for row in self.rows:
            if row.range:
                last = row.range[1]
            elif row.node is not None or (natural(row.id) or 0) <= last:
                continue
            yield row

    def surface(self) -> str:
        """The text of the sentence, from its tokens and SpaceAfter."""
        return "".join(row.form + " " * row.space_after for row in self.tokens()).strip()


@dataclass(eq=False, slots=True)
class CheckedNode:
    """A word in its tree. `relation` is without the subtype."""

    row: Row
    number: int
    head: int
    relation: str
    features: dict[str, str]
    parent: CheckedNode | None = None
    children: list[CheckedNode] = field(default_factory=list)

    @property
    def line(self) -> int:
        """The line of the word in the file."""
        return self.row.line

    @property
    def upos(self) -> str:
        """The part of speech in its context: that of the whole expression if it heads one."""
        return self.features.get("ExtPos", self.row.upos)

    def __str__(self) -> str:
        return f"{self.row.form!r} ({self.row.upos}, {self.row.relation})"

    def dependents(self, relation: str) -> list[CheckedNode]:
        """The children with this relation."""
        return [child for child in self.children if child.relation == relation]

    def ancestors(self) -> Iterator[CheckedNode]:
        """The parent, its parent, and so on."""
        node = self.parent
        while node is not None:
            yield node
            node = node.parent


def gap(node: CheckedNode, nodes: Sequence[CheckedNode]) -> list[CheckedNode]:
    """The words between a node and its parent that are not below the parent; none if it is projective."""
    between = nodes[min(node.number, node.head) : max(node.number, node.head) - 1] if node.head else ()
    return [word for word in between if all(above is not node.parent for above in word.ancestors())]


def tree(words: Sequence[Row]) -> list[CheckedNode]:
    """The words as nodes, in text order. Their heads must be numbers of words without cycles."""
    nodes = [
        CheckedNode(row, number, int(row.head), row.relation.partition(":")[0], features(row.feats))
        for number, row in enumerate(words, start=1)
    ]
    for node in nodes:
        if node.head:
            node.parent = nodes[node.head - 1]
            node.parent.children.append(node)
    return nodes


def features(column: str) -> dict[str, str]:
    """The features of a FEATS column."""
    if column == "_":
        return {}
    return dict(item.partition("=")[::2] for item in column.split("|"))
