"""Hierarchical clustering of heads: trees, groups and silhouettes, by hand and against scikit-learn."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.cluster import AgglomerativeClustering
from sklearn.metrics import adjusted_rand_score, silhouette_samples

from headscope.errors import MeasureError
from headscope.stats import clusters
from headscope.stats.clusters import Linkage, group, grow, parts, silhouettes, smallest

Matrix = NDArray[np.float64]
LINKAGES: tuple[Linkage, ...] = ("average", "complete", "single")


def line(*places: float) -> Matrix:
    """Return the distances of points on a line."""
    points = np.array(places)
    return np.asarray(np.abs(points[:, None] - points))


def cloud(seed: int, n: int) -> Matrix:
    points = np.random.default_rng(seed).normal(size=(n, 4))
    return np.asarray(cdist(points, points))


@pytest.mark.parametrize(("linkage", "heights"), [("average", [1, 2, 4.5]), ("complete", [1, 2, 6]), ("single", [1, 2, 3])])
def test_merges_equal_those_worked_out_by_hand(linkage: Linkage, heights: list[float]) -> None:
    """First 0 and 1 are merged, then 4 and 6. The distances between the two pairs are 3, 4, 5 and 6."""
    tree = grow(line(0, 1, 4, 6), linkage)
    assert_array_equal(tree.merges, [[0, 1, heights[0], 2], [2, 3, heights[1], 2], [4, 5, heights[2], 4]])
    assert_array_equal(tree.heights, heights)
    assert tree.leaves in ((0, 1, 2, 3), (3, 2, 1, 0))


def test_groups_are_numbered_by_size_and_then_by_their_first_point() -> None:
    tree = grow(line(50, 0, 20, 1, 51, 2, 21, 90))
    assert_array_equal(tree.cut(4), [1, 0, 2, 0, 1, 0, 2, 3])
    assert_array_equal(tree.cut(1), 0)
    assert_array_equal(tree.cut(8), np.arange(8))


@pytest.mark.parametrize("linkage", LINKAGES)
@pytest.mark.parametrize("seed", range(3))
def test_groups_equal_those_of_scikit_learn(linkage: Linkage, seed: int) -> None:
    given = cloud(seed, 40)
    tree = grow(given, linkage)
    assert sorted(tree.leaves) == list(range(40))
    assert (np.diff(tree.heights) >= 0).all()
    for number in (2, 3, 7, 39):
        groups = tree.cut(number)
        theirs = AgglomerativeClustering(number, metric="precomputed", linkage=linkage).fit_predict(given)
        assert adjusted_rand_score(groups, theirs) == 1
        sizes = np.bincount(groups)
        assert len(sizes) == number
        assert (np.diff(sizes) <= 0).all()


def test_leaves_are_ordered_without_crossings(monkeypatch: pytest.MonkeyPatch) -> None:
    given = cloud(5, 30)
    tree = grow(given)
    monkeypatch.setattr(clusters, "ORDERED", 0)
    plain = grow(given)
    for one in (tree, plain):
        for number in range(1, 31):
            in_order = one.cut(number)[list(one.leaves)]
            assert np.count_nonzero(np.diff(in_order)) == number - 1, "each group is contiguous"
    assert along(given, tree.leaves) < along(given, plain.leaves)
    assert_array_equal(tree.cut(6), plain.cut(6))


def along(given: Matrix, leaves: tuple[int, ...]) -> float:
    return float(sum(given[a, b] for a, b in pairwise(leaves)))


def test_silhouettes_equal_those_worked_out_by_hand() -> None:
    """0 and 2 are one group, 5 is another. Point 0 is at distance 2 from its group and 5 from the other, point 2 at 2
    and 3.
    """
    assert_allclose(silhouettes(line(0, 2, 5), np.array([0, 0, 1])), [3 / 5, 1 / 3, 0])


@pytest.mark.parametrize("seed", range(4))
def test_silhouettes_equal_those_of_scikit_learn(seed: int) -> None:
    given = cloud(seed, 25)
    given[3] = given[4]
    given[:, 3] = given[:, 4]
    given[3, 3] = given[3, 4] = given[4, 3] = 0  # two points at one place
    rng = np.random.default_rng(seed)
    for groups in (grow(given).cut(6), rng.integers(0, 5, 25), np.arange(25) // 24):
        assert_allclose(silhouettes(given, groups), silhouette_samples(given, groups, metric="precomputed"), atol=1e-12)


def test_the_true_number_of_groups_is_found() -> None:
    rng = np.random.default_rng(0)
    true = np.repeat(np.arange(5), [9, 8, 7, 6, 2])
    points = 10 * np.eye(5)[true] + rng.normal(size=(32, 5))
    found = group(cdist(points, points))
    assert found.number == 5
    assert_array_equal(found.groups, true)
    assert list(found.scores) == list(range(2, 21))
    assert found.scores[5] == max(found.scores.values()) == pytest.approx(found.silhouettes.mean())
    asked = group(cdist(points, points), 3, most=4)
    assert asked.number == 3
    assert list(asked.scores) == [2, 3, 4]
    assert asked.scores[3] == found.scores[3]


@pytest.mark.parametrize("linkage", LINKAGES)
def test_one_to_three_points_are_one_group_unless_a_number_is_given(linkage: Linkage) -> None:
    one = group(np.zeros((1, 1)), linkage=linkage)
    assert (one.number, one.tree.leaves, one.tree.merges.shape, one.scores) == (1, (0,), (0, 4), {})
    assert np.isnan(one.silhouettes).all()
    two = group(line(0, 1), linkage=linkage)
    assert (two.number, two.scores) == (1, {})
    assert_array_equal(two.tree.merges, [[0, 1, 1, 2]])
    assert_array_equal(group(line(0, 1), 2, linkage).silhouettes, 0)
    three = group(line(5, 0, 1), linkage=linkage)
    assert three.number == 1, "one point far from two others does not form a group"
    assert three.scores == {2: pytest.approx((4 / 5 + 3 / 4 + 0) / 3)}
    assert_array_equal(group(line(5, 0, 1), 2, linkage).groups, [1, 0, 0])


def test_a_few_outliers_do_not_form_groups() -> None:
    """57 points are at one place, two far away and one farther. Two groups have a silhouette of 0.98 but only separate
    one point from 59.
    """
    outliers = group(line(*[0] * 57, 40, 41, 90))
    assert max(outliers.scores.values()) > 0.9
    assert (outliers.number, outliers.about) == (1, "1 group")
    assert smallest(60) == 3
    assert smallest(61) == 4
    assert smallest(10) == 2
    # 30 and 27 points and three outliers: the two groups with at least a twentieth of the points hold 57 of 60.
    grouped = group(line(*[0] * 30, *[9] * 27, 40, 41, 90))
    assert np.bincount(grouped.groups).tolist() == [30, 27, 2, 1]
    assert grouped.about.startswith("4 groups of 30, 27, 2 and 1 heads, mean silhouette 0.9")
    # Large groups must hold nine tenths of 60 points: groups of 50 and 6 do, groups of 48 and 5 do not.
    assert parts(np.repeat(np.arange(6), [50, 6, 1, 1, 1, 1]))
    assert not parts(np.repeat(np.arange(9), [48, 5, 1, 1, 1, 1, 1, 1, 1]))
    assert not parts(np.repeat(np.arange(2), [58, 2]))


def test_points_at_one_place_are_one_group() -> None:
    same = group(np.zeros((6, 6)))
    assert same.number == 1
    assert set(same.scores.values()) == {0.0}
    assert_array_equal(same.tree.heights, 0)
    # A given number of groups is returned even if there are fewer places.
    assert group(line(0, 0, 0, 7, 7), 3).number == 3
    assert group(line(0, 0, 0, 7, 7)).number == 2
    assert_array_equal(group(line(0, 0, 0, 7, 7)).silhouettes, 1)


def test_invalid_arguments_are_refused() -> None:
    for number in (0, 4):
        with pytest.raises(MeasureError, match=f"3 points cannot be in {number} groups"):
            group(line(0, 1, 5), number)
    with pytest.raises(MeasureError, match="average, complete, single"):
        grow(line(0, 1), "ward")  # type: ignore[arg-type]
    with pytest.raises(MeasureError, match="below 0"):
        group(-line(0, 1))
