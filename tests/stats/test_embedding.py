from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy.spatial.distance import cdist, jensenshannon
from scipy.stats import spearmanr
from sklearn.isotonic import IsotonicRegression
from sklearn.manifold import MDS

from headscope.errors import MeasureError
from headscope.stats import embedding
from headscope.stats.embedding import Method, classical, embed, metric, nonmetric, nonmetric_step, smacof_step, stress, stress1

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


def divergences(rows: Points) -> Points:
    """Jensen-Shannon divergences between distributions."""
    return np.array([[jensenshannon(p, q) ** 2 if p is not q else 0.0 for q in rows] for p in rows])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("method", ["classical", "metric"])
def test_points_of_a_plane_are_found_again(seed: int, method: Method) -> None:
    given = between(np.random.default_rng(seed).normal(size=(17, 2)))
    found = embed(given, method)
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


# --- several starts, and scikit-learn beside them


def heads(seed: int, n: int) -> Points:
    """Jensen-Shannon divergences as heads have them: each mixes five habits, and has a little of its own."""
    rng = np.random.default_rng(seed)
    habits = rng.dirichlet(np.full(20, 0.2), size=5)
    return divergences(0.9 * rng.dirichlet(np.full(5, 0.3), size=n) @ habits + 0.1 * rng.dirichlet(np.full(20, 0.2), size=n))


@pytest.mark.parametrize(
    "given", [noisy(0, 30), heads(0, 40), heads(2, 40), np.sqrt(heads(1, 24))], ids=["noisy", "heads", "other heads", "roots"]
)
@pytest.mark.parametrize("method", ["metric", "nonmetric"])
def test_as_good_as_scikit_learn(given: Points, method: Method) -> None:
    """The settings of the paper's released code, under the names that scikit-learn has for them now."""
    settings = {"n_init": 5, "max_iter": 1000, "eps": 1e-10, "random_state": 0, "init": "random", "normalized_stress": "auto"}
    theirs = MDS(2, metric_mds=method == "metric", metric="precomputed", **settings).fit(given).embedding_
    measured = stress if method == "metric" else kruskal
    ours = embed(given, method)
    assert ours.stress == pytest.approx(measured(ours.points, given), rel=1e-6)
    assert ours.stress <= 1.01 * measured(theirs, given)


def kruskal(points: Points, given: Points) -> float:
    """Stress-1 by scikit-learn's isotonic regression."""
    upper = np.triu_indices(len(given), 1)
    found = between(points)[upper]
    closest = IsotonicRegression().fit_transform(given[upper], found)
    return float(np.sqrt(((found - closest) ** 2).sum() / (found**2).sum()))


def test_more_starts_are_no_worse_and_a_seed_fixes_them() -> None:
    given = noisy(1, 30)
    ends = [metric(given, starts=starts, seed=1).stress for starts in (0, 1, 5, 20)]
    assert (np.diff(ends) <= 0).all()
    assert ends[-1] < ends[0]
    for method in ("metric", "nonmetric"):
        assert_array_equal(embed(given, method, seed=3).points, embed(given, method, seed=3).points)


