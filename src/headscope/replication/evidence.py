"""How sure our numbers are: intervals widened for a choice among several, differences of two numbers, correlations
over heads.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float64

LEVEL = 0.05
PERMUTATIONS = 2000
Bounds = tuple[float, float]


def widened(value: float, bounds: Bounds, several: int = 1, documents: int | None = None) -> Bounds:
    """A 95 % interval at the level that holds for the best, or for all, of several numbers at once (Bonferroni).

    Tails are those of Student's t where the number of documents is known, else those of the normal distribution.
    """
    if several <= 1:
        return bounds
    low, high = bounds
    more = _quantile(1 - LEVEL / 2 / several, documents) / _quantile(1 - LEVEL / 2, documents) - 1
    return low - max(value - low, 0.0) * more, high + max(high - value, 0.0) * more


def difference(one: float, one_bounds: Bounds, other: float, other_bounds: Bounds) -> Bounds:
    """The interval of `other` minus `one`, from the interval of each (the MOVER of Zou and Donner 2008).

    It is exact for independent normal numbers, and wider than need be for numbers of the same documents that go
    together.
    """
    gap = other - one
    down = math.hypot(other - other_bounds[0], one_bounds[1] - one)
    up = math.hypot(other_bounds[1] - other, one - one_bounds[0])
    return gap - down, gap + up


def within_layers(
    one: Sequence[float], other: Sequence[float], layers: Sequence[object], permutations: int = PERMUTATIONS, seed: int = 0
) -> float:
    """The two-sided p of a correlation over heads: heads are permuted within their layers, each layer less its own
    mean.

    What all heads of a layer share is left out, since neighbouring layers are alike for reasons of their own. NaN if
    no layer has two heads that differ.
    """
    number = {layer: place for place, layer in enumerate(dict.fromkeys(layers))}
    of = np.array([number[layer] for layer in layers])
    x, y = (_centred(np.asarray(values, dtype=np.float64), of) for values in (one, other))
    if not (x.any() and y.any()):
        return math.nan
    generator = np.random.default_rng(seed)
    drawn = np.argsort(of + generator.random((permutations, len(of))), axis=1)  # layer by layer, shuffled within each
    sums = np.abs(y[drawn] @ x[np.argsort(of, kind="stable")])
    hits = int((sums >= abs(float(x @ y)) * (1 - 1e-9)).sum())  # equal sums may have been added up in another order
    return (hits + 1) / (permutations + 1)


def _centred(values: Float64[np.ndarray, "head"], of: np.ndarray) -> Float64[np.ndarray, "head"]:
    centred: Float64[np.ndarray, "head"] = values - (np.bincount(of, values) / np.bincount(of))[of]
    return np.where(np.abs(centred) < 1e-12 * np.abs(values).max(initial=0.0), 0.0, centred)


def _quantile(share: float, documents: int | None) -> float:
    from scipy.special import ndtri, stdtrit

    return float(ndtri(share) if documents is None or documents < 2 else stdtrit(documents - 1, share))
