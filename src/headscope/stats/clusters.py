"""Groups of points from their distances: agglomerative clustering, its tree, and how well each point lies in its group.

Rousseeuw 1987 (silhouettes). Ward's linkage is not offered: it asks for points of a Euclidean space, which divergences are not of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from headscope.errors import MeasureError
from headscope.stats.dissimilarity import checked

if TYPE_CHECKING:
    from jaxtyping import Float, Float64, Int64

Linkage = Literal["average", "complete", "single"]
MOST = 20  # groups that are tried
ORDERED = 512  # points whose leaves are put so that neighbours are as close as can be; that takes long for more


@dataclass(frozen=True)
class Tree:
    """What was joined with what, the closest first. A row of `merges` holds the numbers of two clusters, their distance, and the
    number of points of both together: numbers below n are points, n + i is what row i made (as in scipy.cluster.hierarchy).
    `leaves` are the points from left to right so that no branches cross.
    """

    merges: Float64[np.ndarray, "merge 4"]
    leaves: tuple[int, ...]

    @property
    def heights(self) -> Float64[np.ndarray, "merge"]:
        """The distances at which clusters were joined, never falling."""
        heights: Float64[np.ndarray, "merge"] = self.merges[:, 2]
        return heights

    def cut(self, number: int) -> Int64[np.ndarray, "point"]:
        """For each point its group, counted from 0: the largest first, and of equally large ones that of the earliest point."""
        size = len(self.leaves)
        if not 1 <= number <= size:
            raise MeasureError(f"{size} points cannot be in {number} groups", f"Ask for 1 to {size}")
        members: dict[int, list[int]] = {point: [point] for point in range(size)}
        for row, (a, b) in enumerate(self.merges[: size - number, :2].astype(int).tolist()):
            members[size + row] = sorted(members.pop(a) + members.pop(b))
        groups = np.zeros(size, dtype=np.int64)
        for place, group in enumerate(sorted(members.values(), key=lambda group: (-len(group), group[0]))):
            groups[group] = place
        return groups


@dataclass(frozen=True)
class Grouping:
    """Points in groups, counted from 0, how well each lies in its own, and the mean of that for each number of groups tried."""

    groups: Int64[np.ndarray, "point"]
    silhouettes: Float64[np.ndarray, "point"]
    scores: Mapping[int, float]
    tree: Tree

    @property
    def number(self) -> int:
        """How many groups there are."""
        return int(self.groups.max()) + 1


def grow(given: Float[np.ndarray, "point point"], linkage: Linkage = "average") -> Tree:
    """The tree of points: again and again the two closest clusters are joined.

    Clusters are as far apart as their points are on average, at most (`complete`) or at least (`single`).
    """
    if linkage not in get_args(Linkage):
        raise MeasureError(f"no linkage is called {linkage!r}", f"Use one of {', '.join(get_args(Linkage))}")
    distances = checked(given)
    if len(distances) == 1:
        return Tree(np.zeros((0, 4)), (0,))
    from scipy.cluster import hierarchy

    pairs = distances[np.triu_indices(len(distances), 1)]
    merges = hierarchy.linkage(pairs, linkage, optimal_ordering=len(distances) <= ORDERED)
    return Tree(merges, tuple(hierarchy.leaves_list(merges).tolist()))


def silhouettes(given: Float[np.ndarray, "point point"], groups: Int64[np.ndarray, "point"]) -> Float64[np.ndarray, "point"]:
    """For each point (b - a) / max(a, b): a is its mean distance to the others of its group, b to the closest other group.

    0 for a point that is alone in its group, and for one that is in the same place as all of these; NaN where there is one group.
    """
    return _silhouettes(checked(given), groups)


def group(given: Float[np.ndarray, "point point"], number: int | None = None, linkage: Linkage = "average", most: int = MOST) -> Grouping:
    """Points in so many groups; if no number is given, in that of 2 to `most` with the highest mean silhouette.

    Of equals the smallest number is taken, and one group where no number of them has a mean above 0. As many groups as points,
    which all have silhouettes of 0, are not tried.
    """
    distances = checked(given)
    tree = grow(distances, linkage)
    tried = range(2, min(most, len(distances) - 1) + 1)
    scores = {size: float(_silhouettes(distances, tree.cut(size)).mean()) for size in tried}
    best = max(scores, key=lambda size: scores[size], default=1)
    groups = tree.cut(number if number is not None else best if scores.get(best, 0) > 0 else 1)
    return Grouping(groups, _silhouettes(distances, groups), scores, tree)


def _silhouettes(distances: Float64[np.ndarray, "point point"], groups: Int64[np.ndarray, "point"]) -> Float64[np.ndarray, "point"]:
    names, own = np.unique(groups, return_inverse=True)
    if len(names) < 2:
        return np.full(len(distances), np.nan)
    one_hot = np.eye(len(names))[own]
    sizes, points = one_hot.sum(0), np.arange(len(distances))
    sums = distances @ one_hot  # [point, group]
    a = sums[points, own] / np.maximum(sizes[own] - 1, 1)
    means = sums / sizes
    means[points, own] = np.inf
    b = means.min(1)
    larger = np.maximum(a, b)
    found: Float64[np.ndarray, "point"] = np.divide(b - a, larger, out=np.zeros_like(a), where=(larger > 0) & (sizes[own] > 1))
    return found
