"""Distances in trees: against the Floyd-Warshall algorithm, and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from headscope.core.annotation import NONE, ROOT
from headscope.studies.flow.paths import chain, descents, distances, path_lengths, restricted, sentence_chain


def random_heads(seed: int, size: int) -> list[int]:
    """A random forest: the head of a word is an earlier word of a random order, or the word is a root."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(size)
    heads = [ROOT] * size
    for place, word in enumerate(order):
        if place and rng.random() > 0.1:
            heads[word] = int(order[rng.integers(place)])
    return heads


def shortest(size: int, arcs: list[tuple[int, int]]) -> NDArray[np.float64]:
    found = np.full((size, size), np.inf)
    np.fill_diagonal(found, 0)
    for a, b in arcs:
        found[a, b] = 1
    for k in range(size):
        for i in range(size):
            for j in range(size):
                found[i, j] = min(found[i, j], found[i, k] + found[k, j])
    return np.where(np.isinf(found), np.nan, found)


@given(seed=st.integers(0, 2**32 - 1), size=st.integers(1, 9))
@settings(max_examples=40, deadline=None)
def test_descents_and_path_lengths_are_shortest_paths(seed: int, size: int) -> None:
    heads = random_heads(seed, size)
    arcs = [(head, word) for word, head in enumerate(heads) if head >= 0]
    assert np.array_equal(descents(heads), shortest(size, arcs), equal_nan=True)
    assert np.array_equal(path_lengths(heads), shortest(size, arcs + [(b, a) for a, b in arcs]), equal_nan=True)


def test_each_variant_has_the_distances_worked_out_by_hand() -> None:
    """Three words a b c: b is the root, and the head of a and c."""
    heads, gap = [1, ROOT, 1], np.nan
    expected = {
        "undirected": [[gap, 1, 2], [1, gap, 1], [2, 1, gap]],
        "undirected with diagonal": [[0, 1, 2], [1, 0, 1], [2, 1, 0]],
        "directed": [[gap, gap, gap], [1, gap, 1], [gap, gap, gap]],
        "directed with diagonal": [[0, gap, gap], [1, 0, 1], [gap, gap, 0]],
    }
    for variant, wanted in expected.items():
        assert np.array_equal(distances(heads, variant), wanted, equal_nan=True)  # type: ignore[arg-type]


def test_words_in_cycles_and_in_different_trees_have_no_distance() -> None:
    found = descents([1, 0, ROOT, 2])
    assert np.isnan(found[0, 1])
    assert np.isnan(found[1, 0])
    assert found[2, 3] == 1
    assert np.isnan(path_lengths([ROOT, NONE])[0, 1])


def test_chains_are_named_after_the_place_of_the_head() -> None:
    """Arcs lead from the head to the dependent. In "next word" they lead from i to i-1: Westera calls it LEFT."""
    assert chain(4, "next word") == [1, 2, 3, ROOT]
    assert chain(4, "previous word") == [ROOT, 0, 1, 2]
    assert chain(0, "next word") == []
    assert chain(1, "previous word") == [ROOT]
    assert sentence_chain([0, 0, 1, 1], "next word") == [1, ROOT, 3, ROOT]
    assert sentence_chain([0, 0, 1, 1], "previous word") == [ROOT, 0, ROOT, 2]
    down = distances(chain(3, "next word"), "directed")
    assert down[2, 0] == 2
    assert np.isnan(down[0, 2])
    assert np.array_equal(path_lengths(chain(5, "next word")), path_lengths(chain(5, "previous word")))
    assert path_lengths(chain(5, "next word"))[1] == pytest.approx([1, 0, 1, 2, 3])


def test_restricted_heads_are_places_among_the_kept_words() -> None:
    assert restricted([1, ROOT, 1, 2], [0, 1, 3]) == [1, ROOT, NONE]
