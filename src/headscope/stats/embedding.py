"""Points in a plane for given distances: classical, metric and non-metric multidimensional scaling.

Torgerson 1952 (classical); de Leeuw 1977 (SMACOF: each step moves the points to the minimum of an upper bound of the
stress, so the stress never grows); Kruskal 1964 (non-metric: only the order of the given distances counts). All are
deterministic for a seed, and rotated to their principal axes with the farthest point on the positive side.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

import numpy as np

from headscope.core.suggest import choose_from
from headscope.errors import MeasureError
from headscope.stats.dissimilarity import checked

if TYPE_CHECKING:
    from jaxtyping import Float, Float64

    Points = Float64[np.ndarray, "point 2"]
    Distances = Float64[np.ndarray, "point point"]
    Pairs = Float64[np.ndarray, "pair"]

Method = Literal["metric", "nonmetric", "classical"]
# The name of each method's stress. The two kinds cannot be compared. Classical scaling does not minimise its stress.
STRESS: dict[str, str] = {"metric": "normalised stress", "classical": "normalised stress", "nonmetric": "Kruskal's stress-1"}
WORK = 200_000_000  # distances computed by all starts together: with thousands of points there are fewer steps
STARTS = 9  # random starts, in addition to the classical one
STEPS = 1000
TOLERANCE = 1e-6


class Embedding(NamedTuple):
    """Points [n, 2] and their stress, 0 for a perfect fit: the root of sum (distance - target)^2 / sum of squares.

    Normalised stress (metric and classical): the targets are the given distances, and the squares are theirs. Kruskal's
    stress-1 (non-metric): the targets are the closest values to the points' distances that are in the order of the
    given ones, and the squares are those of the points' distances.
    """

    points: Points
    stress: float


def embed(matrix: Float[np.ndarray, "point point"], method: Method = "metric", *, sqrt: bool = False, seed: int = 0) -> Embedding:
    """Points for the distances by a method, the best of several starts. `sqrt` takes the square roots of the distances
    first.
    """
    distances = np.sqrt(checked(matrix)) if sqrt else checked(matrix)
    if method == "classical":
        return classical(distances)
    if method == "metric":
        return metric(distances, seed=seed, starts=STARTS, steps=STEPS, tolerance=TOLERANCE)
    if method == "nonmetric":
        return nonmetric(distances, seed=seed)
    raise MeasureError(f"no embedding is called {method!r}", choose_from(method, get_args(Method)))


def classical(distances: Distances) -> Embedding:
    """The projection onto the two axes of largest spread of points with these distances, as if these were Euclidean."""
    distances = checked(distances)
    squares = distances**2
    gram = -(squares - squares.mean(0) - squares.mean(1)[:, None] + squares.mean()) / 2
    values, vectors = np.linalg.eigh(gram)
    points = np.zeros((len(distances), 2))
    kept = min(2, len(distances))
    points[:, :kept] = (vectors * np.sqrt(np.maximum(values, 0)))[:, ::-1][:, :kept]
    points = _turned(points)
    return Embedding(points, stress(points, distances))


def metric(distances: Distances, *, seed: int = 0, starts: int = 0, steps: int = 500, tolerance: float = 1e-6) -> Embedding:
    """The best of the classical solution and of random `starts`, improved by SMACOF for `steps` or
    until `tolerance`.
    """
    distances = checked(distances)
    best = classical(distances)

    def wanted(drawn: Distances) -> tuple[Distances, float]:
        return distances, _stress(drawn, distances)

    return _best([best], _begin(best, seed), wanted, distances, seed, starts, steps, tolerance)


def nonmetric(distances: Distances, *, seed: int = 0, starts: int = STARTS, steps: int = STEPS, tolerance: float = TOLERANCE) -> Embedding:
    """Points whose distances are in the order of the given ones, as far as possible.

    Two steps alternate: isotonic regression makes the points' distances a rising function of the given ones, and SMACOF
    moves the points towards the result. Since it is a function, pairs with equal given distances should be equally far
    apart.
    """
    distances = checked(distances)
    if not distances.any():
        return Embedding(np.zeros((len(distances), 2)), 0.0)
    first = metric(distances, seed=seed, steps=100)
    return _best([], _begin(first, seed), _Order(distances).fit, distances, seed, starts, steps, tolerance)


def smacof_step(points: Points, distances: Distances) -> Points:
    """The points after one Guttman transform, which never increases the stress."""
    return _moved(points, _distances(points), distances)


def nonmetric_step(points: Points, distances: Distances) -> Points:
    """The points after one step of non-metric scaling, which never increases `stress1`."""
    drawn = _distances(points)
    return _moved(points, drawn, _Order(distances).fit(drawn)[0])


def stress(points: Points, distances: Distances) -> float:
    """How far the points' distances are from the given ones, as a share of the given ones."""
    return _stress(_distances(points), distances)


