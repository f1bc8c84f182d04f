"""Logistic regression against plain minimisation and against numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import minimize

from headscope.stats.logistic import log_losses, logistic, one_by_one


def data(n: int = 400, k: int = 5, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, k)).astype(np.float32)
    logits = x @ np.linspace(-1, 2, k) - 0.7
    return x, rng.random(n) < 1 / (1 + np.exp(-logits))


def plainly(x: np.ndarray, y: np.ndarray, penalty: float, weights: np.ndarray) -> np.ndarray:
    def loss(at: np.ndarray) -> float:
        logits = x.astype(np.float64) @ at[:-1] + at[-1]
        return float((weights * np.log1p(np.exp(np.where(y, -logits, logits)))).sum() + penalty / 2 * (at[:-1] ** 2).sum())

    return np.asarray(minimize(loss, np.zeros(x.shape[1] + 1), method="BFGS", options={"gtol": 1e-7}).x)


@pytest.mark.parametrize("penalty", [0.1, 1.0, 30.0])
def test_logistic_regression_equals_plain_minimisation(penalty: float) -> None:
    x, y = data()
    weights = np.where(y, 2.0, 1.0)
    found = logistic(x, y, penalty, weights)
    assert_allclose([*found.coefficients, found.intercept], plainly(x, y, penalty, weights), atol=2e-5)
    assert_allclose(found.logits(x), x @ found.coefficients + found.intercept)


def test_one_by_one_equals_a_regression_on_each_feature() -> None:
    x, y = data(300, 4)
    slopes, bases = one_by_one(x, y, 1.0)
    for column in range(4):
        assert_allclose([slopes[column], bases[column]], plainly(x[:, [column]], y, 1.0, np.ones(len(y))), atol=2e-5)


def test_separable_classes_and_constant_features_have_finite_coefficients() -> None:
    """With a penalty, a perfect feature has a finite coefficient and a constant one a coefficient of 0. Without
    positive examples, the predicted probability is near 0.
    """
    x = np.stack([np.repeat([-1.0, 1.0], 50), np.ones(100)], 1)
    y = np.repeat([False, True], 50)
    found = logistic(x, y, 1.0)
    assert_allclose([*found.coefficients, found.intercept], plainly(x, y, 1.0, np.ones(100)), atol=1e-4)
    slopes, _ = one_by_one(x, y, 1.0)
    assert slopes[0] == pytest.approx(found.coefficients[0], abs=1e-4)
    assert slopes[1] == pytest.approx(0, abs=1e-6)
    assert logistic(x, np.zeros(100, dtype=bool)).intercept < -10


def test_log_losses_equal_those_worked_out_by_hand() -> None:
    assert_allclose(log_losses(np.array([0.0, np.log(3), 800]), np.array([1.0, 0, 0])), [np.log(2), np.log(4), 800])
