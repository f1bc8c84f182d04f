from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from headscope.stats.embedding import classical, metric, smacof_step, stress

Points = NDArray[np.float64]


def between(points: Points) -> Points:
    return np.asarray(cdist(points, points))


def noisy(seed: int, n: int) -> Points:
    """Distances that no plane has: those of points in ten dimensions, each off by up to a fifth."""
    rng = np.random.default_rng(seed)
    given = between(rng.normal(size=(n, 10))) * rng.uniform(0.8, 1.2, (n, n))
    given = (given + given.T) / 2
    np.fill_diagonal(given, 0)
    return given


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("embed", [classical, metric])
def test_points_of_a_plane_are_found_again(seed: int, embed) -> None:  # type: ignore[no-untyped-def]
    given = between(np.random.default_rng(seed).normal(size=(17, 2)))
    found = embed(given)
    assert_allclose(between(found.points), given, atol=1e-8)
    assert found.stress < 1e-8


def test_stress_by_hand() -> None:
    """Three points that should all be 1 apart, on a line at 0, 1, 2: one distance of three is off by 1."""
    given = 1 - np.eye(3)
    assert stress(np.array([[0.0, 0], [1, 0], [2, 0]]), given) == pytest.approx(np.sqrt(1 / 3))
    assert metric(given).stress < 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_smacof_only_ever_improves(seed: int) -> None:
    given = noisy(seed, 30)
    points = classical(given).points
    stresses = [stress(points, given)]
    for _ in range(50):
        points = smacof_step(points, given)
        stresses.append(stress(points, given))
    assert (np.diff(stresses) <= 1e-12).all()
    assert metric(given).stress <= classical(given).stress
    assert metric(given).stress <= stresses[-1] + 1e-4


def test_as_good_as_many_random_starts() -> None:
    given = noisy(9, 20)
    rng = np.random.default_rng(0)
    ends = []
    for _ in range(10):
        points = rng.normal(size=(20, 2))
        for _ in range(300):
            points = smacof_step(points, given)
        ends.append(stress(points, given))
    assert metric(given).stress <= np.median(ends) + 1e-6


def test_always_the_same_picture() -> None:
    given = noisy(3, 25)
    first, again = metric(given), metric(given)
    assert_array_equal(first.points, again.points)
    assert_allclose(first.points.mean(0), 0, atol=1e-12)
    covariance = first.points.T @ first.points
    assert covariance[0, 0] >= covariance[1, 1]
    assert covariance[0, 1] == pytest.approx(0, abs=1e-9)
    farthest = np.abs(first.points).argmax(0)
    assert (first.points[farthest, [0, 1]] > 0).all()
    # Points in another order give the same picture.
    order = np.random.default_rng(1).permutation(25)
    assert_allclose(metric(given[np.ix_(order, order)]).points, first.points[order], atol=1e-4)


def test_distances_too_long_for_a_triangle_by_hand() -> None:
    """1, 1 and 2.2: the points lie on a line at x, 0 and -x, and 2 (x - 1)^2 + (2x - 2.2)^2 is least at x = 3.2 / 3."""
    found = metric(np.array([[0, 1, 2.2], [1, 0, 1], [2.2, 1, 0]]))
    x = 3.2 / 3
    assert_allclose(np.abs(found.points), [[x, 0.0], [0.0, 0.0], [x, 0.0]], atol=1e-4)
    assert found.stress == pytest.approx(np.sqrt((2 * (x - 1) ** 2 + (2 * x - 2.2) ** 2) / (2 + 2.2**2)), abs=1e-6)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_points_and_points_in_one_place(n: int) -> None:
    same = metric(np.zeros((n, n)))
    assert_array_equal(same.points, 0)
    assert same.stress == 0
    apart = metric(1 - np.eye(n))
    assert apart.stress < 1e-9
    assert apart.points.shape == (n, 2)
