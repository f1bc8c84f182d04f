"""Bootstrap weights of documents: their distribution, their fixed values, and the coverage of intervals."""

from __future__ import annotations

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy import stats as scipy_stats

from headscope.stats.bootstrap import group_of, key_of, poisson_weights
from headscope.stats.inference import Support, interval


def test_weights_are_poisson_with_mean_one() -> None:
    weights = poisson_weights([f"document {i}" for i in range(4000)], 50)[:, 1:]
    observed = np.bincount(weights.astype(int).ravel(), minlength=6)[:6] / weights.size
    assert_allclose(observed, scipy_stats.poisson.pmf(range(6), 1), atol=0.004)
    assert_allclose(weights.mean(), 1, atol=0.01)
    between = np.corrcoef(weights.T) - np.eye(50)
    assert np.abs(between).max() < 0.08, "replicates are independent"
    neighbours = np.corrcoef(weights[:200])
    assert abs((neighbours - np.eye(200)).mean()) < 0.01, "documents are independent"


def test_weights_depend_only_on_the_document_and_the_seed() -> None:
    a = poisson_weights(["x", "y", "z"], 20)
    assert_array_equal(poisson_weights(["z", "x"], 20), a[[2, 0]])
    assert_array_equal(poisson_weights(["x"], 7), a[:1, :8])
    assert_array_equal(a[:, 0], 1)
    assert (poisson_weights(["x", "y", "z"], 20, seed=1) != a).any()


def test_weights_never_change() -> None:
    """The expected values are literal, because a change would silently change every published interval."""
    assert poisson_weights(["GUM_academic_exposure"], 12, seed=0).astype(int).tolist() == [FROZEN]


KEYS = (-2173425729173806131, 8453121595177857668)
FROZEN = [1, 0, 0, 0, 0, 1, 0, 1, 0, 3, 3, 1, 1]


def test_the_coverage_of_intervals_is_about_95_percent() -> None:
    """In 400 simulations of 8 documents, one of them four times as long as the others, the 95 % intervals contain 0 in
    93 to 98.5 % of cases, percentile intervals in fewer than 91 %.
    """
    rng = np.random.default_rng(0)
    length = np.array([4.0, 1, 1, 1, 1, 1, 1, 1])
    covered = np.zeros(2)
    for world in range(400):
        weights = poisson_weights([f"{world}/{i}" for i in range(8)], 200)
        with np.errstate(invalid="ignore"):
            drawn = (weights.T @ (length * rng.normal(size=8))) / (weights.T @ length)
        bounds = interval(drawn[0], drawn[1:], Support.of(length)), np.nanpercentile(drawn[1:], [2.5, 97.5])
        covered += [low <= 0 <= high for low, high in bounds]
    assert 372 <= covered[0] <= 394
    assert covered[1] < 364


def test_keys_and_groups_of_documents_never_change() -> None:
    assert (key_of("GUM_academic_exposure"), key_of("b")) == KEYS
    assert [group_of(name) for name in ("GUM_academic_exposure", "b")] == [key % 2**64 % 128 for key in KEYS]
