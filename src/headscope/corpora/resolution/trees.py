"""Bracketed constituency trees, such as `(S (NP (PRP she)) (VP (VBZ sleeps)))`, and the head of a span in them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, Protocol, TypeVar

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


@lru_cache(maxsize=256)  # cached, since all mentions of a sentence and several measures need it
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
        elif not in_word:  # a word that contains a space is still one word
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


class Labelled(Protocol):
    """Anything with a category."""

    label: str


Child = TypeVar("Child", bound=Labelled)


class _Search(NamedTuple):
    """Look from the `left` or the `right` for one of these labels; `ranked`: for the first label, then the next."""

    side: str
    labels: tuple[str, ...]
    ranked: bool = False


def _from(side: str, labels: str) -> _Search:
    return _Search(side, tuple(labels.split()))


def _ranked(side: str, labels: str) -> _Search:
    return _Search(side, tuple(labels.split()), ranked=True)


_VERBS = "VBD VBN VBZ VB VBG VBP MD TO"
_NOUN_PHRASE = (
    _from("right", "NN NNS NNP NNPS NX NML"),
    _from("left", "NP PRP WP WHNP EX"),
    _from("right", "$ ADJP PRN NAC"),
    _from("right", "CD QP"),
    _from("right", "JJ JJR JJS RB VBG VBN"),
    _from("right", "DT WDT PRP$ WP$ FW SYM"),
)
_CLAUSE = (_ranked("left", "VP S SINV SQ SBAR SBARQ ADJP UCP NP FRAG PP"),)
_RULES: dict[str, tuple[_Search, ...]] = {
    **dict.fromkeys(("NP", "NX", "NML", "NAC", "WHNP", "X"), _NOUN_PHRASE),
    **dict.fromkeys(("TOP", "ROOT", "S1", "", "S", "SINV", "FRAG", "PRN", "RRC"), _CLAUSE),
    **dict.fromkeys(("SQ", "SBARQ"), (_ranked("left", f"VP SQ S SINV {_VERBS}"),)),
    "SBAR": (_ranked("left", "S SQ SINV SBAR FRAG VP WHNP WHPP WHADVP WHADJP IN DT"),),
    "VP": (_from("left", "VP"), _from("left", _VERBS), _ranked("left", "ADJP NN NNS NP PP")),
    "ADJP": (_ranked("left", "JJ JJR JJS VBN VBG NN NNS ADJP QP $ CD NP RB DT"),),
    "WHADJP": (_ranked("left", "JJ ADJP WRB CC"),),
    "ADVP": (_ranked("right", "RB RBR RBS FW ADVP TO CD JJR JJ IN NP JJS NN"),),
    "WHADVP": (_ranked("right", "WRB RB CC"),),
    **dict.fromkeys(("PP", "WHPP"), (_ranked("left", "IN TO VBG VBN RP FW PP"),)),
    "QP": (_ranked("left", "$ NNS NN CD QP JJ RB DT JJR JJS"),),
    "CONJP": (_ranked("right", "CC RB IN"),),
    "PRT": (_ranked("right", "RP"),),
}
_NEVER = frozenset({",", ":", ".", "``", "''", "-LRB-", "-RRB-", "HYPH", "POS", "CC"})  # unless there is no other


def head_child(label: str, children: Sequence[Child]) -> Child:
    """The child that heads a constituent of this category; without a rule, the last one that is not punctuation."""
    for search in _RULES.get(label, ()):
        ordered = children if search.side == "left" else children[::-1]
        wanted = ((label,) for label in search.labels) if search.ranked else (search.labels,)
        for labels in wanted:
            for child in ordered:
                if child.label in labels:
                    return child
    return next((child for child in reversed(children) if child.label not in _NEVER), children[-1])
