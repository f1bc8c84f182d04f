"""Whether points of one layer are closer to each other than to those of other layers: two means, and a permutation
test.

Clark et al. §6 see in a picture that heads of one layer often lie together; here it is a number. Under the
hypothesis that layers do not matter, any way to deal out the heads to layers of the same sizes is as likely as the
one that the model has.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headscope.errors import MeasureError
from headscope.stats.dissimilarity import checked

if TYPE_CHECKING:
    from jaxtyping import Float, Float64, Int

PERMUTATIONS = 10_000
BLOCK = 1 << 21  # distances looked up at a time: 16 MB of them, and as much for each of their indices


class Layering(NamedTuple):
    """Mean distances of pairs within layers and between layers, the latter minus the former, and the share of
    permutations in which that is at least as large, the data as they are counted as one. All are NaN where there is
    no pair to take a mean of.
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
    """How much closer heads of one layer are than heads of different ones; `layer_of` says in which layer each head
    is.
    """
    given = checked(distances)
    layers = np.asarray(layer_of)
    if layers.shape != (len(given),):
        raise MeasureError(f"there are distances of {len(given)} heads, and layers of {layers.size}", "Name the layer of every head")
    first, second = np.triu_indices(len(given), 1)
    same = layers[first] == layers[second]
    pairs = given[first, second]
    number, others = int(same.sum()), int((~same).sum())
    within = float(pairs[same].mean()) if number else np.nan
    between = float(pairs[~same].mean()) if others else np.nan
    if not (number and others):
        return Layering(within, between, np.nan, np.nan)
    # The sum over all pairs never changes, so that the difference is as large as the sum within layers is small.
    total = pairs[same].sum()
    drawn = _within(given, first[same], second[same], permutations, seed)
    slack = 1e-12 * float(pairs.sum())  # the same pairs, added up in another order
    at_least = int(np.count_nonzero(drawn <= total + slack))
    return Layering(within, between, between - within, (1 + at_least) / (1 + permutations))


def _within(
    given: Float64[np.ndarray, "head head"],
    first: Int[np.ndarray, "pair"],
    second: Int[np.ndarray, "pair"],
    permutations: int,
    seed: int,
) -> Float64[np.ndarray, "permutation"]:
    """The sum of the distances of the pairs when the heads have changed places, a block of permutations at a time."""
    rng = np.random.default_rng(seed)
    heads = np.arange(len(given))
    sums = np.zeros(permutations)
    step = max(1, BLOCK // max(len(first), len(heads)))
    for start in range(0, permutations, step):
        places = rng.permuted(np.tile(heads, (min(step, permutations - start), 1)), axis=1)
        sums[start : start + step] = given.ravel().take(places[:, first] * len(given) + places[:, second]).sum(1)
    return sums
