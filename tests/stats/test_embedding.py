"""Points whose distances are given: metric, non-metric and classical, by hand and against scikit-learn."""

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
    """Return distances that no points in a plane have: those of points in ten dimensions, each changed by up to a
    fifth.
    """
    rng = np.random.default_rng(seed)
    given = between(rng.normal(size=(n, 10))) * rng.uniform(0.8, 1.2, (n, n))
    given = (given + given.T) / 2
    np.fill_diagonal(given, 0)
    return given


def divergences(rows: Points) -> Points:
    """Return the Jensen-Shannon divergences between distributions."""
    return np.array([[jensenshannon(p, q) ** 2 if p is not q else 0.0 for q in rows] for p in rows])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("method", ["classical", "metric"])
def test_distances_of_points_in_a_plane_are_reproduced(seed: int, method: Method) -> None:
    given = between(np.random.default_rng(seed).normal(size=(17, 2)))
    found = embed(given, method)
    assert_allclose(between(found.points), given, atol=1e-8)
    assert found.stress < 1e-8


def test_stress_equals_a_value_worked_out_by_hand() -> None:
    """Three points with all given distances 1 lie on a line at 0, 1 and 2: one of three distances is off by 1."""
    given = 1 - np.eye(3)
    assert stress(np.array([[0.0, 0], [1, 0], [2, 0]]), given) == pytest.approx(np.sqrt(1 / 3))
    assert metric(given).stress < 1e-9


@pytest.mark.parametrize("seed", range(4))
def test_smacof_steps_never_increase_the_stress(seed: int) -> None:
    given = noisy(seed, 30)
    points = classical(given).points
    stresses = [stress(points, given)]
    for _ in range(50):
        points = smacof_step(points, given)
        stresses.append(stress(points, given))
    assert (np.diff(stresses) <= 1e-12).all()
    assert metric(given).stress <= classical(given).stress
    assert metric(given).stress <= stresses[-1] + 1e-4


def test_the_metric_stress_is_at_most_the_median_of_random_starts() -> None:
    given = noisy(9, 20)
    rng = np.random.default_rng(0)
    ends = []
    for _ in range(10):
        points = rng.normal(size=(20, 2))
        for _ in range(300):
            points = smacof_step(points, given)
        ends.append(stress(points, given))
    assert metric(given).stress <= np.median(ends) + 1e-6


def test_the_metric_embedding_is_reproducible_and_in_a_fixed_orientation() -> None:
    given = noisy(3, 25)
    first, again = metric(given), metric(given)
    assert_array_equal(first.points, again.points)
    assert_allclose(first.points.mean(0), 0, atol=1e-12)
    covariance = first.points.T @ first.points
    assert covariance[0, 0] >= covariance[1, 1]
    assert covariance[0, 1] == pytest.approx(0, abs=1e-9)
    farthest = np.abs(first.points).argmax(0)
    assert (first.points[farthest, [0, 1]] > 0).all()
    # In another order, the points have the same positions.
    order = np.random.default_rng(1).permutation(25)
    assert_allclose(metric(given[np.ix_(order, order)]).points, first.points[order], atol=1e-4)


def test_distances_that_violate_the_triangle_inequality_give_a_line() -> None:
    """For 1, 1 and 2.2, the points lie on a line at x, 0 and -x, and 2 (x - 1)^2 + (2x - 2.2)^2 is smallest at x = 3.2
    / 3.
    """
    found = metric(np.array([[0, 1, 2.2], [1, 0, 1], [2.2, 1, 0]]))
    x = 3.2 / 3
    assert_allclose(np.abs(found.points), [[x, 0.0], [0.0, 0.0], [x, 0.0]], atol=1e-4)
    assert found.stress == pytest.approx(np.sqrt((2 * (x - 1) ** 2 + (2 * x - 2.2) ** 2) / (2 + 2.2**2)), abs=1e-6)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_the_metric_embedding_accepts_few_points_and_points_at_one_place(n: int) -> None:
    same = metric(np.zeros((n, n)))
    assert_array_equal(same.points, 0)
    assert same.stress == 0
    distinct = metric(1 - np.eye(n))
    assert distinct.stress < 1e-9
    assert distinct.points.shape == (n, 2)


# --- several starts, and a comparison with scikit-learn


def heads(seed: int, n: int) -> Points:
    """Return Jensen-Shannon divergences like those of heads: each head mixes five shared distributions and a small
    individual one.
    """
    rng = np.random.default_rng(seed)
    shared = rng.dirichlet(np.full(20, 0.2), size=5)
    return divergences(0.9 * rng.dirichlet(np.full(5, 0.3), size=n) @ shared + 0.1 * rng.dirichlet(np.full(20, 0.2), size=n))


@pytest.mark.parametrize(
    "given", [noisy(0, 30), heads(0, 40), heads(2, 40), np.sqrt(heads(1, 24))], ids=["noisy", "heads", "other heads", "roots"]
)
@pytest.mark.parametrize("method", ["metric", "nonmetric"])
def test_the_stress_is_at_most_1_percent_above_that_of_scikit_learn(given: Points, method: Method) -> None:
    """scikit-learn has the settings of the paper's released code, under their current names."""
    settings = {"n_init": 5, "max_iter": 1000, "eps": 1e-10, "random_state": 0, "init": "random", "normalized_stress": "auto"}
    theirs = MDS(2, metric_mds=method == "metric", metric="precomputed", **settings).fit(given).embedding_
    measured = stress if method == "metric" else kruskal
    ours = embed(given, method)
    assert ours.stress == pytest.approx(measured(ours.points, given), rel=1e-6)
    assert ours.stress <= 1.01 * measured(theirs, given)


