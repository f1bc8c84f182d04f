"""Matrices of distances or divergences: what makes them valid, and whether heads of one layer are
close to each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headscope.errors import MeasureError

if TYPE_CHECKING:
    from jaxtyping import Float, Float64, Int

    Distances = Float64[np.ndarray, "point point"]

ROUNDING = 1e-6  # share of the largest distance by which sums in float32 can differ
PERMUTATIONS = 10_000
BLOCK = 1 << 21  # distances looked up at a time: 16 MB, and as much again for their indices


def checked(matrix: Float[np.ndarray, "point point"]) -> Distances:
    """The distances in float64, exactly symmetric, with a diagonal of 0; an error if the matrix is not one of
    distances.
    """
    distances: Distances = np.asarray(matrix, dtype=np.float64)
    if distances.ndim != 2 or distances.shape[0] != distances.shape[1] or not distances.size:
        raise MeasureError(f"distances are of shape {distances.shape}", "Give a square matrix, with one row and one column per point")
    off = np.argwhere(~np.isfinite(distances))
    if len(off):
        raise MeasureError(f"the distance {_place(off)} is {distances[tuple(off[0])]}", "Leave out the points that were not compared")
    slack = ROUNDING * float(np.abs(distances).max())
    if len(off := np.argwhere(distances < -slack)):
        raise MeasureError(f"the distance {_place(off)} is {distances[tuple(off[0])]:.6g}, below 0", "Give distances, not similarities")
    if len(off := np.argwhere(np.abs(np.diagonal(distances)) > slack)):
        place = int(off[0, 0])
        itself = distances[place, place]
        raise MeasureError(f"the distance of point {place + 1} to itself is {itself:.6g}", "Give a matrix whose diagonal is 0")
    if len(off := np.argwhere(np.abs(distances - distances.T) > slack)):
        there, back = distances[tuple(off[0])], distances.T[tuple(off[0])]
        raise MeasureError(f"the distance {_place(off)} is {there:.6g}, and back {back:.6g}", "Give a symmetric matrix")
    distances = np.maximum((distances + distances.T) / 2, 0)
    np.fill_diagonal(distances, 0)
    return distances


def _place(off: np.ndarray) -> str:
    """The first of some places, in words, counted from 1."""
    return f"from point {off[0, 0] + 1} to point {off[0, 1] + 1}"


class Layering(NamedTuple):
    """Mean distances of pairs within layers and between layers, the difference (between minus within), and p: the share
    of permutations, the data counted as one, in which the difference is at least as large. A mean without any pair is
    NaN, and so are the difference and p.
    """

    within: float
    between: float
    difference: float
    p: float


def layering(
    distances: Float[np.ndarray, "head head"],
    layer_of: Sequence[int] | Int[np.ndarray, "head"],
    permutations: int = PERMUTATIONS,
    seed: int = 0,
) -> Layering:
    """How much closer heads of one layer are than heads of different layers. `layer_of` gives each head's layer."""
    matrix = checked(distances)
    layers = np.asarray(layer_of)
    if layers.shape != (len(matrix),):
        raise MeasureError(f"there are distances of {len(matrix)} heads, and layers of {layers.size}", "Name the layer of every head")
    first, second = np.triu_indices(len(matrix), 1)
    same = layers[first] == layers[second]
    pairs = matrix[first, second]
    number, others = int(same.sum()), int((~same).sum())
    within = float(pairs[same].mean()) if number else np.nan
    between = float(pairs[~same].mean()) if others else np.nan
    if not (number and others):
        return Layering(within, between, np.nan, np.nan)
    # The sum over all pairs is constant, so the difference is large if the sum within layers is small.
    total = pairs[same].sum()
    drawn = _within(matrix, first[same], second[same], permutations, seed)
    slack = 1e-12 * float(pairs.sum())  # rounding, if the same pairs are summed in another order
    at_least = int(np.count_nonzero(drawn <= total + slack))
    return Layering(within, between, between - within, (1 + at_least) / (1 + permutations))


def _within(
    matrix: Float64[np.ndarray, "head head"], first: Int[np.ndarray, "pair"], second: Int[np.ndarray, "pair"], number: int, seed: int
) -> Float64[np.ndarray, "permutation"]:
    """The sum of the distances of the pairs after the heads are permuted, a block of permutations at a time."""
    rng = np.random.default_rng(seed)
    heads = np.arange(len(matrix))
    sums = np.zeros(number)
    step = max(1, BLOCK // max(len(first), len(heads)))
    for start in range(0, number, step):
        places = rng.permuted(np.tile(heads, (min(step, number - start), 1)), axis=1)
        sums[start : start + step] = matrix.ravel().take(places[:, first] * len(matrix) + places[:, second]).sum(1)
    return sums
