"""Spanning trees against a search over all trees."""

from __future__ import annotations

import inspect
import itertools
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from headscope.stats.spanning import arborescence, prim


def is_tree(heads: tuple[int, ...]) -> bool:
    if heads.count(-1) != 1:
        return False
    for node in range(len(heads)):
        seen = set()
        while node >= 0:
            if node in seen:
                return False
            seen.add(node)
            node = heads[node]
    return True


def total(scores: NDArray[np.float64], heads: tuple[int, ...]) -> float:
    return float(sum(scores[node, head] for node, head in enumerate(heads) if head >= 0))


@given(size=st.integers(1, 5), seed=st.integers(0, 2**32 - 1), coarse=st.booleans())
@settings(max_examples=150, deadline=None)
def test_arborescence_finds_the_best_of_all_directed_trees(size: int, seed: int, coarse: bool) -> None:
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 4, (size, size)).astype(float) if coarse else rng.random((size, size))
    found = tuple(arborescence(scores).tolist())
    assert is_tree(found)
    every = (heads for heads in itertools.product(range(-1, size), repeat=size) if is_tree(heads))
    assert total(scores, found) == pytest.approx(max(total(scores, heads) for heads in every))


@given(size=st.integers(1, 5), seed=st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_arborescence_with_scores_for_the_root_finds_the_best_tree(size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    scores, roots = rng.normal(size=(size, size)), 3 * rng.normal(size=size)
    found = tuple(arborescence(scores, roots).tolist())
    assert is_tree(found)

    def whole(heads: tuple[int, ...]) -> float:
        return total(scores, heads) + float(roots[heads.index(-1)])

    every = (heads for heads in itertools.product(range(-1, size), repeat=size) if is_tree(heads))
    assert whole(found) == pytest.approx(max(map(whole, every)))


def test_nested_cycles_do_not_exceed_the_recursion_limit() -> None:
    """Each pair of neighbours is a cycle, nested in the next one. The best tree is a chain from end to end."""
    size = 150
    scores = np.zeros((size, size))
    for node in range(size - 1):
        scores[node, node + 1] = scores[node + 1, node] = 1 + node / size
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack(0)) + 60)
    try:
        found = tuple(arborescence(scores).tolist())
    finally:
        sys.setrecursionlimit(before)
    assert is_tree(found)
    assert total(scores, found) == pytest.approx(sum(1 + node / size for node in range(size - 1)))


@given(size=st.integers(1, 6), seed=st.integers(0, 2**32 - 1), coarse=st.booleans())
@settings(max_examples=100, deadline=None)
def test_prim_finds_the_best_of_all_undirected_trees(size: int, seed: int, coarse: bool) -> None:
    rng = np.random.default_rng(seed)
    half = rng.integers(0, 4, (2, 3, size, size)).astype(float) if coarse else rng.random((2, 3, size, size))
    scores = half + half.swapaxes(-1, -2)
    nodes = rng.random((2, size)) < 0.8
    joined = prim(torch.from_numpy(scores), torch.from_numpy(nodes)).numpy()
    for text in range(2):
        real = np.flatnonzero(nodes[text])
        for graph in range(3):
            edges = [(node, joined[text, graph, node]) for node in range(size) if joined[text, graph, node] >= 0]
            assert len(edges) == max(len(real) - 1, 0)
            assert {node for edge in edges for node in edge} <= set(real)
            if len(real) > 1:
                assert sum(scores[text, graph, a, b] for a, b in edges) == pytest.approx(best_tree(scores[text, graph], real))


def best_tree(scores: NDArray[np.float64], nodes: NDArray[np.int64]) -> float:
    """Return the weight of the best tree, by Kruskal's algorithm: repeatedly add the heaviest edge that closes no
    cycle.
    """
    part = {int(node): int(node) for node in nodes}
    weight = 0.0
    for a, b in sorted(itertools.combinations(map(int, nodes), 2), key=lambda edge: -scores[edge]):
        if part[a] != part[b]:
            weight += scores[a, b]
            old, new = part[a], part[b]
            part = {node: new if label == old else label for node, label in part.items()}
    return weight


def test_graphs_without_pairs_of_nodes_have_no_edges() -> None:
    assert arborescence(np.zeros((0, 0))).tolist() == []
    assert arborescence(np.zeros((1, 1))).tolist() == [-1]
    assert prim(torch.zeros(1, 1, 3, 3), torch.zeros(1, 3, dtype=torch.bool)).tolist() == [[[-1, -1, -1]]]
