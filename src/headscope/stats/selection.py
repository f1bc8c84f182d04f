"""Choosing the best of many entrants without flattering it: pick on one half of the documents, score on the other.

The best of 288 heads on the sentences they are picked on looks better than it is. Here each half of the groups of documents
scores the entrant that the other half picked (`crossfit`), and the two are pooled.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headscope.stats.bootstrap import percentile_interval

if TYPE_CHECKING:
    from jaxtyping import Bool, Float64, Int, Int64


@dataclass(frozen=True)
class Scored:
    """Right answers and cases by group of documents, and the entrants that gave them: one, or one a half."""

    picks: tuple[int, ...]
    right: Int64[np.ndarray, "group"]
    n: Int64[np.ndarray, "group"]

    @property
    def value(self) -> float:
        """The share of right answers; NaN without cases."""
        return float(self.right.sum() / self.n.sum()) if self.n.sum() else float("nan")


def halves(used: Bool[np.ndarray, "group"]) -> Int[np.ndarray, "group"]:
    """0 or 1 for each group: those in use take turns, so that even few documents part evenly."""
    turn: Int[np.ndarray, "group"] = (np.cumsum(used) - 1) % 2
    return turn


def in_sample(n: Int64[np.ndarray, "group"], right: Int64[np.ndarray, "group entrant"], late: bool = False) -> Scored:
    """The best entrant on all data, scored on the same data. Of equals the first is taken, or the last if `late`."""
    pick = _best(right.sum(0), late)
    return Scored((pick,), right[:, pick], n)


def crossfit(n: Int64[np.ndarray, "group"], right: Int64[np.ndarray, "group entrant"], late: bool = False) -> Scored:
    """Each half of the groups that have cases scored by the entrant that is best on the other; nothing if only one group has any."""
    picks: list[int] = []
    half = halves(n > 0)
    scored, cases = np.zeros_like(n), np.zeros_like(n)
    for side in (0, 1) if np.count_nonzero(n) > 1 else ():
        other, own = half != side, half == side
        picks.append(_best(right[other].sum(0), late))
        scored[own], cases[own] = right[own, picks[-1]], n[own]
    return Scored(tuple(picks), scored, cases)


def share(
    right: Int64[np.ndarray, "group *shape"], n: Int64[np.ndarray, "group"], weights: Float64[np.ndarray, "replicate group"]
) -> Float64[np.ndarray, "replicate *shape"]:
    """The share of right answers in each replicate of the groups; NaN where a replicate drew no case."""
    drawn = weights @ n
    hits = np.tensordot(weights, right, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares: Float64[np.ndarray, "replicate *shape"] = hits / drawn.reshape(-1, *[1] * (right.ndim - 1))
    return shares


def interval(replicates: Float64[np.ndarray, "replicate *shape"], n: Int64[np.ndarray, "group"]) -> tuple[np.ndarray, np.ndarray]:
    """Percentile bounds; NaN if all cases come from one group, which cannot be resampled."""
    several = np.full(replicates.shape[1:], np.count_nonzero(n) > 1)
    return percentile_interval(replicates, several)


def _best(right: Int64[np.ndarray, "entrant"], late: bool) -> int:
    return int(len(right) - 1 - right[::-1].argmax() if late else right.argmax())
