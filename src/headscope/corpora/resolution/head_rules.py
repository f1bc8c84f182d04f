"""Which child of a constituent heads it: a table of preferences in the manner of Collins (1999).

Two departures, since the head of a mention should be the word that refers: a possessive clitic never heads its noun phrase,
and an auxiliary gives way to the verb phrase beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeVar


class Labelled(Protocol):
    """Anything with a category."""

    label: str


Child = TypeVar("Child", bound=Labelled)


class _Search(NamedTuple):
    """Look through the children from the `left` or the `right` for one of these labels; `ranked`: for the first label, then the next."""

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
_NEVER = frozenset({",", ":", ".", "``", "''", "-LRB-", "-RRB-", "HYPH", "POS", "CC"})  # unless there is nothing else


def head_child(label: str, children: Sequence[Child]) -> Child:
    """The child that heads a constituent of this category; the last that is no mere mark where the table says nothing."""
    for search in _RULES.get(label, ()):
        ordered = children if search.side == "left" else children[::-1]
        wanted = ((label,) for label in search.labels) if search.ranked else (search.labels,)
        for labels in wanted:
            for child in ordered:
                if child.label in labels:
                    return child
    return next((child for child in reversed(children) if child.label not in _NEVER), children[-1])