def test_with_many_points_fewer_steps_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step looks at 900 distances; all starts together may look at 9,000."""
    given, moves = noisy(0, 30), []
    monkeypatch.setattr(embedding, "WORK", 9_000)
    step = embedding._moved

    def counted(points: Points, found: Points, target: Points) -> Points:
        moves.append(len(points))
        return step(points, found, target)

    monkeypatch.setattr(embedding, "_moved", counted)
    embed(given, "metric")
    assert 1 < len(moves) <= 10
    moves.clear()
    embed(given, "nonmetric")
    assert 1 < len(moves) <= 20  # the metric solution that it begins with has a budget of its own


# --- non-metric


def test_stress1_by_hand() -> None:
    """Points at 0, 1, 3: distances 1, 3 and 2, in the order of the given ones 2, 3, 1, which pools to 2, 2, 2."""
    given = np.array([[0.0, 3, 2], [3, 0, 1], [2, 1, 0]])
    points = np.array([[0.0, 0], [1, 0], [3, 0]])
    assert stress1(points, given) == pytest.approx(np.sqrt(2 / 14))
    assert stress1(points, np.array([[0.0, 1, 9], [1, 0, 5], [9, 5, 0]])) == 0, "in the right order"
    # Equal given distances are to be equal: 1 and 2 become 1.5.
    assert stress1(points, np.array([[0.0, 1, 9], [1, 0, 1], [9, 1, 0]])) == pytest.approx(np.sqrt(0.5 / 14))
    assert stress1(np.zeros((3, 2)), given) == 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bend", [np.square, np.cbrt, lambda d: 1 - np.exp(-d)], ids=["square", "root", "saturating"])
def test_any_rising_function_of_a_planes_distances_is_undone(seed: int, bend) -> None:  # type: ignore[no-untyped-def]
    plane = between(np.random.default_rng(seed).normal(size=(25, 2)))
    found = embed(bend(plane), "nonmetric")
    assert found.stress < 1e-4
    upper = np.triu_indices(25, 1)
    assert spearmanr(between(found.points)[upper], plane[upper]).statistic > 0.9999
    assert embed(bend(plane), "metric").stress > 0.03, "which the metric one does not do"


@pytest.mark.parametrize("seed", range(4))
def test_non_metric_steps_only_ever_improve(seed: int) -> None:
    given = noisy(seed, 25)
    points = np.random.default_rng(seed).normal(size=(25, 2))
    stresses = [stress1(points, given)]
    for _ in range(60):
        points = nonmetric_step(points, given)
        stresses.append(stress1(points, given))
    assert (np.diff(stresses) <= 1e-12).all()
    assert stresses[-1] < stresses[0]
    assert nonmetric(given).stress <= stresses[-1] + 1e-6
    # The picture is about as large as the distances are.
    assert between(nonmetric(given).points).mean() == pytest.approx(given.mean(), rel=0.2)


@pytest.mark.parametrize("method", ["metric", "nonmetric", "classical"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_every_method_takes_few_points(method: Method, n: int) -> None:
    assert_array_equal(embed(np.zeros((n, n)), method).points, 0)
    apart = embed(1 - np.eye(n), method)
    assert apart.stress < 1e-9
    assert_allclose(between(apart.points), 1 - np.eye(n), atol=1e-6)


def test_the_root_makes_divergences_distances() -> None:
    given = heads(1, 20)
    for method in ("metric", "nonmetric", "classical"):
        assert_array_equal(embed(given, method, sqrt=True).points, embed(np.sqrt(given), method).points)
    assert embed(given, "nonmetric", sqrt=True).stress == pytest.approx(embed(given, "nonmetric").stress, rel=0.01)


# --- what are no distances


@pytest.mark.parametrize("method", [embed, classical, metric, nonmetric])
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([[0, np.nan], [np.nan, 0]], "from point 1 to point 2 is nan"),
        ([[0, 1.0], [np.inf, 0]], "from point 2 to point 1 is inf"),
        ([[0, -1.0], [-1.0, 0]], "from point 1 to point 2 is -1, below 0"),
        ([[0, 1.0], [2.0, 0]], "from point 1 to point 2 is 1, and back 2"),
        ([[0, 1.0], [1.0, 0.5]], "of point 2 to itself is 0.5"),
        ([[0, 1.0]], "shape (1, 2)"),
        (np.zeros((0, 0)), "shape (0, 0)"),
    ],
)
def test_what_are_no_distances_is_refused(method, given: object, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(MeasureError) as refused:
        method(np.array(given))
    assert words in str(refused.value)


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(MeasureError, match="metric, nonmetric, classical"):
        embed(np.zeros((2, 2)), "isomap")  # type: ignore[arg-type]


def test_rounding_is_no_fault() -> None:
    given = heads(0, 12).astype(np.float32)
    given[1, 2] = np.nextafter(given[1, 2], np.float32(1))
    assert_allclose(embed(given).points, embed(heads(0, 12)).points, atol=1e-3)
