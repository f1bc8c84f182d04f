"""Bracketed constituency trees, such as `(S (NP (PRP she)) (VP (VBZ sleeps)))`, and the head of a span in them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from headscope.corpora.resolution.head_rules import head_child

_PIECE = re.compile(r"\(\s*([^\s()]*)|\)|[^\s()]+")
_NOMINAL = frozenset({"NN", "NNS", "NNP", "NNPS", "NP", "NX", "NML", "NAC", "PRP", "WP", "CD", "QP"})
_CONJUNCTIONS = frozenset({"CC", "CONJP"})
_COORDINATES = frozenset({"NP", "NX", "NML", "NAC", "WHNP", "UCP"})  # nodes in which nouns can be coordinated
_PUNCTUATION = frozenset({",", ":", "``", "''", "."})


@dataclass
class PhraseNode:
    """A constituent over the words [start, end) of its sentence; a tag over one word has no children."""

    label: str
    start: int
    end: int = -1
    children: list[PhraseNode] = field(default_factory=list)

    def within(self, start: int, end: int) -> list[PhraseNode]:
        """The children that share words with the span."""
        return [child for child in self.children if child.start < end and child.end > start]


@lru_cache(maxsize=256)  # the mentions of a sentence ask one after the other, and so do measures
def parse_tree(text: str, size: int) -> PhraseNode | None:
    """The tree of a sentence of `size` words; None if the brackets do not balance or hold another number of words."""
    top = PhraseNode("", 0)
    path = [top]
    words, in_word = 0, False
    for piece in _PIECE.finditer(text):
        if piece[0].startswith("("):
            path[-1].children.append(node := PhraseNode(_category(piece[1]), words))
            path.append(node)
            in_word = False
        elif piece[0] == ")":
            if len(path) == 1:
                return None
            path.pop().end = words
            in_word = False
        elif not in_word:  # a word with a space in it is one word all the same
            if path[-1].children or len(path) == 1:
                return None
            words, in_word = words + 1, True
    top.end = words
    return top if len(path) == 1 and words == size and top.children else None


def head_in_tree(tree: PhraseNode, start: int, end: int) -> int:
    """The word that heads the smallest constituent around a span, or as much of it as lies in the span."""
    *_, last = _path(tree, start, end)
    return max(last.start, start)


def coordinated_in_tree(tree: PhraseNode, start: int, end: int) -> bool:
    """Whether the span is nouns joined by a conjunction: on the way from its constituent to its head."""
    return any(node.label in _COORDINATES and _joins(node.within(start, end)) for node in _path(tree, start, end))


def _path(tree: PhraseNode, start: int, end: int) -> Iterator[PhraseNode]:
    """The nodes from the top to the head of a span; above the span's own constituent there is one child to follow."""
    node: PhraseNode | None = tree
    while node is not None:
        yield node
        inside = node.within(start, end)
        node = head_child(node.label, inside) if inside else None


def _joins(children: list[PhraseNode]) -> bool:
    labels = [child.label for child in children if child.label not in _PUNCTUATION]
    for place, label in enumerate(labels):
        if label in _CONJUNCTIONS and place and labels[place - 1] in _NOMINAL and _NOMINAL.intersection(labels[place + 1 :]):
            return True
    return False


def _category(label: str) -> str:
    """A label without its function: `NP-SBJ-1` is an NP; `-LRB-` is itself."""
    return label if label.startswith("-") else re.split("[-=|]", label)[0]
