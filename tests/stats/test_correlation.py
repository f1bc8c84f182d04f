"""Correlations against scipy's, and streamed moments against one computation over all values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from headscope.stats.correlation import Moments, pearson, pooled, ranks, spearman


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(3, 40), coarse=st.booleans())
@settings(max_examples=40, deadline=None)
def test_both_correlations_equal_scipys_on_values_that_are_not_missing(seed: int, n: int, coarse: bool) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, 5, (3, n)).astype(float) if coarse else rng.normal(size=(3, n))
    y = rng.integers(0, 3, n).astype(float) if coarse else rng.normal(size=n)
    x[:, :2], y[:2] = [0, 7], [0, 7]  # never constant
    x[0, rng.random(n) < 0.2] = np.nan
    r, counts = pearson(x, y)
    rho, _ = spearman(x, y)
    for layer in range(3):
        fine = ~np.isnan(x[layer])
        assert counts[layer] == fine.sum()
        if not fine.any():
            assert np.isnan(r[layer])
            assert np.isnan(rho[layer])
        elif np.ptp(x[layer][fine]) and np.ptp(y[fine]):
            assert r[layer] == pytest.approx(stats.pearsonr(x[layer][fine], y[fine]).statistic, abs=1e-12)
            assert rho[layer] == pytest.approx(stats.spearmanr(x[layer][fine], y[fine]).statistic, abs=1e-12)


def test_constant_and_empty_values_have_no_correlation() -> None:
    x = np.array([[0.1, 0.1, 0.1, 0.1, 0.1, 0.1, np.nan], [1, 2, 3, 4, 5, 6, 7]])
    for correlate in (pearson, spearman):
        r, n = correlate(x, np.array([1.0, 2, 3, 4, 5, 6, 8]))
        assert np.isnan(r[0])
        assert n.tolist() == [6, 7]
        assert r[1] > 0.9
        nothing, none = correlate(np.zeros((2, 0)), np.zeros(0))
        assert np.isnan(nothing).all()
        assert none.tolist() == [0, 0]
        assert np.isnan(correlate(np.array([1.0]), np.array([2.0]))[0])


def test_ranks_equal_those_worked_out_by_hand() -> None:
    given = np.array([True, True, True, True, False])
    assert ranks(np.array([3.0, 1, 3, 7, 0]), given).tolist()[:4] == [2.5, 1, 2.5, 4]


@given(seed=st.integers(0, 2**32 - 1), parts=st.integers(1, 5))
@settings(max_examples=30, deadline=None)
def test_streamed_moments_equal_one_computation_over_all_values(seed: int, parts: int) -> None:
    rng = np.random.default_rng(seed)
    pieces = [rng.normal(100, 1, (2, 3, int(rng.integers(1, 20)))) for _ in range(parts)]
    moments = [Moments.of(x, y + x) for x, y in pieces]
    x, y = np.concatenate([x for x, _ in pieces], -1), np.concatenate([x + y for x, y in pieces], -1)
    total = moments[0]
    for one in moments[1:]:
        total = total + one
    assert total.n == pytest.approx(np.full(3, x.shape[-1]))
    for layer in range(3):
        expected = np.corrcoef(x[layer], y[layer])[0, 1] if x.shape[-1] > 1 else np.nan
        assert total.r[layer] == pytest.approx(expected, nan_ok=True)
    stacked = Moments(*(np.stack([getattr(one, name) for one in moments]) for name in ("n", "mean_x", "mean_y", "xx", "yy", "xy")))
    weights = rng.integers(0, 3, (parts, 4)).astype(float)
    weights[:, 0] = 1
    found = pooled(stacked, weights)
    for column in range(4):
        times = [int(weight) for weight in weights[:, column]]
        chosen = [piece for piece, time in zip(pieces, times, strict=True) for _ in range(time)]
        if chosen:
            left, right = np.concatenate([x for x, _ in chosen], -1), np.concatenate([x + y for x, y in chosen], -1)
            if np.ptp(left[0]) > 0:
                assert found[column] == pytest.approx([np.corrcoef(left[layer], right[layer])[0, 1] for layer in range(3)], rel=1e-6)
