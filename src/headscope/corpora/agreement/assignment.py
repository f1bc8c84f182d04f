"""The best one-to-one matching of two sets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence


def best_total(gains: Mapping[tuple[int, int], float]) -> float:
    """The largest sum of gains in which no row and no column occurs twice; a pair that is not named gains nothing.

    Rows and columns that no chain of pairs connects cannot take anything from each other: each connected part is
    solved by itself.
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
    """For each column, the row it is given to so that the costs [row, column] are least; there are no more rows than
    columns.

    The Hungarian method: rows come in one at a time, each along the shortest path that hands columns on (Kuhn 1955,
    Munkres 1957). Prices keep the reduced cost `costs[row][column] - row_price[row] - column_price[column]` at 0 or
    above, and at 0 where given.
    """
    size = len(costs[0])
    row_price, column_price = [0.0] * len(costs), [0.0] * size
    row_of: list[int | None] = [None] * size
    for new in range(len(costs)):
        shortest = [math.inf] * size
        before: list[int | None] = [None] * size  # the column that hands its row on to this one
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
