"""Least squares against the normal equations, scipy, and matches worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from headscope.stats.bootstrap import poisson_weights
from headscope.stats.inference import Support, interval, p_value
from headscope.stats.regression import matched, ols, ols_interval


def test_a_regression_line_equals_scipys() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=20), rng.normal(size=(20, 3))
    fit = ols(np.stack([np.ones(20), x], 1), y)
    for column in range(3):
        theirs = stats.linregress(x, y[:, column])
        assert fit.coefficients[:, column] == pytest.approx([theirs.intercept, theirs.slope])
        assert fit.errors[:, column] == pytest.approx([theirs.intercept_stderr, theirs.stderr])
        assert fit.p[1, column] == pytest.approx(theirs.pvalue)
    assert fit.df == 18


def test_coefficients_and_t_equal_those_of_the_normal_equations() -> None:
    rng = np.random.default_rng(1)
    design, y = np.column_stack([np.ones(15), rng.normal(size=(15, 2))]), rng.normal(size=15)
    fit = ols(design, y)
    inverse = np.linalg.inv(design.T @ design)
    beta = inverse @ design.T @ y
    errors = np.sqrt(np.diag(inverse) * ((y - design @ beta) ** 2).sum() / 12)
    assert fit.coefficients == pytest.approx(beta)
    assert fit.t == pytest.approx(beta / errors)


def test_a_class_has_no_effect_if_distance_explains_everything() -> None:
    """y is 2 x distance, and the classes differ only in distance, so the class has no effect."""
    distance = np.array([1.0, 2, 3, 4, 5, 6, 8, 9])
    is_same = np.array([1.0, 1, 1, 1, 0, 0, 0, 0])
    noise = np.array([1.0, -1, -1, 1, 1, -1, -1, 1]) * 1e-3
    fit = ols(np.stack([np.ones(8), is_same, distance], 1), 2 * distance + noise)
    assert fit.coefficients[2] == pytest.approx(2, abs=1e-3)
    assert fit.coefficients[1] == pytest.approx(0, abs=1e-2)
    assert fit.p[1] > 0.05


def test_a_reason_is_given_if_there_is_no_fit() -> None:
    assert ols(np.ones((2, 2)), np.ones(2)).reason == "too few observations"
    twice = ols(np.ones((5, 2)), np.arange(5.0))
    assert twice.reason == "terms that cannot be distinguished"
    assert np.isnan(twice.t).all()
    with_gap = ols(np.stack([np.ones(6), np.arange(6.0)], 1), np.array([0, 1, 2, 3, 4.5, np.nan]))
    assert with_gap.df == 3


def test_bounds_equal_those_of_fits_to_resampled_documents() -> None:
    rng = np.random.default_rng(2)
    documents = [f"d{number % 7}" for number in range(30)]
    design, y = np.column_stack([np.ones(30), rng.normal(size=(30, 2))]), rng.normal(size=(30, 2))
    low, high, p = ols_interval(design, y, documents, 60, 4)
    weights = poisson_weights([f"d{number}" for number in range(7)], 60, 4)[:, 1:].astype(int)
    fits = []
    for column in range(60):
        drawn = [place for place in range(30) for _ in range(weights[place % 7, column])]
        if len(drawn) > 3:
            fits.append(np.linalg.lstsq(design[drawn], y[drawn], rcond=None)[0])
    whole, support = np.linalg.lstsq(design, y, rcond=None)[0], Support.of(np.array([5, 5, 4, 4, 4, 4, 4]))
    expected = interval(whole, np.array(fits), support)
    assert low == pytest.approx(expected[0])
    assert high == pytest.approx(expected[1])
    assert p == pytest.approx(p_value(whole, np.array(fits), support))
    assert np.isnan(ols_interval(design, y, ["d"] * 30, 20)[0]).all()
    assert np.isnan(ols_interval(np.ones((30, 2)), y, documents, 20)[0]).all()


def test_matches_equal_those_worked_out_by_hand() -> None:
    assert matched([5, 5, 9], [4, 6, 5, 20]) == [(0, 2), (1, 0)]  # 5 matches 5, the second 5 the smaller of 4 and 6, 9 nothing
    assert matched([100], [91, 108]) == [(0, 1)]
    assert matched([100], [89, 111]) == []
    assert matched([], [1]) == []
    assert matched([1, 2], []) == []
    assert matched([3, 3, 3], [3, 3]) == [(0, 0), (1, 1)]
