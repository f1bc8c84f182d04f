"""Choosing the best of many entrants without selection bias: choose on some documents, score on others.

The best of 288 heads looks better than it is on the sentences that it is chosen on. Here each fold of the groups of
documents scores the entrant that is best on all other folds (`crossfit`), and the folds are pooled. The estimate is the
score of entrants that are chosen in this way, not that of the truly best entrant: with few cases another one is often
chosen, and the score is lower.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Bool, Float64, Int, Int64, Shaped


@dataclass(frozen=True)
class SelectedScore:
    """Right answers and cases by group of documents, and the entrants that gave them: one, or one per fold.

    If each fold's entrant was chosen on the other folds, `entrants` has the right answers of all entrants, and `fold`
    the fold of each group.
    """

    picks: tuple[int, ...]
    right: Int64[np.ndarray, "group"]
    n: Int64[np.ndarray, "group"]
    entrants: Int64[np.ndarray, "group entrant"] | None = None
    fold: Int[np.ndarray, "group"] | None = None
    late: bool = False

    @property
    def value(self) -> float:
        """The share of right answers; NaN without cases."""
        return float(self.right.sum() / self.n.sum()) if self.n.sum() else float("nan")

    def resampled(self, weights: Float64[np.ndarray, "replicate group"]) -> Float64[np.ndarray, "replicate"]:
        """The share of right answers in each replicate of the groups; NaN if a replicate drew no cases.

        With two folds, each replicate chooses again. What varies is how far the chosen entrants deviate from their own
        share in the data, not which entrants they are: two folds that overrate the same entrant choose it for each
        other, and with fixed choices their errors would seem independent. With more folds, each is too small for that,
        so the choices stay fixed.
        """
        if self.entrants is None or self.fold is None or len(self.picks) != 2:
            return share(self.right, self.n, weights)
        inside = [self.fold == side for side in range(len(self.picks))]
        hits = np.stack([weights[:, part] @ self.entrants[part] for part in inside])
        cases = np.stack([weights[:, part] @ self.n[part] for part in inside])
        total, replicate = hits.sum(0), np.arange(len(weights))
        deviation = np.zeros(len(weights))
        for part, fold_hits, fold_cases in zip(inside, hits, cases, strict=True):
            pick = best_entrant(total - fold_hits, self.late)
            expected = self.entrants[part].sum(0) / max(1, self.n[part].sum())
            deviation += fold_hits[replicate, pick] - fold_cases * expected[pick]
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(cases.sum(0) > 0, self.value + deviation / cases.sum(0), np.nan)


def folds_of(used: Bool[np.ndarray, "group"], folds: int = 2) -> Int[np.ndarray, "group"]:
    """The fold of each group, from 0: groups in use are assigned to folds in turn. There are at most as many folds as
    groups in use.
    """
    return (np.cumsum(used) - 1) % max(1, min(folds, np.count_nonzero(used)))


def in_sample(n: Int64[np.ndarray, "group"], right: Int64[np.ndarray, "group entrant"], late: bool = False) -> SelectedScore:
    """The best entrant on all data, scored on the same data. The first of equal ones is chosen, or
    the last if `late`.
    """
    pick = int(best_entrant(right.sum(0), late))
    return SelectedScore((pick,), right[:, pick], n)


def crossfit(n: Int64[np.ndarray, "group"], right: Int64[np.ndarray, "group entrant"], late: bool = False, folds: int = 2) -> SelectedScore:
    """Each fold of the groups with cases, scored by the entrant that is best on the others; empty if there is only one
    group.
    """
    picks: list[int] = []
    fold = folds_of(n > 0, folds)
    scored, cases = np.zeros_like(n), np.zeros_like(n)
    for side in range(fold.max() + 1) if np.count_nonzero(n) > 1 else ():
        other, held_out = fold != side, fold == side
        picks.append(int(best_entrant(right[other].sum(0), late)))
        scored[held_out], cases[held_out] = right[held_out, picks[-1]], n[held_out]
    return SelectedScore(tuple(picks), scored, cases, right, fold, late)


def share(
    right: Int64[np.ndarray, "group *shape"], n: Int64[np.ndarray, "group"], weights: Float64[np.ndarray, "replicate group"]
) -> Float64[np.ndarray, "replicate *shape"]:
    """The share of right answers in each replicate of the groups; NaN if a replicate drew no cases."""
    drawn = weights @ n
    hits = np.tensordot(weights, right, 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        shares: Float64[np.ndarray, "replicate *shape"] = hits / drawn.reshape(-1, *[1] * (right.ndim - 1))
    return shares


def best_entrant(right: Shaped[np.ndarray, "*shape entrant"], late: bool) -> Int[np.ndarray, "*shape"]:
    """The entrant with the most right answers. The first of equal ones is chosen, or the last if `late`."""
    best: Int[np.ndarray, "*shape"] = right.shape[-1] - 1 - right[..., ::-1].argmax(-1) if late else right.argmax(-1)
    return best
