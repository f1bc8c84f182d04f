"""Coreference scores of one document as numerators and denominators, which add up over documents.

Definitions as in the reference scorer (Pradhan et al. 2014, https://aclanthology.org/P14-2006). The first annotation
is taken as the key: `recalled / first` is recall, `precise / second` is precision. MUC and links come out the same
with and without singletons.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from headscope.core.document import Mention

Span = tuple[int, int, int]
Entity = frozenset[Span]


class CoreferenceParts(NamedTuple):
    """The numerators and denominators of recall and precision."""

    recalled: float
    first: float
    precise: float
    second: float


def entities(mentions: Sequence[Mention], singletons: bool = True) -> list[Entity]:
    """The entities as sets of spans (start, end, 0); without `singletons`, those with two mentions or more.

    A span that two entities share is (start, end, 1) for the second, the one that is mentioned first in the text
    coming first.
    """
    opening: dict[str, tuple[int, int]] = {}
    for mention in mentions:
        span = (mention.start, mention.end)
        opening[mention.entity] = min(opening.get(mention.entity, span), span)
    seen: Counter[tuple[int, int]] = Counter()
    spans_of: dict[str, set[Span]] = {}
    for mention in sorted(mentions, key=lambda mention: (mention.start, mention.end, opening[mention.entity])):
        spans_of.setdefault(mention.entity, set()).add((mention.start, mention.end, seen[mention.start, mention.end]))
        seen[mention.start, mention.end] += 1
    return [frozenset(spans) for spans in spans_of.values() if singletons or len(spans) > 1]


def muc(first: Sequence[Entity], second: Sequence[Entity]) -> CoreferenceParts:
    """Links that keep entities together (Vilain et al. 1995): those left when the other annotation cuts them."""
    return CoreferenceParts(*_kept_links(first, second), *_kept_links(second, first))


def b_cubed(first: Sequence[Entity], second: Sequence[Entity]) -> CoreferenceParts:
    """Mentions (Bagga and Baldwin 1998): the share of a mention's entity that its entity in the other annotation
    contains.
    """
    overlaps = _overlaps(first, second)
    return CoreferenceParts(
        sum(n * n / len(first[i]) for (i, _), n in overlaps.items()),
        sum(map(len, first)),
        sum(n * n / len(second[j]) for (_, j), n in overlaps.items()),
        sum(map(len, second)),
    )


def ceaf(first: Sequence[Entity], second: Sequence[Entity]) -> CoreferenceParts:
    """Entities (CEAF, Luo 2005): Dice overlaps (similarity phi 4), summed over the best one-to-one matching."""
    similarity = {(i, j): 2 * n / (len(first[i]) + len(second[j])) for (i, j), n in _overlaps(first, second).items()}
    total = best_total(similarity)
    return CoreferenceParts(total, len(first), total, len(second))


def links(first: Sequence[Entity], second: Sequence[Entity]) -> CoreferenceParts:
    """Pairs of mentions of one entity, and how many of them are pairs in both."""
    common = sum(map(_pairs, _overlaps(first, second).values()))
    return CoreferenceParts(common, sum(_pairs(len(entity)) for entity in first), common, sum(_pairs(len(entity)) for entity in second))


def _pairs(n: int) -> int:
    return n * (n - 1) // 2


def _kept_links(whole: Sequence[Entity], cut: Sequence[Entity]) -> tuple[int, int]:
    """The links of the entities in `whole` that remain, and all their links. A mention that `cut` lacks is a separate
    piece.
    """
    needed = sum(len(entity) - 1 for entity in whole)
    return sum(n - 1 for n in _overlaps(whole, cut).values()), needed


def _overlaps(first: Sequence[Entity], second: Sequence[Entity]) -> Counter[tuple[int, int]]:
    """The number of mentions that entities i of `first` and j of `second` share, for pairs that share any."""
    place = {span: j for j, entity in enumerate(second) for span in entity}
    return Counter((i, place[span]) for i, entity in enumerate(first) for span in entity if span in place)


def best_total(gains: Mapping[tuple[int, int], float]) -> float:
    """The largest sum of gains in which no row and no column occurs twice; pairs without a gain count as 0.

    Rows and columns that no chain of pairs connects do not compete, so each connected component is solved separately.
    """
    return sum(_best_of_part({pair: gains[pair] for pair in part}) for part in _parts(list(gains)))


def _parts(pairs: Sequence[tuple[int, int]]) -> list[list[tuple[int, int]]]:
    rows: dict[int, list[tuple[int, int]]] = {}
    columns: dict[int, list[tuple[int, int]]] = {}
    for pair in pairs:
        rows.setdefault(pair[0], []).append(pair)
        columns.setdefault(pair[1], []).append(pair)
    parts, done = [], set()
    for start in pairs:
        part, agenda = [], [start]
        while agenda:
            pair = agenda.pop()
            if pair not in done:
                done.add(pair)
                part.append(pair)
                agenda += rows[pair[0]] + columns[pair[1]]
        if part:
            parts.append(part)
    return parts


def _best_of_part(gains: Mapping[tuple[int, int], float]) -> float:
    rows, columns = sorted({row for row, _ in gains}), sorted({column for _, column in gains})
    if len(rows) > len(columns):
        return _best_of_part({(column, row): gain for (row, column), gain in gains.items()})
    costs = [[-gains.get((row, column), 0.0) for column in columns] for row in rows]
    row_of = _assign(costs)
    return -sum(costs[row][column] for column, row in enumerate(row_of) if row is not None)


def _assign(costs: Sequence[Sequence[float]]) -> list[int | None]:
    """The row assigned to each column so that the sum of costs [row, column] is minimal; there must not be more rows
    than columns.

    The Hungarian method: rows are added one at a time, each along the shortest augmenting path (Kuhn 1955, Munkres
    1957). Prices keep the reduced cost `costs[row][column] - row_price[row] - column_price[column]` at 0 or above, and
    at 0 where given.
    """
    size = len(costs[0])
    row_price, column_price = [0.0] * len(costs), [0.0] * size
    row_of: list[int | None] = [None] * size
    for new in range(len(costs)):
        shortest = [math.inf] * size
        before: list[int | None] = [None] * size  # the previous column on the augmenting path
        out, reached = list(range(size)), list[int]()
        row, last, length = new, None, 0.0
        while True:
            for column in out:
                through = length + costs[row][column] - row_price[row] - column_price[column]
                if through < shortest[column]:
                    shortest[column], before[column] = through, last
            last = min(out, key=shortest.__getitem__)
            length = shortest[last]
            if (owner := row_of[last]) is None:
                break
            out.remove(last)
            reached.append(last)
            row = owner
        row_price[new] += length
        for column in reached:
            slack = length - shortest[column]
            column_price[column] -= slack
            if (owner := row_of[column]) is not None:
                row_price[owner] += slack
        while last is not None:
            giver = before[last]
            row_of[last] = new if giver is None else row_of[giver]
            last = giver
    return row_of
