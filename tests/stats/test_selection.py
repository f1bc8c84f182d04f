"""The score of the best of several entrants, chosen on documents other than those it is scored on."""

from __future__ import annotations

import numpy as np
import pytest

from headscope.stats.selection import crossfit, in_sample, share

N = np.array([2, 4, 0, 2, 2])
RIGHT = np.array([[2, 0], [1, 3], [0, 0], [1, 1], [0, 2]])  # one row per group of documents, one column per entrant


def test_each_fold_is_scored_by_the_best_entrant_of_the_other() -> None:
    """Groups 0 and 3 are the first fold, 1 and 4 the second; group 2 has no cases. The first entrant is best in the
    first fold (3 : 1), the second entrant in the second (5 : 1).
    """
    best = crossfit(N, RIGHT)
    assert best.picks == (1, 0)
    assert best.right.tolist() == [0, 1, 0, 1, 0]
    assert best.value == pytest.approx(2 / 10)
    assert in_sample(N, RIGHT).picks == (1,)
    assert in_sample(N, RIGHT).value == pytest.approx(6 / 10)


def plain_replicate(n: np.ndarray, right: np.ndarray, weights: np.ndarray, fold: np.ndarray, value: float) -> float:
    """Return one replicate, computed by loops over groups and entrants."""
    deviation = 0.0
    for side in set(fold.tolist()):
        totals = [sum(weights[group] * right[group, entrant] for group in range(len(n)) if fold[group] != side) for entrant in range(2)]
        pick = totals.index(max(totals))
        groups = [group for group in range(len(n)) if fold[group] == side]
        share_in_data = sum(right[group, pick] for group in groups) / sum(n[group] for group in groups)
        deviation += sum(weights[group] * (right[group, pick] - n[group] * share_in_data) for group in groups)
    return value + deviation / float(weights @ n)


def test_replicates_choose_again_and_vary_around_the_chosen_entrants() -> None:
    best = crossfit(N, RIGHT)
    weights = np.random.default_rng(0).poisson(1.0, (50, len(N))).astype(float)
    weights[0], weights[1] = 1.0, 0.0
    fold = np.array([0, 1, 1, 0, 1])
    replicates = best.resampled(weights)
    assert replicates[0] == pytest.approx(best.value), "weights of 1 give the data"
    assert np.isnan(replicates[1]), "no case was drawn"
    expected = [plain_replicate(N, RIGHT, row, fold, best.value) for row in weights[2:] if row @ N > 0]
    assert replicates[2:][weights[2:] @ N > 0] == pytest.approx(expected)
    assert len({tuple(row) for row in (weights[2:, [0, 3]] @ RIGHT[[0, 3]]).tolist()}) > 5


def test_an_entrant_that_both_folds_overrate_widens_the_replicates() -> None:
    """If two entrants are equally good, both folds sometimes choose the same one. Their errors are then correlated."""
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
