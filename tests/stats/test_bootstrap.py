from __future__ import annotations

import math

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats as scipy_stats

from headscope.stats.bootstrap import percentile_interval, poisson_weights


def test_weights_are_poisson_with_mean_one() -> None:
    weights = poisson_weights([f"document {i}" for i in range(4000)], 50)[:, 1:]
    observed = np.bincount(weights.astype(int).ravel(), minlength=6)[:6] / weights.size
    assert_allclose(observed, scipy_stats.poisson.pmf(range(6), 1), atol=0.004)
    assert_allclose(weights.mean(), 1, atol=0.01)
    between = np.corrcoef(weights.T) - np.eye(50)
    assert np.abs(between).max() < 0.08, "replicates are independent"
    neighbours = np.corrcoef(weights[:200])
    assert abs((neighbours - np.eye(200)).mean()) < 0.01, "documents are independent"


def test_weights_depend_on_the_document_and_the_seed_alone() -> None:
    a = poisson_weights(["x", "y", "z"], 20)
    assert_array_equal(poisson_weights(["z", "x"], 20), a[[2, 0]])
    assert_array_equal(poisson_weights(["x"], 7), a[:1, :8])
    assert_array_equal(a[:, 0], 1)
    assert (poisson_weights(["x", "y", "z"], 20, seed=1) != a).any()


def test_weights_never_change() -> None:
    """Literal values: a change here would silently change every interval ever published."""
    assert poisson_weights(["GUM_academic_exposure"], 12, seed=0).astype(int).tolist() == [FROZEN]


FROZEN = [1, 0, 0, 0, 0, 1, 0, 1, 0, 3, 3, 1, 1]


def test_percentiles_and_what_has_none() -> None:
    values = np.arange(101.0)[:, None] + np.array([0, 10, 0])
    values[:50, 2] = math.nan
    low, high = percentile_interval(values, np.array([True, False, True]), confidence=0.9)
    assert_allclose(low, [5, math.nan, 52.5])
    assert_allclose(high, [95, math.nan, 97.5])
    empty = percentile_interval(np.empty((0, 2)), np.array([True, True]))
    assert np.isnan(empty).all()


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    """200 worlds of 60 documents: a 95% interval of the mean holds 0 in 88% to 99% of them."""
    rng = np.random.default_rng(0)
    covered = 0
    for world in range(200):
        values = rng.normal(size=60)
        weights = poisson_weights([f"{world}/{i}" for i in range(60)], 300)
        replicates = (weights.T @ values) / weights.sum(0)
        low, high = percentile_interval(replicates[1:, None], np.array([True]))
        covered += bool(low[0] <= 0 <= high[0])
    assert 176 <= covered <= 198
