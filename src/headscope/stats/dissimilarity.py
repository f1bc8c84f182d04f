"""Matrices of distances, or of divergences: what they must be before anything is made of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headscope.errors import MeasureError

if TYPE_CHECKING:
    from jaxtyping import Float, Float64

    Distances = Float64[np.ndarray, "point point"]

ROUNDING = 1e-6  # of the largest distance: what sums in float32 may differ by


def checked(given: Float[np.ndarray, "point point"]) -> Distances:
    """The same distances in float64, exactly symmetric, with a diagonal of exactly 0; an error for what are no
    distances.
    """
    found: Distances = np.asarray(given, dtype=np.float64)
    if found.ndim != 2 or found.shape[0] != found.shape[1] or not found.size:
        raise MeasureError(f"distances are of shape {found.shape}", "Give a square matrix, a row and a column a point")
    off = np.argwhere(~np.isfinite(found))
    if len(off):
        raise MeasureError(f"the distance {_place(off)} is {found[tuple(off[0])]}", "Leave out the points that were not compared")
    slack = ROUNDING * float(np.abs(found).max())
    if len(off := np.argwhere(found < -slack)):
        raise MeasureError(f"the distance {_place(off)} is {found[tuple(off[0])]:.6g}, below 0", "Give distances, not similarities")
    if len(off := np.argwhere(np.abs(np.diagonal(found)) > slack)):
        place = int(off[0, 0])
        raise MeasureError(f"the distance of point {place + 1} to itself is {found[place, place]:.6g}", "Give a matrix whose diagonal is 0")
    if len(off := np.argwhere(np.abs(found - found.T) > slack)):
        one, other = found[tuple(off[0])], found.T[tuple(off[0])]
        raise MeasureError(f"the distance {_place(off)} is {one:.6g}, and back {other:.6g}", "Give a symmetric matrix")
    found = np.maximum((found + found.T) / 2, 0)
    np.fill_diagonal(found, 0)
    return found


def _place(off: np.ndarray) -> str:
    """Of the first of some places, counted from 1."""
    return f"from point {off[0, 0] + 1} to point {off[0, 1] + 1}"