def stress1(points: Points, distances: Distances) -> float:
    """How far the points' distances are from the closest ones in the given order, as a share of the
    points' distances.
    """
    return _Order(distances).fit(_distances(points))[1]


class _Order:
    """The order of given distances, and the values closest to other distances in that order."""

    def __init__(self, distances: Distances) -> None:
        self._upper = np.triu_indices(len(distances), 1)
        pairs: Pairs = distances[self._upper]
        self._squares = _squared(pairs)
        _, self._level, self._number = np.unique(pairs, return_inverse=True, return_counts=True)

    def fit(self, drawn: Distances) -> tuple[Distances, float]:
        """The closest distances in the given order, and Kruskal's stress-1. The distances are scaled to the sum of
        squares of the given ones, since the points would otherwise shrink to one. The stress of points in one place,
        where all orders are alike, is 1.
        """
        pairs = drawn[self._upper]
        closest = self._closest(pairs)
        total, kept = _squared(pairs), _squared(closest)
        square = np.zeros_like(drawn)
        square[self._upper] = closest * np.sqrt(self._squares / kept) if kept else 0.0
        off = pairs - closest
        return square + square.T, float(np.sqrt(_squared(off) / total)) if total else float(self._squares > 0)

    def _closest(self, pairs: Pairs) -> Pairs:
        from scipy.optimize import isotonic_regression

        means = np.bincount(self._level, pairs, len(self._number)) / self._number
        return isotonic_regression(means, weights=self._number).x[self._level] if len(pairs) else pairs


def _best(
    known: list[Embedding],
    first: Points,
    wanted: Callable[[Distances], tuple[Distances, float]],
    distances: Distances,
    seed: int,
    starts: int,
    steps: int,
    tolerance: float,
) -> Embedding:
    """The best of the `known` embeddings and of those that SMACOF makes of each start, within a fixed amount of work.

    `wanted` returns the targets of the points' distances, and the stress.
    """
    left = max(WORK // distances.size, 1)
    rng = np.random.default_rng(seed)
    scale = float(np.sqrt(np.mean(distances**2)))
    embeddings = list(known)
    for number in range(starts + 1):
        if left < 1 or not scale:
            break
        points = first if number == 0 else rng.normal(0, scale, (len(distances), 2))
        points, end, taken = _improved(points, wanted, min(steps, left), tolerance)
        left -= taken
        embeddings.append(Embedding(_turned(points), end))
    return min(embeddings, key=lambda embedding: embedding.stress)


def _improved(
    points: Points, wanted: Callable[[Distances], tuple[Distances, float]], steps: int, tolerance: float
) -> tuple[Points, float, int]:
    """Points after at most `steps` steps, or when the stress hardly falls any more; their stress; and how often it was
    computed.
    """
    before, taken = np.inf, 0
    while True:
        drawn = _distances(points)
        target, now = wanted(drawn)
        if taken == steps or before - now <= tolerance * now:
            return points, now, taken + 1
        points, before, taken = _moved(points, drawn, target), now, taken + 1


def _begin(first: Embedding, seed: int) -> Points:
    """The first points. Points on a line are perturbed, since they would stay on it."""
    points = first.points
    scale = np.abs(points).max(initial=0)
    if first.stress > 0 and np.abs(points[:, 1]).max() < 1e-9 * scale:
        return points + np.random.default_rng(seed).normal(0, 1e-3 * scale, points.shape)
    return points


def _moved(points: Points, now: Distances, distances: Distances) -> Points:
    ratio = np.divide(distances, now, out=np.zeros_like(distances), where=now > 0)
    # Not @: a multithreaded library would take longer to wake its threads, thousands of times, than this takes.
    drawn = np.einsum("ij,jk->ik", ratio, points)
    moved: Points = (ratio.sum(1)[:, None] * points - drawn) / len(points)
    return moved


def _stress(drawn: Distances, distances: Distances) -> float:
    total = _squared(distances)
    return float(np.sqrt(_squared(drawn - distances) / total)) if total else 0.0


def _squared(values: Float64[np.ndarray, "*shape"]) -> float:
    """The sum of squares, computed by one thread."""
    flat = values.reshape(-1)
    return float(np.einsum("i,i->", flat, flat))


def _distances(points: Points) -> Distances:
    x, y = (axis[:, None] - axis for axis in points.T)
    distances: Distances = np.sqrt(x * x + y * y)
    return distances


def _turned(points: Points) -> Points:
    """The same points, centred and rotated to their principal axes, each of which points to its farthest point."""
    centred = points - points.mean(0)
    _, _, axes = np.linalg.svd(centred, full_matrices=False)
    turned = centred @ axes.T if axes.shape == (2, 2) else centred
    farthest = turned[np.abs(turned).argmax(0), [0, 1]]
    placed: Points = turned * np.where(farthest < 0, -1.0, 1.0)
    return placed
