"""Groups of points from their distances: agglomerative clustering, its tree, and how well each point fits its group.

Rousseeuw 1987 (silhouettes). Ward's linkage is not offered: it requires points of a Euclidean space, and divergences
are not distances in one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from headscope.core.suggest import choose_from
from headscope.errors import MeasureError
from headscope.stats.dissimilarity import checked

if TYPE_CHECKING:
    from jaxtyping import Float, Float64, Int64

Linkage = Literal["average", "complete", "single"]
MOST = 20  # the most groups that are tried
SHARE, TOGETHER = 0.05, 0.9  # shares of the points: the least of a group that counts, and of all such groups together
ORDERED = 512  # the most points whose leaves are ordered so that neighbours are as close as possible: more take too long


@dataclass(frozen=True)
class MergeTree:
    """Which clusters were merged, the closest first. A row of `merges` has the numbers of two clusters, their distance,
    and the number of points of both together. Numbers below n are points; n + i is the cluster that row i made (as in
    scipy.cluster.hierarchy). `leaves` are the points from left to right, in an order in which no branches cross.
    """

    merges: Float64[np.ndarray, "merge 4"]
    leaves: tuple[int, ...]

    @property
    def heights(self) -> Float64[np.ndarray, "merge"]:
        """The distances at which clusters were merged, never decreasing."""
        return self.merges[:, 2]

    def cut(self, number: int) -> Int64[np.ndarray, "point"]:
        """The group of each point, from 0: the largest first, and of equally large ones that of the earliest point
        first.
        """
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
    """The group of each point, from 0, the silhouette of each point, and the mean silhouette per number of groups."""

    groups: Int64[np.ndarray, "point"]
    silhouettes: Float64[np.ndarray, "point"]
    scores: Mapping[int, float]
    tree: MergeTree

    @property
    def number(self) -> int:
        """The number of groups."""
        return int(self.groups.max()) + 1

    @property
    def about(self) -> str:
        """The groups in words: `3 groups of 60, 50 and 34 heads, mean silhouette 0.31`."""
        if self.number == 1:
            return "1 group"
        *sizes, last = np.bincount(self.groups).tolist()
        return f"{self.number} groups of {', '.join(map(str, sizes))} and {last} heads, mean silhouette {self.silhouettes.mean():.2f}"


def grow(matrix: Float[np.ndarray, "point point"], linkage: Linkage = "average") -> MergeTree:
    """The tree of points that results from repeatedly merging the two closest clusters.

    The distance of two clusters is the mean distance of their points (`average`), the largest (`complete`) or the
    smallest (`single`).
    """
    if linkage not in get_args(Linkage):
        raise MeasureError(f"no linkage is called {linkage!r}", choose_from(linkage, get_args(Linkage)))
    distances = checked(matrix)
    if len(distances) == 1:
        return MergeTree(np.zeros((0, 4)), (0,))
    from scipy.cluster import hierarchy

    pairs = distances[np.triu_indices(len(distances), 1)]
    merges = hierarchy.linkage(pairs, linkage, optimal_ordering=len(distances) <= ORDERED)
    return MergeTree(merges, tuple(hierarchy.leaves_list(merges).tolist()))


def silhouettes(matrix: Float[np.ndarray, "point point"], groups: Int64[np.ndarray, "point"]) -> Float64[np.ndarray, "point"]:
    """The silhouette of each point, (b - a) / max(a, b), where a and b are its mean distances to its own group and to
    the closest other one.

    0 for a point that is alone in its group, and where a and b are both 0; NaN if there is only one group.
    """
    return _silhouettes(checked(matrix), groups)


def group(matrix: Float[np.ndarray, "point point"], number: int | None = None, linkage: Linkage = "average", most: int = MOST) -> Grouping:
    """Points in `number` groups or, if that is None, in the number from 2 to `most` with the highest mean silhouette.

    A few outliers far from everything else have high silhouettes, and so does everything else. Numbers of groups
    therefore count only if several groups are large (`parts`). The smallest of equally good numbers is used, and one
    group if no mean is above 0. As many groups as points are not tried, since all silhouettes are then 0.
    """
    distances = checked(matrix)
    tree = grow(distances, linkage)
    tried = range(2, min(most, len(distances) - 1) + 1)
    scores = {size: float(_silhouettes(distances, tree.cut(size)).mean()) for size in tried}
    best = max((size for size in scores if scores[size] > 0 and parts(tree.cut(size))), key=lambda size: scores[size], default=1)
    groups = tree.cut(best if number is None else number)
    return Grouping(groups, _silhouettes(distances, groups), scores, tree)


def parts(groups: Int64[np.ndarray, "point"]) -> bool:
    """Whether there are two or more groups of at least `smallest` points, which together have nine tenths of all
    points.
    """
    sizes = np.bincount(groups)
    large = sizes[sizes >= smallest(len(groups))]
    return len(large) > 1 and bool(large.sum() >= TOGETHER * len(groups))


def smallest(points: int) -> int:
    """The number of points that a group needs to count: two, or a twentieth of all."""
    return max(2, math.ceil(SHARE * points))


def _silhouettes(distances: Float64[np.ndarray, "point point"], groups: Int64[np.ndarray, "point"]) -> Float64[np.ndarray, "point"]:
    names, place = np.unique(groups, return_inverse=True)
    if len(names) < 2:
        return np.full(len(distances), np.nan)
    one_hot = np.eye(len(names))[place]
    sizes, points = one_hot.sum(0), np.arange(len(distances))
    sums = distances @ one_hot  # [point, group]
    a = sums[points, place] / np.maximum(sizes[place] - 1, 1)
    means = sums / sizes
    means[points, place] = np.inf
    b = means.min(1)
    larger = np.maximum(a, b)
    widths: Float64[np.ndarray, "point"] = np.divide(b - a, larger, out=np.zeros_like(a), where=(larger > 0) & (sizes[place] > 1))
    return widths
