"""Mean distances within and between layers, and their permutation test."""

from __future__ import annotations

from itertools import combinations, permutations

import numpy as np
import pytest
from numpy.typing import NDArray

from headscope.errors import MeasureError
from headscope.stats import dissimilarity as module
from headscope.stats.dissimilarity import layering

Matrix = NDArray[np.float64]


def unstructured(seed: int, n: int) -> Matrix:
    """Return random distances without structure."""
    upper = np.triu(np.random.default_rng(seed).uniform(size=(n, n)), 1)
    return upper + upper.T


def by_hand(given: Matrix, layers: list[int]) -> tuple[float, float]:
    """Return the mean distances within and between layers, computed by a loop over pairs."""
    within: list[float] = []
    between: list[float] = []
    for a, b in combinations(range(len(layers)), 2):
        (within if layers[a] == layers[b] else between).append(given[a, b])
    return float(np.mean(within)), float(np.mean(between))


def test_means_equal_those_worked_out_by_hand() -> None:
    """Two layers of two heads: distances of 0.1 and 0.3 within layers, of 0.4, 0.5, 0.6 and 0.7 between them."""
    given = np.array([[0, 0.1, 0.4, 0.5], [0.1, 0, 0.6, 0.7], [0.4, 0.6, 0, 0.3], [0.5, 0.7, 0.3, 0]])
    found = layering(given, [0, 0, 1, 1], permutations=5)
    assert found[:3] == pytest.approx((0.2, 0.55, 0.35))
    # Of the three ways to split four heads into pairs, this one has the largest difference, so one permutation in three
    # has as large a difference.
    assert layering(given, [0, 0, 1, 1]).p == pytest.approx(1 / 3, abs=0.02)


@pytest.mark.parametrize("layers", [[0, 0, 1, 1, 2, 2, 2], [4, 0, 0, 4, 4, 4, 9]], ids=["three", "uneven"])
@pytest.mark.parametrize("seed", range(3))
def test_p_is_the_share_of_all_permutations_with_as_large_a_difference(layers: list[int], seed: int) -> None:
    given = unstructured(seed, 7)
    within, between = by_hand(given, layers)
    ways = []
    for order in permutations(range(7)):
        way = by_hand(given, [layers[place] for place in order])
        ways.append(way[1] - way[0])
    exact = np.mean(np.array(ways) >= between - within - 1e-12)
    found = layering(given, layers, permutations=20_000, seed=seed)
    assert found[:3] == pytest.approx((within, between, between - within))
    assert found.p == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 20_000) + 1e-4)


def test_planted_layers_are_found_and_shuffled_ones_are_not() -> None:
    rng = np.random.default_rng(0)
    layers = np.repeat(np.arange(6), 5)
    given = unstructured(1, 30) + 0.5 * (layers[:, None] != layers)
    planted = layering(given, layers)
    assert planted.p == 1 / 10_001
    assert planted.difference == pytest.approx(0.5, abs=0.1)
    farther = layering(unstructured(1, 30) + 0.5 * ((layers[:, None] == layers) & ~np.eye(30, dtype=bool)), layers)
    assert farther.p > 0.999
    assert farther.difference < 0
    chances = [layering(given, rng.permutation(layers), permutations=400).p for _ in range(60)]
    assert 0.35 < np.mean(chances) < 0.65, "p is uniform from 0 to 1 if there is no structure"
    assert min(chances) < 0.1
    assert max(chances) > 0.9


def test_results_depend_neither_on_the_order_of_heads_nor_on_block_size(monkeypatch: pytest.MonkeyPatch) -> None:
    given, layers = unstructured(2, 20), np.repeat(np.arange(4), 5)
    whole = layering(given, layers, permutations=999, seed=5)
    assert layering(given, layers, permutations=999, seed=5) == whole
    monkeypatch.setattr(module, "BLOCK", 300)
    assert layering(given, layers, permutations=999, seed=5) == whole
    order = np.random.default_rng(0).permutation(20)
    mixed = layering(given[np.ix_(order, order)], layers[order], permutations=999, seed=5)
    assert mixed[:3] == pytest.approx(whole[:3])
    assert mixed.p == pytest.approx(whole.p, abs=0.06)


def test_equal_distances_give_p_1() -> None:
    assert layering(1 - np.eye(8), np.repeat([0, 1], 4), permutations=50).p == 1


@pytest.mark.parametrize(("layers", "known"), [([0, 0, 0], 0), ([0, 1, 2], 1)])
def test_there_is_no_difference_without_both_kinds_of_pairs(layers: list[int], known: int) -> None:
    found = layering(1 - np.eye(3), layers)
    assert found[known] == 1
    assert np.isnan([value for place, value in enumerate(found) if place != known]).all()


def test_one_head_gives_nan_and_invalid_distances_are_refused() -> None:
    assert np.isnan(layering(np.zeros((1, 1)), [0])).all()
    with pytest.raises(MeasureError, match="nan"):
        layering(np.full((2, 2), np.nan), [0, 1])
    with pytest.raises(MeasureError, match="3 heads"):
        layering(1 - np.eye(3), [0, 1])
