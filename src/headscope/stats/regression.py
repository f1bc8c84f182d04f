"""The difference between two classes with other variables held fixed: least squares, and matched pairs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headscope.stats.bootstrap import document_weights
from headscope.stats.inference import Support, interval, p_value
from headscope.stats.significance import two_sided

if TYPE_CHECKING:
    from jaxtyping import Float, Float64

SINGULAR = 1e12  # the condition number from which the terms of a replicate count as collinear
CALIPER = 0.1  # a share of the first value, but at least 1


@dataclass(frozen=True)
class LeastSquares:
    """Coefficients with standard errors, t and two-sided p: one row per term, one column per column of values.

    `spread` is the standard deviation of the residuals, per column of values. A coefficient divided by it is an effect
    size.
    """

    coefficients: Float64[np.ndarray, "term *shape"]
    errors: Float64[np.ndarray, "term *shape"]
    t: Float64[np.ndarray, "term *shape"]
    p: Float64[np.ndarray, "term *shape"]
    df: int
    reason: str
    spread: Float64[np.ndarray, "*shape"]


def ols(design: Float[np.ndarray, "n term"], values: Float[np.ndarray, "n *shape"]) -> LeastSquares:
    """The least-squares fit of every column of values to the design, which must include a constant if one is wanted.

    Observations with a NaN anywhere are excluded from all columns. Everything is NaN, with a reason, if terms are
    collinear or there are no more observations than terms.
    """
    terms = np.asarray(design, dtype=np.float64)
    wanted = np.asarray(values, dtype=np.float64)
    flat = wanted.reshape(len(wanted), -1)
    complete = np.isfinite(terms).all(1) & np.isfinite(flat).all(1)
    terms, flat = terms[complete], flat[complete]
    n, size = terms.shape
    shape = (size, *wanted.shape[1:])
    df = n - size
    if df < 1 or np.linalg.matrix_rank(terms) < size:
        nothing = np.full(shape, np.nan)
        why = "too few observations" if df < 1 else "terms that cannot be distinguished"
        return LeastSquares(nothing, nothing, nothing, nothing, df, why, np.full(shape[1:], np.nan))
    q, r = np.linalg.qr(terms)
    inverse = np.linalg.inv(r)
    coefficients = inverse @ (q.T @ flat)
    left = flat - terms @ coefficients
    spread = np.sqrt((left**2).sum(0) / df)
    errors = np.sqrt((inverse**2).sum(1))[:, None] * spread
    with np.errstate(invalid="ignore", divide="ignore"):
        t = np.where(errors > 0, coefficients / errors, np.nan)
    p = two_sided(t, np.full(t.shape, float(df)))
    return LeastSquares(
        coefficients.reshape(shape), errors.reshape(shape), t.reshape(shape), p.reshape(shape), df, "", spread.reshape(shape[1:])
    )


def ols_interval(
    design: Float[np.ndarray, "n term"],
    values: Float[np.ndarray, "n column"],
    documents: Sequence[str],
    replicates: int = 1000,
    seed: int = 0,
) -> tuple[Float64[np.ndarray, "term column"], Float64[np.ndarray, "term column"], Float64[np.ndarray, "term column"]]:
    """Bounds and p of the coefficients by the Poisson bootstrap over documents; NaN if there are too few documents."""
    units, drawn = document_weights(documents, replicates, seed)
    weights = drawn[units]
    terms, wanted = np.asarray(design, dtype=np.float64), np.asarray(values, dtype=np.float64)
    products = np.einsum("nr,ni,nj->rij", weights, terms, terms, optimize=True)
    sums = np.einsum("nr,ni,nc->ric", weights, terms, wanted, optimize=True)
    coefficients = np.full(sums.shape, np.nan)
    fine = np.linalg.cond(products) < SINGULAR
    coefficients[fine] = np.linalg.solve(products[fine], sums[fine])
    support = Support.of(np.bincount(units, minlength=len(drawn)))
    return *interval(coefficients[0], coefficients[1:], support), p_value(coefficients[0], coefficients[1:], support)


def matched(x: Sequence[float], y: Sequence[float], caliper: float = CALIPER) -> list[tuple[int, int]]:
    """Index pairs (of x, of y), each index at most once: each x in turn takes the nearest remaining y within the
    caliper.

    Of two equally near values the smaller is taken, and of equal values the first.
    """
    left = sorted((value, place) for place, value in enumerate(y))
    pairs = []
    for place, value in enumerate(x):
        at = bisect_left(left, (value, -1))
        near = [number for number in (at - 1, at) if 0 <= number < len(left)]
        if not near:
            break
        best = min(near, key=lambda number: (abs(left[number][0] - value), left[number]))
        best = bisect_left(left, (left[best][0], -1))
        if abs(left[best][0] - value) <= max(1.0, caliper * abs(value)):
            pairs.append((place, left.pop(best)[1]))
    return pairs