def kruskal(points: Points, given: Points) -> float:
    """Return stress-1, computed with scikit-learn's isotonic regression."""
    upper = np.triu_indices(len(given), 1)
    found = between(points)[upper]
    closest = IsotonicRegression().fit_transform(given[upper], found)
    return float(np.sqrt(((found - closest) ** 2).sum() / (found**2).sum()))


def test_more_starts_never_increase_the_stress_and_a_seed_fixes_the_result() -> None:
    given = noisy(1, 30)
    ends = [metric(given, starts=starts, seed=1).stress for starts in (0, 1, 5, 20)]
    assert (np.diff(ends) <= 0).all()
    assert ends[-1] < ends[0]
    for method in ("metric", "nonmetric"):
        assert_array_equal(embed(given, method, seed=3).points, embed(given, method, seed=3).points)


def test_the_number_of_steps_is_limited_by_the_number_of_distances(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step reads 900 distances; all starts together may read 9,000."""
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
    assert 1 < len(moves) <= 20  # the initial metric solution has a separate limit


# --- non-metric


def test_stress1_equals_values_worked_out_by_hand() -> None:
    """Points at 0, 1 and 3 have the distances 1, 3 and 2. In the order of the given distances these are 2, 3, 1, and
    isotonic regression gives 2, 2, 2.
    """
    given = np.array([[0.0, 3, 2], [3, 0, 1], [2, 1, 0]])
    points = np.array([[0.0, 0], [1, 0], [3, 0]])
    assert stress1(points, given) == pytest.approx(np.sqrt(2 / 14))
    assert stress1(points, np.array([[0.0, 1, 9], [1, 0, 5], [9, 5, 0]])) == 0, "the order is right"
    # Equal given distances have equal fitted values: 1 and 2 become 1.5.
    assert stress1(points, np.array([[0.0, 1, 9], [1, 0, 1], [9, 1, 0]])) == pytest.approx(np.sqrt(0.5 / 14))
    assert stress1(np.zeros((3, 2)), given) == 1


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("bend", [np.square, np.cbrt, lambda d: 1 - np.exp(-d)], ids=["square", "root", "saturating"])
def test_the_nonmetric_embedding_undoes_increasing_functions_of_distances(seed: int, bend) -> None:  # type: ignore[no-untyped-def]
    plane = between(np.random.default_rng(seed).normal(size=(25, 2)))
    found = embed(bend(plane), "nonmetric")
    assert found.stress < 1e-4
    upper = np.triu_indices(25, 1)
    assert spearmanr(between(found.points)[upper], plane[upper]).statistic > 0.9999
    assert embed(bend(plane), "metric").stress > 0.03, "the metric embedding does not undo it"


@pytest.mark.parametrize("seed", range(4))
def test_nonmetric_steps_never_increase_the_stress(seed: int) -> None:
    given = noisy(seed, 25)
    points = np.random.default_rng(seed).normal(size=(25, 2))
    stresses = [stress1(points, given)]
    for _ in range(60):
        points = nonmetric_step(points, given)
        stresses.append(stress1(points, given))
    assert (np.diff(stresses) <= 1e-12).all()
    assert stresses[-1] < stresses[0]
    assert nonmetric(given).stress <= stresses[-1] + 1e-6
    # The mean distance in the embedding is about that of the given distances.
    assert between(nonmetric(given).points).mean() == pytest.approx(given.mean(), rel=0.2)


@pytest.mark.parametrize("method", ["metric", "nonmetric", "classical"])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_every_method_embeds_few_points(method: Method, n: int) -> None:
    assert_array_equal(embed(np.zeros((n, n)), method).points, 0)
    distinct = embed(1 - np.eye(n), method)
    assert distinct.stress < 1e-9
    assert_allclose(between(distinct.points), 1 - np.eye(n), atol=1e-6)


def test_the_option_sqrt_embeds_the_square_roots() -> None:
    given = heads(1, 20)
    for method in ("metric", "nonmetric", "classical"):
        assert_array_equal(embed(given, method, sqrt=True).points, embed(np.sqrt(given), method).points)
    assert embed(given, "nonmetric", sqrt=True).stress == pytest.approx(embed(given, "nonmetric").stress, rel=0.01)


# --- invalid distances


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
def test_invalid_distances_are_refused(method, given: object, words: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(MeasureError) as refused:
        method(np.array(given))
    assert words in str(refused.value)


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(MeasureError, match="metric, nonmetric, classical"):
        embed(np.zeros((2, 2)), "isomap")  # type: ignore[arg-type]


def test_asymmetry_by_rounding_is_accepted() -> None:
    given = heads(0, 12).astype(np.float32)
    given[1, 2] = np.nextafter(given[1, 2], np.float32(1))
    assert_allclose(embed(given).points, embed(heads(0, 12)).points, atol=1e-3)
