"""Intervals and p values from few documents: worked out by hand, and against a plain computation with scipy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import optimize, stats

from headscope.stats.inference import FEWEST, Support, interval, p_value, reason, share_interval


def test_support_equals_values_worked_out_by_hand() -> None:
    """Six documents of equal weight are six effective ones. One of weight 5 and five of 1 are (5 + 5)^2 / (25 + 5) =
    10/3. A document of weight 0 does not count.
    """
    weights = np.array([[1.0, 5, 5], [1, 1, 0], [1, 1, 0], [1, 1, 0], [1, 1, 0], [1, 1, 0]])
    support = Support.of(weights)
    assert support.documents.tolist() == [6, 6, 1]
    assert support.effective == pytest.approx([6, 10 / 3, 1])
    assert support.usable.tolist() == [True, True, False]
    assert Support.alike(7).effective == 7
    one, other = Support.of(np.ones(9)), Support.of(np.ones(5))
    assert (int(one.both(other).documents), float(one.both(other).effective)) == (5, 5)
    apart = one.apart(other, (np.array(3.0), np.array(1.0)))  # 16 / (9/9 + 1/5)
    assert int(apart.documents) == 5
    assert float(apart.effective) == pytest.approx(16 / 1.2)


def test_support_is_estimated_from_replicates() -> None:
    """The variance of a total weight is the sum of squared weights. One document of weight 10 and ten of 1 are 20^2 /
    110 = 3.6 effective ones.
    """
    rng = np.random.default_rng(0)
    weights = np.array([10.0] + [1] * 10)
    totals = np.concatenate([[20.0], rng.poisson(1, (200_000, 11)) @ weights])
    support = Support.drawn(np.stack([totals, np.concatenate([[4.0], 4.0 * rng.poisson(1, 200_000)]), np.zeros(200_001)], 1))
    assert support.effective[0] == pytest.approx(400 / 110, rel=0.02)
    assert support.documents.tolist() == [4, 1, 0]
    assert support.usable.tolist() == [False, False, False]


def plain(value: float, replicates: NDArray[np.float64], df: float) -> tuple[float, float, float]:
    """Return the interval, found by a search for the values that are not rejected, and p, with scipy's t and the
    skewness.
    """
    error = np.std(replicates, ddof=1)
    skew = np.clip(np.mean((replicates - replicates.mean()) ** 3) / error**3, -0.4, 0.4)

    def p_of(null: float) -> float:
        t = (value - null) / error
        hall = t + skew * t**2 / 3 + skew**2 * t**3 / 27 + skew / 6
        far = min(abs(t), max(hall * np.sign(t), abs(t) / 2))
        return float(2 * stats.t.sf(far, df))

    low, high = (optimize.brentq(lambda null: p_of(null) - 0.05, value, value + side * 12 * error) for side in (-1, 1))
    return float(low), float(high), p_of(0.0)


@pytest.mark.parametrize("bend", [0.0, 0.5, -0.8, -2.0])
def test_the_interval_contains_what_the_test_does_not_reject(bend: float) -> None:
    rng = np.random.default_rng(4)
    normal = rng.standard_normal(400)
    replicates = 1.5 + normal + bend * (normal**2 - 1)
    support = Support.alike(8)
    low, high, p = plain(1.5, replicates, 8)
    found = interval(np.array(1.5), replicates, support)
    assert found == pytest.approx((low, high), abs=1e-6)
    assert p_value(np.array(1.5), replicates, support) == pytest.approx(p)


def test_the_interval_without_skewness_is_that_of_students_t() -> None:
    replicates = np.array([-1.0, 1] * 50)[:, None] * [1.0, 2]
    error = np.sqrt(100 / 99)
    low, high = interval(np.array([0.0, 0]), replicates, Support.alike(10))
    assert high == pytest.approx([error * 2.228139, 2 * error * 2.228139])  # t of 10 degrees of freedom, from a table
    assert low == pytest.approx(-high)
    assert p_value(np.array([error * 2.228139, 0]), replicates, Support.alike(10)) == pytest.approx([0.05, 1])
    assert interval(np.array([0.0, 0]), replicates, Support.alike(10), within=(-1, 1))[1].tolist() == [1, 1]


def test_too_few_documents_have_neither_interval_nor_p() -> None:
    replicates = np.arange(40.0)
    few = Support.alike(FEWEST - 1)
    assert np.isnan([*interval(np.array(20.0), replicates, few), p_value(np.array(20.0), replicates, few)]).all()
    assert np.isfinite(interval(np.array(20.0), replicates, Support.alike(FEWEST))).all()
    most = Support.of(np.array([100.0] + [1] * 9))  # 109^2 / 10009 = 1.19 effective documents
    assert np.isnan(interval(np.array(20.0), replicates, most)).all()
    assert reason(1) == "1 document: intervals and p values need 6 or more"
    assert reason(3) == "3 documents: intervals and p values need 6 or more"
    assert reason(9) == "one document has nearly all cases, so there is no interval"


def test_missing_replicates_are_left_out_and_equal_ones_give_the_sign_test() -> None:
    """NaN is a replicate that drew no case; it is left out. Eight documents that all agree have the p of the sign test,
    2 / 2^8.
    """
    replicates = np.stack([np.full(30, 2.0), np.zeros(30), np.tile([1.0, 3, np.nan], 10), np.full(30, np.nan)], 1)
    value = np.array([2.0, 0, 2, 2])
    low, high = interval(value, replicates, Support.alike(8))
    error = np.sqrt(20 / 19)
    assert low == pytest.approx([2, 0, 2 - 2.306004 * error, np.nan], nan_ok=True)
    assert high == pytest.approx([2, 0, 2 + 2.306004 * error, np.nan], nan_ok=True)
    assert p_value(value, replicates, Support.alike(8)) == pytest.approx([2 / 256, 1, 2 * stats.t.sf(2 / error, 8), np.nan], nan_ok=True)


def test_skewness_widens_one_side_to_at_most_twice_the_width_of_t() -> None:
    """One of 100 replicates is far below the others. Their skewness is -10, limited to -.4. For 10 documents Hall's
    bound is then 3 / .4 (1 - (1 - .4 (2.228139 + .4 / 6))^(1/3)) = 4.2406 standard errors below. For 6 documents (t =
    2.446912) it would be 8.8, limited to 2 t.
    """
    replicates = np.array([0.0] * 99 + [-100])
    error = np.std(replicates, ddof=1)
    for documents, t, below in ((10, 2.228139, 4.2406), (6, 2.446912, 2 * 2.446912)):
        low, high = interval(np.array(0.0), replicates, Support.alike(documents))
        assert (low / error, high / error) == (pytest.approx(-below, abs=1e-3), pytest.approx(t, abs=1e-5))


def test_shares_of_0_and_1_have_exact_binomial_bounds() -> None:
    """All 8 documents agree. The probability of this is .025 if the share is .63 (.63^8 = .025), so .63 is the bound.
    Other shares have the usual interval.
    """
    value = np.array([1.0, 0, 0.5])
    replicates = np.stack([np.ones(40), np.zeros(40), np.tile([0.4, 0.6], 20)], 1)
    support = Support.of(np.ones((8, 3)))
    low, high = share_interval(value, replicates, support)
    usual = interval(value, replicates, support, (0, 1))
    assert low == pytest.approx([stats.beta.ppf(0.025, 8, 1), 0, usual[0][2]])
    assert high == pytest.approx([1, stats.beta.ppf(0.975, 1, 8), usual[1][2]])
    assert np.isnan(share_interval(np.array(1.0), np.ones(40), Support.alike(5))).all()


def test_documents_are_counted_if_their_groups_are_resampled() -> None:
    support = Support.in_groups(np.array([4, 4, 0, 4]), 5)
    assert (int(support.documents), float(support.effective)) == (5, 3)
    assert int(Support.in_groups(np.array([4, 4, 0, 4]), None).documents) == 3


def test_a_value_beyond_its_limits_is_an_error() -> None:
    replicates = np.full((5, 1), -0.2)
    support = Support.of(np.ones((8, 1)))
    with pytest.raises(ValueError, match="limits"):
        interval(np.array([-0.2]), replicates, support, (0, np.inf))
    low, high = interval(np.array([-0.004]), replicates, support, (0, np.inf))  # a rounding error is accepted
    assert low <= -0.004 <= high
