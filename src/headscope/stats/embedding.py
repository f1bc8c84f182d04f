"""Points in a plane whose distances are as close to given ones as can be: classical and metric multidimensional scaling.

Torgerson 1952 (classical); de Leeuw 1977 (SMACOF: each step moves the points to where a bound of the stress is least, so that
the stress never grows). Both are deterministic here, turned to their principal axes, with the farthest point on the positive side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float64

    Points = Float64[np.ndarray, "point 2"]
    Distances = Float64[np.ndarray, "point point"]


WORK = 200_000_000  # distances looked at in all: with thousands of points there are fewer steps


class Embedding(NamedTuple):
    """Points [n, 2] and their stress: the root of sum (distance - given)^2 / sum given^2, 0 for a perfect picture."""

    points: Points
    stress: float


def classical(given: Distances) -> Embedding:
    """The projection onto the two axes along which points with these distances, were they Euclidean, spread most."""
    squares = given**2
    gram = -(squares - squares.mean(0) - squares.mean(1)[:, None] + squares.mean()) / 2
    values, vectors = np.linalg.eigh(gram)
    points = np.zeros((len(given), 2))
    kept = min(2, len(given))
    points[:, :kept] = (vectors * np.sqrt(np.maximum(values, 0)))[:, ::-1][:, :kept]
    points = _turned(points)
    return Embedding(points, stress(points, given))


def metric(given: Distances, *, seed: int = 0, steps: int = 500, tolerance: float = 1e-6) -> Embedding:
    """The classical solution improved by SMACOF until the stress falls by less than `tolerance` of itself, or for so many `steps`."""
    best = classical(given)
    points = best.points
    scale = np.abs(points).max(initial=0)
    if best.stress > 0 and np.abs(points[:, 1]).max() < 1e-9 * scale:
        # Points on a line would stay on it for ever.
        points = points + np.random.default_rng(seed).normal(0, 1e-3 * scale, points.shape)
    before = np.inf
    for _ in range(min(steps, WORK // given.size)):
        found = _distances(points)
        now = _stress(found, given)
        if before - now <= tolerance * now:
            break
        points, before = _moved(points, found, given), now
    points = _turned(points)
    return min(best, Embedding(points, stress(points, given)), key=lambda one: one.stress)


def smacof_step(points: Points, given: Distances) -> Points:
    """One Guttman transform: after it the stress is no higher."""
    return _moved(points, _distances(points), given)


def stress(points: Points, given: Distances) -> float:
    """How far the points' distances are from the given ones, as a share of these."""
    return _stress(_distances(points), given)


def _moved(points: Points, found: Distances, given: Distances) -> Points:
    ratio = np.divide(given, found, out=np.zeros_like(given), where=found > 0)
    moved: Points = (ratio.sum(1)[:, None] * points - ratio @ points) / len(points)
    return moved


def _stress(found: Distances, given: Distances) -> float:
    total, off = float(np.vdot(given, given)), found - given
    return float(np.sqrt(np.vdot(off, off) / total)) if total else 0.0


def _distances(points: Points) -> Distances:
    x, y = (axis[:, None] - axis for axis in points.T)
    found: Distances = np.sqrt(x * x + y * y)
    return found


def _turned(points: Points) -> Points:
    """The same picture around its middle, on its principal axes, each pointing to its farthest point."""
    centred = points - points.mean(0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    turned = centred @ axes.T if axes.shape == (2, 2) else centred
    farthest = turned[np.abs(turned).argmax(0), [0, 1]]
    placed: Points = turned * np.where(farthest < 0, -1.0, 1.0)
    return placed
