"""Tests of a difference between two samples, and corrections for multiple testing.

Samples are columns: `x[i, ...]` is observation i, and every column after the first axis (layers, classes) is tested
separately. NaN means not observed: it is ignored in its column, and every result has its number of observations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from headscope.errors import MeasureError

if TYPE_CHECKING:
    from jaxtyping import Float, Float64, Int64

TOO_FEW = "fewer than 2 observations"
CONSTANT = "no variance"


@dataclass(frozen=True)
class TwoSampleTest:
    """The mean of x minus that of y, with t, its degrees of freedom, the two-sided p and Cohen's d, per column.

    `n_x` and `n_y` are numbers of observations or, in a paired test, of pairs. `reason` says why t is NaN, and is empty
    if it is not.
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
        """The result of each column as plain numbers, in order."""
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
        valid = np.isfinite(values)
        n = valid.sum(0)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = np.where(valid, values, 0).sum(0) / n
            variance = (np.where(valid, values - mean, 0) ** 2).sum(0) / (n - 1)
        # Equal numbers have no variance, even if their mean is rounded.
        most, least = np.where(valid, values, -np.inf).max(0, initial=-np.inf), np.where(valid, values, np.inf).min(0, initial=np.inf)
        return cls(n, np.where(n > 0, mean, np.nan), np.where(n > 1, np.where(most == least, 0, variance), np.nan))


def welch(x: Float[np.ndarray, "n *shape"], y: Float[np.ndarray, "m *shape"]) -> TwoSampleTest:
    """Welch's two-sided t-test of independent samples; d divides by the pooled standard deviation."""
    first, second = (_Moments.of(np.asarray(sample, dtype=np.float64)) for sample in (x, y))
    if first.mean.shape != second.mean.shape:
        raise MeasureError(
            f"samples have columns of shape {first.mean.shape} and {second.mean.shape}", "Give both the same layers in the same order"
        )
    difference = first.mean - second.mean
    with np.errstate(invalid="ignore", divide="ignore"):
        a, b = first.variance / first.n, second.variance / second.n
        error = np.sqrt(a + b)
        df = (a + b) ** 2 / (a**2 / (first.n - 1) + b**2 / (second.n - 1))
        pooled = ((first.n - 1) * first.variance + (second.n - 1) * second.variance) / (first.n + second.n - 2)
        d = difference / np.sqrt(pooled)
    few = np.minimum(first.n, second.n) < 2
    return _tested(first.mean, second.mean, difference, error, df, d, first.n, second.n, few)


def paired(x: Float[np.ndarray, "n *shape"], y: Float[np.ndarray, "n *shape"]) -> TwoSampleTest:
    """The paired two-sided t-test over observations that both samples have; d is that of the differences (d_z)."""
    first, second = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if first.shape != second.shape:
        raise MeasureError(f"paired samples are of shape {first.shape} and {second.shape}", "Give both for the same observations")
    both = np.isfinite(first) & np.isfinite(second)
    gap = _Moments.of(np.where(both, first - second, np.nan))
    means = [_Moments.of(np.where(both, sample, np.nan)).mean for sample in (first, second)]
    with np.errstate(invalid="ignore", divide="ignore"):
        error = np.sqrt(gap.variance / gap.n)
        d = gap.mean / np.sqrt(gap.variance)
    return _tested(means[0], means[1], gap.mean, error, (gap.n - 1).astype(np.float64), d, gap.n, gap.n, gap.n < 2)


def two_sided(t: Float64[np.ndarray, "*shape"], df: Float64[np.ndarray, "*shape"]) -> Float64[np.ndarray, "*shape"]:
    """The two-sided p of t; never 0, even if it is too small for a float."""
    from scipy.special import stdtr

    p: Float64[np.ndarray, "*shape"] = np.maximum(2 * stdtr(df, -np.abs(t)), np.finfo(np.float64).tiny)
    return p


def holm(p: Float[np.ndarray, "test"]) -> Float64[np.ndarray, "test"]:
    """P-values adjusted by Holm's method, which controls the family-wise error rate. NaN, not tested, stays NaN."""
    return _stepwise(p, down=True)


def benjamini_hochberg(p: Float[np.ndarray, "test"]) -> Float64[np.ndarray, "test"]:
    """P-values adjusted to control the expected share of false positives among positives. NaN, not
    tested, stays NaN.
    """
    return _stepwise(p, down=False)


def _stepwise(p: Float[np.ndarray, "test"], down: bool) -> Float64[np.ndarray, "test"]:
    values = np.asarray(p, dtype=np.float64)
    adjusted = np.full(values.shape, np.nan)
    tested = np.flatnonzero(np.isfinite(values))
    order = tested[np.argsort(values[tested], kind="stable")]
    size = len(order)
    if down:
        steps = np.maximum.accumulate(values[order] * (size - np.arange(size)))
    else:
        steps = np.minimum.accumulate((values[order] * size / np.arange(1, size + 1))[::-1])[::-1]
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
    constant = ~few & (error == 0)
    fine = ~few & ~constant
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.where(fine, difference / error, np.nan)
    df, d = np.where(fine, df, np.nan), np.where(fine, d, np.nan)
    reason = np.where(few, TOO_FEW, np.where(constant, CONSTANT, ""))
    return TwoSampleTest(mean_x, mean_y, difference, t, df, two_sided(t, df), d, n_x, n_y, reason)
