"""Switching off more and more heads in several orders (Michel et al. 2019, Figure 3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, nan
from typing import TYPE_CHECKING, Any

from headscope.core.heads import HeadLayout
from headscope.results.table import Table, columns_of
from headscope.stats.scores import Score
from headscope.studies.ablation.tables import Scores, numbers, removal

if TYPE_CHECKING:
    import numpy as np
    from jaxtyping import Float64

    from headscope.studies.ablation.answers import Cut


MOST_FIRST = ", most first"  # the end of the name of a reversed order


@dataclass(frozen=True)
class Curves:
    """Orders in which heads are removed, as places on the flat head axis, and the number of steps that are scored."""

    layout: HeadLayout
    orders: Mapping[str, Sequence[int]]
    steps: int

    @property
    def sizes(self) -> list[int]:
        """How many heads are removed at each step, from the first step to all of them."""
        return step_sizes(self.layout.size, self.steps)

    def cuts(self) -> list[Cut]:
        """The gates of every order and step."""
        return [removal(self.layout, order[:size]) for order in self.orders.values() for size in self.sizes]

    def names(self) -> list[dict[str, Any]]:
        """The order, the share of heads and the number of heads of each system."""
        return [{"order": name, "share": size / self.layout.size, "heads": size} for name in self.orders for size in self.sizes]


def step_sizes(heads: int, steps: int) -> list[int]:
    """How many of all heads are removed at each step, from the first step to all of them."""
    return [ceil(heads * step / steps) for step in range(1, steps + 1)]


def curve_table(curves: Curves, scores: Scores, table: Float64[np.ndarray, "system example k"]) -> Table:
    """`pruning`: one row per order and step."""
    names = curves.names()
    return Table.of(columns_of(names) | numbers(scores.contrasted(table)))


def prunable_table(pruning: Table, base: float, score: Score, tolerance: float, losing: bool = True) -> Table:
    """`prunable`: for each order, the largest share of heads that can be removed while the score is worse by at most
    `tolerance` of its value. It is 0 if the first step costs more, and NaN for a model that is no better than the
    baseline (`losing` is false). Orders that begin with the most important heads are omitted.
    """
    rows = []
    for order in (name for name in dict.fromkeys(pruning["order"]) if not name.endswith(MOST_FIRST)):
        gone = 0.0
        for row in pruning.where(order=order):
            worse = (base - row["score"]) * (1 if score.better == "higher" else -1)
            if not worse <= tolerance * abs(base):
                break
            gone = row["share"]
        rows.append((order, gone if losing else nan, base, tolerance))
    return Table.of({name: [row[place] for row in rows] for place, name in enumerate(("order", "share", "base", "tolerance"))})
