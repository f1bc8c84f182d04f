"""The best layer, chosen on other documents than those it is scored on: the highest of twelve noisy numbers is too
high.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headscope.stats.bootstrap import group_of

if TYPE_CHECKING:
    from jaxtyping import Float64

FOLDS = 2


def held_out(values: Float64[np.ndarray, "sentence *shape layer"], units: Sequence[str]) -> Float64[np.ndarray, "sentence *shape"]:
    """Each sentence's value in the layer that is best, on average, over the sentences of the other half of the units.

    The halves depend on the units' names alone. NaN where the other half has nothing to choose by.
    """
    fold = np.array([group_of(unit, FOLDS) for unit in units], dtype=np.int64)
    found = np.full(values.shape[:-1], np.nan)
    for number in range(FOLDS):
        mine, others = values[fold == number], values[fold != number]
        given = np.isfinite(others)
        with np.errstate(invalid="ignore"):
            means = np.where(given, others, 0).sum(0) / given.sum(0)
        best = np.where(np.isnan(means), -np.inf, means).argmax(-1)
        picked = np.take_along_axis(mine, np.broadcast_to(best[None, ..., None], (*mine.shape[:-1], 1)), -1)[..., 0]
        found[fold == number] = np.where(np.isnan(means).all(-1), np.nan, picked)
    return found
