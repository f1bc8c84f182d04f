"""Tests of a difference between two samples, and corrections for making many of them (METHODS: statistics shared by
all).

Samples are columns: `x[i, ...]` is observation i, and everything after the first axis (layers, classes) is tested on
its own. NaN is what was not observed: it is left out where it stands, and every result says how many observations it
rests on.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from headscope.errors import MeasureError

if TYPE_CHECKING:
    from jaxtyping import Float, Float64, Int64

TOO_FEW = "fewer than 2 observations"
CONSTANT = "no variance"


@dataclass(frozen=True)
class TwoSampleTest:
    """The mean of x minus that of y, with Student's t, its degrees of freedom, the two-sided p, and Cohen's d; one of
    each a column.

    `n_x` and `n_y` are observations, or in a paired test pairs. `reason` says why t is NaN, and is empty where it is
    not.
    """

    mean_x: Float64[np.ndarray, "*shape"]
    mean_y: Float64[np.ndarray, "*shape"]
    difference: Float64[np.ndarray, "*shape"]
    t: Float64[np.ndarray, "*shape"]
    df: Float64[np.ndarray, "*shape"]
    p: Float64[np.ndarray, "*shape"]
    d: Float64[np.ndarray, "*shape"]
    n_x: Int64[np.ndarray, "*shape"]
    n_y: Int64[np.ndarray, "*shape"]
    reason: np.ndarray

    def columns(self) -> Iterator[dict[str, float | int | str]]:
        """Each column as plain numbers, in order."""
        flat = {field.name: np.ravel(getattr(self, field.name)).tolist() for field in fields(self)}
        for values in zip(*flat.values(), strict=True):
            yield dict(zip(flat, values, strict=True))


@dataclass(frozen=True)
class _Moments:
    n: Int64[np.ndarray, "*shape"]
    mean: Float64[np.ndarray, "*shape"]
    variance: Float64[np.ndarray, "*shape"]  # of the sample: divided by n - 1

    @classmethod
    def of(cls, values: Float64[np.ndarray, "n *shape"]) -> _Moments:
        given = np.isfinite(values)
        n = given.sum(0)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(given, values, 0).sum(0) / n
            variance = (np.where(given, values - mean, 0) ** 2).sum(0) / (n - 1)
        # Equal numbers vary by nothing, whatever their mean was rounded to.
        most, least = np.where(given, values, -np.inf).max(0, initial=-np.inf), np.where(given, values, np.inf).min(0, initial=np.inf)
        return cls(n, np.where(n > 0, mean, np.nan), np.where(n > 1, np.where(most == least, 0, variance), np.nan))


def welch(x: Float[np.ndarray, "n *shape"], y: Float[np.ndarray, "m *shape"]) -> TwoSampleTest:
    """Welch's t-test, two-sided, of independent samples whose variances may differ; d divides by the pooled standard
    deviation.
    """
    one, other = (_Moments.of(np.asarray(sample, dtype=np.float64)) for sample in (x, y))
    if one.mean.shape != other.mean.shape:
        raise MeasureError(
            f"samples have columns of shape {one.mean.shape} and {other.mean.shape}", "Give both the same layers in the same order"
        )
    difference = one.mean - other.mean
    with np.errstate(invalid="ignore", divide="ignore"):
        a, b = one.variance / one.n, other.variance / other.n
        error = np.sqrt(a + b)
        df = (a + b) ** 2 / (a**2 / (one.n - 1) + b**2 / (other.n - 1))
        pooled = ((one.n - 1) * one.variance + (other.n - 1) * other.variance) / (one.n + other.n - 2)
        d = difference / np.sqrt(pooled)
    few = np.minimum(one.n, other.n) < 2
    return _tested(one.mean, other.mean, difference, error, df, d, one.n, other.n, few)


def paired(x: Float[np.ndarray, "n *shape"], y: Float[np.ndarray, "n *shape"]) -> TwoSampleTest:
    """The paired t-test, two-sided, over the observations that both samples have; d is that of the differences
    (d_z).
    """
    one, other = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if one.shape != other.shape:
        raise MeasureError(f"paired samples are of shape {one.shape} and {other.shape}", "Give both for the same observations")
    both = np.isfinite(one) & np.isfinite(other)
    gap = _Moments.of(np.where(both, one - other, np.nan))
    means = [_Moments.of(np.where(both, sample, np.nan)).mean for sample in (one, other)]
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt(gap.variance / gap.n)
        d = gap.mean / np.sqrt(gap.variance)
    return _tested(means[0], means[1], gap.mean, error, (gap.n - 1).astype(np.float64), d, gap.n, gap.n, gap.n < 2)


def cohens_d(x: Float[np.ndarray, "n *shape"], y: Float[np.ndarray, "m *shape"]) -> Float64[np.ndarray, "*shape"]:
    """The difference of means in pooled standard deviations; NaN where there are fewer than two observations or no
    variance.
    """
    return welch(x, y).d


def two_sided(t: Float64[np.ndarray, "*shape"], df: Float64[np.ndarray, "*shape"]) -> Float64[np.ndarray, "*shape"]:
    """How likely a t as far from 0 is, if there is no difference; never 0, also where that is too small to be
    written.
    """
    from scipy.special import stdtr

    p: Float64[np.ndarray, "*shape"] = np.maximum(2 * stdtr(df, -np.abs(t)), np.finfo(np.float64).tiny)
    return p


def holm(p: Float[np.ndarray, "test"]) -> Float64[np.ndarray, "test"]:
    """P-values adjusted so that the chance of even one false alarm stays below the level; what is NaN was not
    tested, and stays.
    """
    return _stepwise(p, down=True)


def benjamini_hochberg(p: Float[np.ndarray, "test"]) -> Float64[np.ndarray, "test"]:
    """P-values adjusted so that the expected share of false alarms among alarms stays below the level; NaN stays."""
    return _stepwise(p, down=False)


def _stepwise(p: Float[np.ndarray, "test"], down: bool) -> Float64[np.ndarray, "test"]:
    given = np.asarray(p, dtype=np.float64)
    adjusted = np.full(given.shape, np.nan)
    tested = np.flatnonzero(np.isfinite(given))
    order = tested[np.argsort(given[tested], kind="stable")]
    size = len(order)
    if down:
        steps = np.maximum.accumulate(given[order] * (size - np.arange(size)))
    else:
        steps = np.minimum.accumulate((given[order] * size / np.arange(1, size + 1))[::-1])[::-1]
    adjusted[order] = np.minimum(steps, 1)
    return adjusted


def _tested(
    mean_x: np.ndarray,
    mean_y: np.ndarray,
    difference: np.ndarray,
    error: np.ndarray,
    df: np.ndarray,
    d: np.ndarray,
    n_x: np.ndarray,
    n_y: np.ndarray,
    few: np.ndarray,
) -> TwoSampleTest:
    """A comparison; NaN, with the reason, where no test is possible."""
    constant = ~few & (error == 0)
    fine = ~few & ~constant
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.where(fine, difference / error, np.nan)
    df, d = np.where(fine, df, np.nan), np.where(fine, d, np.nan)
    reason = np.where(few, TOO_FEW, np.where(constant, CONSTANT, ""))
    found = TwoSampleTest(mean_x, mean_y, difference, t, df, t, d, n_x, n_y, reason)
    return replace(found, p=two_sided(t, df))
