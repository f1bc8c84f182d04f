"""The score of the best of several entrants, chosen on other documents than it is scored on."""

from __future__ import annotations

import numpy as np
import pytest

from headscope.stats.selection import crossfit, in_sample, share

N = np.array([2, 4, 0, 2, 2])
RIGHT = np.array([[2, 0], [1, 3], [0, 0], [1, 1], [0, 2]])  # one row per group of documents, one column per entrant


def test_each_fold_is_scored_by_the_best_of_the_other() -> None:
    """Groups in use take turns: 0 and 3 are one fold, 1 and 4 the other. There the second entrant is best (5 : 1), in
    the first fold the first (3 : 1).
    """
    best = crossfit(N, RIGHT)
    assert best.picks == (1, 0)
    assert best.right.tolist() == [0, 1, 0, 1, 0]
    assert best.value == pytest.approx(2 / 10)
    assert in_sample(N, RIGHT).picks == (1,)
    assert in_sample(N, RIGHT).value == pytest.approx(6 / 10)


def plain_replicate(n: np.ndarray, right: np.ndarray, weights: np.ndarray, fold: np.ndarray, value: float) -> float:
    """One replicate, group by group and entrant by entrant."""
    deviation = 0.0
    for side in set(fold.tolist()):
        totals = [sum(weights[group] * right[group, entrant] for group in range(len(n)) if fold[group] != side) for entrant in range(2)]
        pick = totals.index(max(totals))
        groups = [group for group in range(len(n)) if fold[group] == side]
        share_in_data = sum(right[group, pick] for group in groups) / sum(n[group] for group in groups)
        deviation += sum(weights[group] * (right[group, pick] - n[group] * share_in_data) for group in groups)
    return value + deviation / float(weights @ n)


def test_replicates_choose_anew_and_vary_around_what_is_chosen() -> None:
    best = crossfit(N, RIGHT)
    weights = np.random.default_rng(0).poisson(1.0, (50, len(N))).astype(float)
    weights[0], weights[1] = 1.0, 0.0
    fold = np.array([0, 1, 1, 0, 1])
    replicates = best.resampled(weights)
    assert replicates[0] == pytest.approx(best.value), "the data as they are"
    assert np.isnan(replicates[1]), "no case was drawn"
    expected = [plain_replicate(N, RIGHT, row, fold, best.value) for row in weights[2:] if row @ N > 0]
    assert replicates[2:][weights[2:] @ N > 0] == pytest.approx(expected)
    assert len({tuple(row) for row in (weights[2:, [0, 3]] @ RIGHT[[0, 3]]).tolist()}) > 5


def test_a_head_that_both_folds_overrate_widens_the_replicates() -> None:
    """Of a hundred entrants without any difference both folds at times choose the same: errors then go together."""
    rng = np.random.default_rng(1)
    n = np.full(60, 3)
    ratios = []
    for _ in range(20):
        right = rng.binomial(3, 0.4, (60, 2))
        best = crossfit(n, right)
        weights = rng.poisson(1.0, (400, 60)).astype(float)
        ratios.append(best.resampled(weights).std() / share(best.right, best.n, weights).std())
    assert np.mean(ratios) > 1.03
    assert in_sample(n, right).resampled(weights) == pytest.approx(share(right[:, in_sample(n, right).picks[0]], n, weights))


def test_more_than_two_folds_keep_their_picks() -> None:
    weights = np.random.default_rng(2).poisson(1.0, (30, len(N))).astype(float)
    best = crossfit(N, RIGHT, folds=4)
    assert len(best.picks) == 4
    assert best.resampled(weights) == pytest.approx(share(best.right, best.n, weights), nan_ok=True)
