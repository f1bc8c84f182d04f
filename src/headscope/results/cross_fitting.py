"""Heads that beat the best rule of a label, chosen on some documents and scored on others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.heads import HeadLayout
from headscope.core.state import State
from headscope.measures.contests import ALL, Contests, weights_of
from headscope.stats.bootstrap import GROUPS, groups_of
from headscope.stats.inference import Support, share_interval
from headscope.stats.resampled import Resampled
from headscope.stats.selection import best_entrant, folds_of

if TYPE_CHECKING:
    from jaxtyping import Bool, Float64, Int, Int64


@dataclass(frozen=True)
class CrossFitted:
    """The scores of heads for a label in one direction on documents that were not used to choose them, and the scores
    on the same documents of the best rule, chosen in the same way; on the data and in every replicate.
    """

    label: str
    direction: str
    heads: Int64[np.ndarray, "item"]  # on the head axis
    scores: Resampled
    rule: Float64[np.ndarray, "replicate+1 item"]


def cross_fitted(contests: Contests, state: State, layout: HeadLayout, margin: float) -> Iterator[CrossFitted]:
    """For each label and direction, the heads that are chosen on all folds but one, scored on that fold.

    A head is chosen if it beats the best rule on the same documents by more than `margin`. The rule of a fold is also
    the one that is best on the other folds. A head that is chosen for only some folds is scored on these alone.
    """
    weights = weights_of(state)
    for kind, flat in layout.by_kind().items():
        for label, n in contests.listed(state, kind):
            if label == ALL or np.count_nonzero(n) < 2:
                continue
            right = state[f"right/{label}"][:, :, flat].reshape(GROUPS, -1)
            fold = folds_of(n > 0, contests.folds)
            chosen, rule = _chosen(n, right, state[f"rule/{kind}/{label}"], fold, margin)
            entrants = np.flatnonzero(chosen.any(0))
            if not len(entrants):
                continue
            scored = chosen[fold][:, entrants]  # [group, entrant]
            cases = n[:, None] * scored
            with np.errstate(invalid="ignore", divide="ignore"):
                drawn = weights @ cases
                values, rules = (weights @ (answers * scored) / drawn for answers in (right[:, entrants], rule[:, None]))
            support = _support(contests, state, kind, label, cases)
            for direction, name in enumerate(contests.directions):
                own = entrants // len(flat) == direction
                if own.any():
                    heads = np.array(flat)[entrants[own] % len(flat)]
                    quantity = contests.quantity(label, direction)
                    scores = Resampled(quantity, values[:, own], support[own], cases.sum(0)[own].astype(np.float64), share_interval)
                    yield CrossFitted(label, name, heads, scores, rules[:, own])


def candidates(contests: Contests, state: State, layout: HeadLayout) -> int:
    """The number of heads, labels and directions that `cross_fitted` chooses from. With two folds, a head that is
    chosen for both is scored on the documents it was chosen on, so a correction for many tests counts all candidates.
    """
    return sum(
        len(flat) * len(contests.directions)
        for kind, flat in layout.by_kind().items()
        for label, n in contests.listed(state, kind)
        if label != ALL and np.count_nonzero(n) >= 2
    )


def _chosen(
    n: Int64[np.ndarray, "group"],
    right: Int64[np.ndarray, "group entrant"],
    rules: Int64[np.ndarray, "group rule"],
    fold: Int[np.ndarray, "group"],
    margin: float,
) -> tuple[Bool[np.ndarray, "fold entrant"], Int64[np.ndarray, "group"]]:
    """For each fold, the entrants chosen on the other folds; and the right answers of the rules chosen in this way."""
    chosen = np.zeros((fold.max() + 1, right.shape[1]), dtype=bool)
    answers = np.zeros_like(n)
    for number in range(len(chosen)):
        other, own = fold != number, fold == number
        rule = best_entrant(rules[other].sum(0), late=True)
        answers[own] = rules[own, rule]
        chosen[number] = right[other].sum(0) - rules[other, rule].sum() > margin * n[other].sum()
    return chosen, answers


def _support(contests: Contests, state: State, kind: str, label: str, cases: Int64[np.ndarray, "group entrant"]) -> Support:
    """The support of each entrant: the documents it is scored on. Groups of documents are resampled, so the effective
    number is that of groups.
    """
    groups = Support.of(cases)
    documents: Float64[np.ndarray, "document 2"] | None = state.arrays.get(f"documents/{kind}/{label}")
    if documents is None:  # of a run before 1.0
        return groups
    counted = np.bincount(groups_of(documents[:, 0]), minlength=GROUPS)
    return Support(counted @ (cases > 0), groups.effective)
