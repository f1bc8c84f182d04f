"""Words and links that a figure of one text shows in red (Clark et al. 2019, Figure 5)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.paths import printable
from headscope.core.suggest import choose_from
from headscope.encoding.texts import Encoded
from headscope.errors import RunError
from headscope.gallery.grids import Grid

if TYPE_CHECKING:
    from jaxtyping import Bool

Pair = tuple[int | None, int | None]
ARROWS = ("→", "->")
DIRECTIONS = ("dep-to-head", "head-to-dep")
COREFERENT = "coreferent"
_NAMED = 30  # words in a message


@dataclass(frozen=True)
class Highlight:
    """Pairs of words, the attending one first, whose links are red. None means every word and special token."""

    pairs: frozenset[Pair] = frozenset()

    def links(self, grid: Grid) -> Bool[np.ndarray, "row column"]:
        """Which cells of a grid are links of these pairs."""
        marked = np.zeros(grid.weights.shape, dtype=bool)
        for pair in self.pairs:
            sides = zip((grid.row_words, grid.column_words), pair, strict=True)
            rows, columns = (np.array([word is None or other == word for other in words], dtype=bool) for words, word in sides)
            marked |= rows[:, None] & columns[None, :]
        return marked

    def words(self, grid: Grid) -> tuple[Bool[np.ndarray, "row"], Bool[np.ndarray, "column"]]:
        """Which rows and which columns of a grid are named words."""
        rows, columns = ({pair[side] for pair in self.pairs} - {None} for side in (0, 1))
        if not self.pairs:
            return np.zeros(len(grid.rows), dtype=bool), np.zeros(len(grid.columns), dtype=bool)
        return np.array([word in rows for word in grid.row_words]), np.array([word in columns for word in grid.column_words])


def find_highlight(named: Iterable[str], relation: str | None, queries: Encoded, keys: Encoded) -> Highlight:
    """The links that are named by their words or by a relation of the text, and those of an annotated `relation`."""
    words, relations = _split(list(named), queries, keys)
    links = find_pairs(words, queries, keys)
    for label in relations:
        links = Highlight(links.pairs | find_relation(label, queries).pairs)
    if relation is None:
        return links
    if queries is not keys:
        raise RunError(f"{relation} links words of one text, and the head attends from one text to another", "Use --highlight")
    return Highlight(links.pairs | find_relation(relation, queries).pairs)


def _split(named: list[str], queries: Encoded, keys: Encoded) -> tuple[list[str], list[str]]:
    """Names of words and pairs, and names of relations: those that are not words of the text but relations in it."""
    relations = [] if queries is not keys else [name for name in named if not _is_word(name, queries) and _is_relation(name, queries)]
    return [name for name in named if name not in relations], relations


def _is_word(name: str, side: Encoded) -> bool:
    return any(word.form.casefold() == name.strip().casefold() for word in side.words)


def _is_relation(name: str, side: Encoded) -> bool:
    try:
        return bool(find_relation(name, side).pairs)
    except RunError:
        return False


def find_pairs(named: Iterable[str], queries: Encoded, keys: Encoded) -> Highlight:
    """The named links: `opened→door` (or `->`) is one link, `door` alone means all links from and to that word.

    `door:2` is the second `door` of the text. A word that occurs more than once needs such a number.
    """
    pairs: set[Pair] = set()
    for name in named:
        arrow = next((arrow for arrow in ARROWS if arrow in name), None)
        if arrow is None:
            pairs |= _around(name, queries, keys)
            continue
        source, target = (part.strip() for part in name.split(arrow, 1))
        if not source or not target or any(other in target for other in ARROWS):
            raise RunError(f"{name!r} is not a pair of words", "Write one pair as in opened→door, and repeat the option for more pairs")
        pairs.add((find_word(source, queries), find_word(target, keys)))
    return Highlight(frozenset(pairs))


def _around(name: str, queries: Encoded, keys: Encoded) -> set[Pair]:
    """All links from and to a word; if rows and columns are different texts, those of the text that has it."""
    if queries is keys:
        word = find_word(name, queries)
        return {(word, None), (None, word)}
    try:
        return {(find_word(name, queries), None)}
    except RunError:
        return {(None, find_word(name, keys))}


def find_word(name: str, side: Encoded) -> int:
    """The number of a word of a text by its form, ignoring case if necessary; `door:2` is the second one."""
    forms = [word.form for word in side.words]
    name = name.strip()
    form, colon, number = name.rpartition(":")
    for wanted, which in ((name, ""), (form, number)) if colon and form and number.isdecimal() else ((name, ""),):
        places = [place for place, other in enumerate(forms) if other == wanted]
        places = places or [place for place, other in enumerate(forms) if other.casefold() == wanted.casefold()]
        if which and places and not 1 <= int(which) <= len(places):
            times = "once" if len(places) == 1 else f"{len(places)} times"
            raise RunError(f"there is no {name!r}: the text has {wanted!r} {times}", f"Use {_numbered(wanted, places)}")
        if which and places:
            return places[int(which) - 1]
        if len(places) > 1:
            raise RunError(f"{wanted!r} is in the text {len(places)} times", f"Write which one: {_numbered(wanted, places)}")
        if places:
            return places[0]
    words = " ".join(forms[:_NAMED]) + (" …" if len(forms) > _NAMED else "")
    raise RunError(f"{name!r} is not a word of the text", f"Its words are: {printable(words)}")


def _numbered(form: str, places: Sequence[int]) -> str:
    return " or ".join(f"{form}:{number}" for number in range(1, len(places) + 1))


def find_relation(name: str, side: Encoded) -> Highlight:
    """The links of a relation: `obj` (from dependents to heads), `head-to-dep obj`, or `coreferent`.

    A relation without a subtype includes its subtypes.
    """
    if name == COREFERENT:
        pairs = _coreferent(side)
        known = [COREFERENT] if pairs else []
    else:
        way, _, label = name.rpartition(" ")
        if (way or DIRECTIONS[0]) not in DIRECTIONS:
            raise RunError(f"direction {way!r} is unknown", choose_from(way, DIRECTIONS) + f", as in {DIRECTIONS[1]} {label}")
        arcs = [
            (place, head, word.relation)
            for place, (word, head) in enumerate(zip(side.words, side.annotation.heads, strict=True))
            if head >= 0 and word.relation
        ]
        links = [(place, head) for place, head, relation in arcs if relation == label or relation.startswith(f"{label}:")]
        pairs = frozenset((head, place) if way == DIRECTIONS[1] else (place, head) for place, head in links)
        known = sorted({relation for _, _, relation in arcs})
    if not pairs:
        remedy = (
            choose_from(name.rpartition(" ")[2], known, "It has")
            if known
            else "Use an annotated sentence: headscope view FILE --sentence 3"
        )
        raise RunError(f"the text has no {name}", remedy)
    return Highlight(pairs)


def _coreferent(side: Encoded) -> frozenset[Pair]:
    mentions = side.annotation.mentions
    spans = [(mention, other) for mention in mentions for other in mentions if mention is not other and mention.entity == other.entity]
    return frozenset((i, j) for a, b in spans for i in range(a.start, a.end) for j in range(b.start, b.end) if i != j)
