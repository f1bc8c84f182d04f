"""Tests of differences against scipy's, and against formulas written out."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from headscope.errors import MeasureError
from headscope.stats.significance import CONSTANT, TOO_FEW, benjamini_hochberg, holm, paired, two_sided, welch

Array = NDArray[np.float64]


def samples(seed: int, n: int, m: int, layers: int = 4) -> tuple[Array, Array]:
    rng = np.random.default_rng(seed)
    return rng.normal(1, 1, (n, layers)), rng.normal(0.5, 3, (m, layers))


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 30), m=st.integers(2, 30))
@settings(max_examples=30, deadline=None)
def test_welch_equals_scipys_test_in_every_layer(seed: int, n: int, m: int) -> None:
    x, y = samples(seed, n, m)
    found, theirs = welch(x, y), stats.ttest_ind(x, y, equal_var=False)
    assert found.t == pytest.approx(theirs.statistic)
    assert found.p == pytest.approx(theirs.pvalue)
    assert found.df == pytest.approx(theirs.df)
    assert found.difference == pytest.approx(x.mean(0) - y.mean(0))
    assert (found.n_x == n).all()
    assert (found.n_y == m).all()
    assert set(found.reason) == {""}


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(2, 30))
@settings(max_examples=20, deadline=None)
def test_the_paired_test_equals_scipys(seed: int, n: int) -> None:
    x, y = samples(seed, n, n)
    found, theirs = paired(x, y), stats.ttest_rel(x, y)
    assert found.t == pytest.approx(theirs.statistic)
    assert found.p == pytest.approx(theirs.pvalue)
    assert (found.df == n - 1).all()
    assert found.d == pytest.approx((x - y).mean(0) / (x - y).std(0, ddof=1))


def test_welch_equals_values_worked_out_by_hand() -> None:
    """Means 2 and 5, variances 1 and 4, three values each: t = -3 / sqrt(5/3), df = (5/3)^2 / ((1/3)^2/2 + (4/3)^2/2) =
    50/17.
    """
    found = welch(np.array([[1.0], [2], [3]]), np.array([[3.0], [5], [7]]))
    assert found.t[0] == pytest.approx(-3 / (5 / 3) ** 0.5)
    assert found.df[0] == pytest.approx(50 / 17)
    assert found.d[0] == pytest.approx(-3 / 2.5**0.5)
    assert welch(np.array([1.0, 2, 3]), np.array([3.0, 5, 7])).d == pytest.approx(-3 / 2.5**0.5)


def test_a_missing_value_is_left_out_of_its_layer_only() -> None:
    x, y = samples(1, 9, 7, 2)
    x[[2, 5], 0], y[0, 1] = np.nan, np.nan
    found = welch(x, y)
    assert found.n_x.tolist() == [7, 9]
    assert found.n_y.tolist() == [7, 6]
    for layer in range(2):
        theirs = stats.ttest_ind(*(side[~np.isnan(side[:, layer]), layer] for side in (x, y)), equal_var=False)
        assert found.t[layer] == pytest.approx(theirs.statistic)
    z = samples(2, 9, 9, 2)[1]
    z[2, 0], z[8, 0], z[8, 1] = np.nan, np.nan, np.nan
    both = paired(x, z)
    assert both.n_x.tolist() == [6, 8]
    fine = ~np.isnan(x[:, 0]) & ~np.isnan(z[:, 0])
    assert both.t[0] == pytest.approx(stats.ttest_rel(x[fine, 0], z[fine, 0]).statistic)
    assert both.mean_x[0] == pytest.approx(x[fine, 0].mean())


def test_a_reason_is_given_if_there_is_no_test() -> None:
    one, two, same, varied = np.array([1.0]), np.array([1.0, 2.0]), np.full(7, 0.1), np.array([0.1, 0.2, 0.4])
    assert str(welch(one, two).reason) == TOO_FEW
    assert np.isnan(welch(one, two).t)
    assert welch(one, two).difference == pytest.approx(-0.5)
    assert str(welch(np.zeros(0), two).reason) == TOO_FEW
    assert str(welch(same, np.full(5, 0.3)).reason) == CONSTANT
    assert np.isnan(welch(same, np.full(5, 0.3)).p)
    # The mean of seven values of 0.1 differs from 0.1 in the last bit. Their variance still counts as 0, and there is
    # a test against a sample that varies.
    assert welch(same, varied).t == pytest.approx((0.1 - 0.7 / 3) / (varied.var(ddof=1) / 3) ** 0.5)
    assert str(paired(np.array([1.0, 2, 3]), np.array([0.0, 1, 2])).reason) == CONSTANT
    assert str(paired(one, one).reason) == TOO_FEW


def test_columns_are_plain_numbers() -> None:
    rows = list(welch(*samples(3, 4, 5, 3)).columns())
    assert len(rows) == 3
    assert rows[0]["n_x"] == 4
    assert rows[0]["reason"] == ""
    assert isinstance(rows[0]["t"], float)


def test_samples_of_different_shapes_are_refused() -> None:
    with pytest.raises(MeasureError, match="the same layers"):
        welch(np.zeros((3, 2)), np.zeros((3, 4)))
    with pytest.raises(MeasureError, match="same observations"):
        paired(np.zeros((3, 2)), np.zeros((4, 2)))


def test_corrections_equal_values_worked_out_by_hand() -> None:
    """Holm, from the smallest p: 4 x .01 = .04, 3 x .02 = .06, 2 x .03 = .06, and 1 x .04, which is raised to .06."""
    assert holm(np.array([0.04, 0.01, 0.03, 0.02])) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert benjamini_hochberg(np.array([0.04, 0.01, 0.03, 0.02])) == pytest.approx([0.04, 0.04, 0.04, 0.04])
    assert holm(np.array([0.6, 0.7])) == pytest.approx([1, 1])
    assert holm(np.array([])).tolist() == []
    with_gap = holm(np.array([0.01, np.nan, 0.02]))
    assert with_gap[[0, 2]] == pytest.approx([0.02, 0.02])
    assert np.isnan(with_gap[1])


@given(p=st.lists(st.floats(0, 1), min_size=1, max_size=12))
@settings(max_examples=50, deadline=None)
def test_corrections_equal_scipys_and_the_definition(p: list[float]) -> None:
    assert benjamini_hochberg(np.array(p)) == pytest.approx(stats.false_discovery_control(p), abs=1e-12)
    ordered = sorted(range(len(p)), key=p.__getitem__)
    for level in (0.01, 0.05, 0.3):  # by definition: reject from the smallest p until one exceeds its share of the level
        rejected = set()
        for step, place in enumerate(ordered):
            if p[place] * (len(p) - step) > level:
                break
            rejected.add(place)
        assert set(np.flatnonzero(holm(np.array(p)) <= level)) == rejected


def test_p_is_never_0() -> None:
    assert 0 < two_sided(np.array(500.0), np.array(1e6)) < 1e-300
    assert np.isnan(two_sided(np.array(np.nan), np.array(3.0)))
