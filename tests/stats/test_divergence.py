from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy.spatial.distance import jensenshannon

from headscope.stats import divergence
from headscope.stats.divergence import jensen_shannon

Maps = NDArray[np.float64]


def plain(maps: Maps) -> Maps:
    """Pair by pair and row by row, with scipy, which gives the square root."""
    heads, rows, _ = maps.shape
    return np.array([[sum(jensenshannon(maps[i, r], maps[j, r]) ** 2 for r in range(rows)) for j in range(heads)] for i in range(heads)])


def dirichlet(seed: int, heads: int, rows: int, keys: int, alpha: float) -> Maps:
    return np.random.default_rng(seed).dirichlet(np.full(keys, alpha), (heads, rows))


def one_hot(places: list[int], keys: int) -> Maps:
    return np.eye(keys)[places][:, None]


WORLDS = {
    "random": dirichlet(0, 5, 7, 9, 1.0),
    "peaked": dirichlet(1, 4, 3, 30, 0.02),
    "flat": dirichlet(2, 4, 3, 30, 50.0),
    "one-hot": one_hot([0, 3, 3, 7], 8),
    "sparse": np.where(dirichlet(3, 5, 6, 12, 0.5) > 0.05, dirichlet(3, 5, 6, 12, 0.5), 0) + np.eye(12)[0] * 1e-3,
    "one key": np.ones((3, 4, 1)),
}
WORLDS["sparse"] /= WORLDS["sparse"].sum(-1, keepdims=True)


@pytest.mark.parametrize("name", WORLDS)
def test_equal_to_scipy(name: str) -> None:
    maps = WORLDS[name]
    found, rows = jensen_shannon(torch.from_numpy(maps))
    assert rows == maps.shape[1]
    expected = np.nan_to_num(plain(maps))
    assert_allclose(found, expected, atol=1e-12)
    single, _ = jensen_shannon(torch.from_numpy(maps).float())
    assert single.dtype == torch.float64
    assert_allclose(single, expected, atol=2e-6 * rows)


def test_values_worked_out_by_hand() -> None:
    """METHODS §6, n = 128: disjoint one-hots are ln 2 apart, a one-hot and even attention 0.670272."""
    maps = np.concatenate([one_hot([0, 5], 128), np.full((1, 1, 128), 1 / 128)])
    found, _ = jensen_shannon(torch.from_numpy(maps))
    assert found[0, 1] == pytest.approx(math.log(2), abs=1e-15)
    assert found[0, 2] == pytest.approx(0.670272, abs=1e-6)
    assert found[0, 2] == found[2, 0]


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 5), st.integers(1, 9), st.sampled_from([0.05, 1.0, 20.0]))
@settings(max_examples=40, deadline=None)
def test_a_symmetric_matrix_that_is_never_negative_and_zero_on_the_diagonal(seed: int, heads: int, rows: int, keys: int, a: float) -> None:
    maps = torch.from_numpy(dirichlet(seed, heads, rows, keys, a)).float()
    maps = torch.cat([maps, maps])  # equal heads
    found, _ = jensen_shannon(maps)
    assert_array_equal(found, found.T)
    assert_array_equal(found.diagonal(), 0)
    assert (found >= 0).all()
    assert (found <= rows * math.log(2) + 1e-5).all()
    assert_allclose(found[range(heads), range(heads, 2 * heads)], 0, atol=1e-6 * rows)


def test_rows_add_up_however_they_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    maps = torch.from_numpy(dirichlet(4, 6, 20, 11, 0.3))
    whole, _ = jensen_shannon(maps)
    parts = [jensen_shannon(part) for part in (maps[:, :7], maps[:, 7:14], maps[:, 14:])]
    assert_allclose(sum(sums for sums, _ in parts), whole, atol=1e-12)
    assert sum(rows for _, rows in parts) == 20
    monkeypatch.setattr(divergence, "BLOCK", 1)
    assert_allclose(jensen_shannon(maps)[0], whole, atol=1e-12)


def test_what_a_sink_takes_does_not_count() -> None:
    maps = torch.from_numpy(dirichlet(5, 4, 6, 8, 1.0))
    shares = torch.rand(4, 6, 1, dtype=torch.float64) * 0.9 + 0.1
    assert_allclose(jensen_shannon(maps * shares)[0], jensen_shannon(maps)[0], atol=1e-12)
