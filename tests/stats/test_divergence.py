"""Jensen-Shannon divergences between heads, by each form, against scipy and values worked out by hand."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy.special import rel_entr

from headscope.core.rows import AttentionScores, Reach
from headscope.stats import divergence
from headscope.stats.divergence import Form, RowStack, form_for, jensen_shannon
from headscope.stats.rows import score_statistics, seen

Maps = NDArray[np.float64]
CUDA = pytest.param(
    "triton", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device: the Triton kernel is not run")
)
FORMS = ("plain", "numba", CUDA)


def plain(maps: Maps) -> Maps:
    """Return the divergences of all pairs in float64, with scipy. Rows are not normalised, so they can be empty."""
    means = (maps[:, None] + maps[None]) / 2
    return np.asarray((rel_entr(maps[:, None], means) + rel_entr(maps[None], means)).sum((-1, -2)) / 2)


def by(form: Form, maps: Maps, starts: tuple[int, ...] | None = None, ends: Maps | None = None) -> Maps:
    """Return the divergences of each segment of rows, computed by one form."""
    heads, rows, keys = maps.shape
    device = torch.device("cuda" if form == "triton" else "cpu")
    stack = RowStack(np.zeros(rows, dtype=np.int64), np.arange(rows), [heads], keys, device, form)
    stack.put(0, torch.from_numpy(maps).float()[None].to(device))
    ends = np.full(rows, keys) if ends is None else ends
    return stack.divergences(np.array(starts or (0, rows)), ends.astype(np.int64)).cpu().numpy()


def dirichlet(seed: int, heads: int, rows: int, keys: int, alpha: float) -> Maps:
    return np.random.default_rng(seed).dirichlet(np.full(keys, alpha), (heads, rows))


def one_hot(places: list[int], keys: int) -> Maps:
    return np.eye(keys)[places][:, None]


def sparse(seed: int) -> Maps:
    maps = dirichlet(seed, 19, 6, 40, 0.5)
    maps = np.where(maps > 0.02, maps, 0) + np.eye(40)[0] * 1e-3
    return np.asarray(maps / maps.sum(-1, keepdims=True))


def with_empty_rows(maps: Maps) -> Maps:
    maps = maps.copy()
    maps[1, 0] = maps[3, 0] = maps[2] = 0
    return maps


def nearly_equal(maps: Maps, by: float) -> Maps:
    moved = maps * np.random.default_rng(9).uniform(1 - by, 1 + by, maps.shape)
    return np.asarray(moved / moved.sum(-1, keepdims=True))


def causal(maps: Maps) -> Maps:
    maps = maps * np.tri(maps.shape[-1])
    return np.asarray(maps / maps.sum(-1, keepdims=True))


BASE = dirichlet(4, 8, 5, 64, 0.2)
WORLDS = {
    "random": dirichlet(0, 37, 7, 9, 1.0),
    "peaked": dirichlet(1, 20, 3, 700, 0.02),
    "flat": dirichlet(2, 17, 3, 30, 50.0),
    "long": dirichlet(3, 5, 2, 1500, 0.3),
    "one-hot": one_hot([0, 3, 3, 7], 8),
    "even": np.full((18, 3, 33), 1 / 33),
    "sparse": sparse(3),
    "tiny weights": np.where(np.arange(20) < 1, 1.0, 0.0) + dirichlet(5, 6, 4, 20, 0.1) * 1e-30,
    "one key": np.ones((3, 4, 1)),
    "one head": dirichlet(6, 1, 4, 9, 1.0),
    "empty rows": with_empty_rows(dirichlet(7, 6, 3, 11, 1.0)),
    "causal": causal(dirichlet(8, 16, 12, 12, 0.4)),
    **{f"equal within {by}": np.concatenate([BASE, nearly_equal(BASE, by)]) for by in (1e-2, 1e-5)},
}


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("form", FORMS)
def test_divergences_equal_those_of_scipy(form: Form, name: str) -> None:
    maps = WORLDS[name]
    found = by(form, maps)[0]
    assert found.dtype == np.float64
    assert_allclose(found, plain(maps), atol=2e-6 * maps.shape[1])
    assert_array_equal(found, found.T)
    assert_array_equal(found.diagonal(), 0)
    assert (found >= 0).all()


@pytest.mark.parametrize("form", FORMS)
def test_divergences_equal_those_worked_out_by_hand(form: Form) -> None:
    """With n = 128, the divergence of two disjoint one-hot rows is ln 2, that of a one-hot and an even row
    0.670272.
    """
    maps = np.concatenate([one_hot([0, 5], 128), np.full((1, 1, 128), 1 / 128)])
    found = by(form, maps)[0]
    assert found[0, 1] == pytest.approx(math.log(2), abs=1e-6)
    assert found[0, 2] == pytest.approx(0.670272, abs=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_smoothed_rows_give_the_values_of_the_released_code(form: Form) -> None:
    """The same with p <- 0.999 p + 0.001 / n: 0.692365 and 0.666353."""
    maps = torch.from_numpy(np.concatenate([one_hot([0, 5], 128), np.full((1, 1, 128), 1 / 128)])).float()
    device = torch.device("cuda" if form == "triton" else "cpu")
    here = np.zeros(1, dtype=np.int64)
    stack = RowStack(here, here, [3], 128, device, form)
    stack.put(0, maps[None].to(device), towards=(1e-3, torch.full((1, 1, 128), 1 / 128, device=device)))
    found = stack.divergences(np.array([0, 1]), np.array([128]))[0]
    assert float(found[0, 1]) == pytest.approx(0.692365, abs=1e-6)
    assert float(found[0, 2]) == pytest.approx(0.666353, abs=1e-6)


@given(st.integers(0, 10_000), st.integers(1, 6), st.integers(1, 5), st.integers(1, 9), st.sampled_from([0.05, 1.0, 20.0]))
@settings(max_examples=40, deadline=None)
def test_the_compiled_loop_agrees_with_plain_torch(seed: int, heads: int, rows: int, keys: int, alpha: float) -> None:
    maps = dirichlet(seed, heads, rows, keys, alpha)
    maps = np.concatenate([maps, maps])  # equal heads
    found = by("numba", maps)[0]
    assert_allclose(found, by("plain", maps)[0], atol=1e-6 * rows)
    assert_array_equal(found[range(heads), range(heads, 2 * heads)], 0)
    assert (found <= rows * math.log(2) + 1e-5).all()


@pytest.mark.parametrize("form", FORMS)
def test_segments_are_summed_separately_and_ends_of_rows_do_not_change_sums(form: Form) -> None:
    maps = WORLDS["causal"]
    by_segment = by(form, maps, (0, 1, 5, 5, 12))
    assert_allclose(by_segment.sum(0), by(form, maps)[0], atol=1e-5)
    for number, (start, stop) in enumerate(((0, 1), (1, 5), (5, 5), (5, 12))):
        assert_allclose(by_segment[number], plain(maps[:, start:stop]), atol=1e-5)
    ends = np.arange(1.0, 13.0)
    assert_allclose(by(form, maps, ends=ends), by(form, maps), atol=1e-6)


@pytest.mark.parametrize("form", FORMS)
def test_chosen_rows_of_sites_with_different_numbers_of_heads_equal_scipy(form: Form) -> None:
    rng = np.random.default_rng(11)
    sites = [rng.dirichlet(np.full(6, 0.5), (2, heads, 5)) for heads in (1, 4, 2)]  # [text, head, query, key]
    texts, places = [0, 0, 1], [4, 1, 3]
    device = torch.device("cuda" if form == "triton" else "cpu")
    stack = RowStack(np.array(texts), np.array(places), [1, 4, 2], 6, device, form)
    for number, site in enumerate(sites):
        stack.put(number, torch.from_numpy(site).float().to(device))
    rows = np.concatenate([site[texts, :, places] for site in sites], 1).transpose(1, 0, 2)
    found = stack.divergences(np.array([0, 2, 3]), np.full(3, 6)).cpu()
    assert_allclose(found[0], plain(rows[:, :2]), atol=1e-6)
    assert_allclose(found[1], plain(rows[:, 2:]), atol=1e-6)


def test_the_number_of_threads_does_not_change_divergences() -> None:
    maps = dirichlet(12, 50, 9, 70, 0.2)
    before = torch.get_num_threads()
    try:
        found = []
        for threads in (1, 2, 7):
            torch.set_num_threads(threads)
            found.append(by("numba", maps))
    finally:
        torch.set_num_threads(before)
    assert_array_equal(found[0], found[1])
    assert_array_equal(found[0], found[2])


def test_torch_keeps_its_number_of_threads() -> None:
    """The code runs in a new process, because numba starts its threads only once."""
    code = """
import torch
torch.set_num_threads(1)
from headscope.stats.divergence import jensen_shannon
jensen_shannon(torch.softmax(torch.randn(2, 4, 5), -1))
assert torch.get_num_threads() == 1, torch.get_num_threads()
"""
    subprocess.run([sys.executable, "-c", code], check=True, env={**os.environ, "OMP_NUM_THREADS": "2", "NUMBA_NUM_THREADS": "2"})


def test_sums_over_parts_of_the_rows_add_up_to_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    maps = torch.from_numpy(dirichlet(4, 6, 20, 11, 0.3))
    whole, _ = jensen_shannon(maps)
    parts = [jensen_shannon(part) for part in (maps[:, :7], maps[:, 7:14], maps[:, 14:])]
    assert_allclose(sum(sums for sums, _ in parts), whole, atol=1e-12)
    assert sum(rows for _, rows in parts) == 20
    plainly = by("plain", maps.numpy())
    monkeypatch.setattr(divergence, "BLOCK", 1)
    assert_allclose(by("plain", maps.numpy()), plainly, atol=1e-5)


@pytest.mark.parametrize("form", FORMS)
def test_the_share_of_a_sink_does_not_change_divergences(form: Form) -> None:
    maps = dirichlet(5, 4, 6, 8, 1.0)
    shares = np.random.default_rng(0).uniform(0.1, 1, (4, 6, 1))
    assert_allclose(by(form, maps * shares), by(form, maps), atol=1e-5)


def test_plain_torch_is_used_without_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    assert form_for(torch.device("cpu")) == "numba"
    assert form_for(torch.device("meta")) == "plain"
    monkeypatch.setattr(divergence, "kernel", lambda name: None)
    assert {form_for(torch.device(name)) for name in ("cpu", "cuda", "mps")} == {"plain"}
    maps = dirichlet(13, 4, 3, 9, 1.0)
    assert_allclose(jensen_shannon(torch.from_numpy(maps))[0], plain(maps), atol=1e-5)


@pytest.mark.parametrize("reach", [Reach(), Reach(None, 0), Reach(3, 0), Reach(2, 4)], ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_rows_from_scores_give_the_divergences_of_maps(form: Form, reach: Reach) -> None:
    """Three texts of different lengths, grouped-query heads, and rows from the first and the last text."""
    device, rng = torch.device("cuda" if form == "triton" else "cpu"), torch.Generator().manual_seed(1)
    query, key = (torch.randn(3, heads, 70, 8, generator=rng).to(device) for heads in (4, 2))
    lengths = torch.tensor([70, 5, 40], device=device)
    _, logs = score_statistics(query, key, 0.5, reach, (lengths, lengths), torch.zeros(3, 70, 0, device=device), ())
    visible = seen(reach, lengths, lengths, range(70), 70)[:, None]
    scores = query @ key.repeat_interleave(2, 1).transpose(-1, -2) * 0.5
    maps = scores.masked_fill(~visible, -torch.inf).softmax(-1).nan_to_num(0)
    texts, places = np.array([0] * 70 + [2] * 3), np.array([*range(70), 1, 17, 39])
    stacks = [RowStack(texts, places, [4, 4], 70, device, form) for _ in range(2)]
    for site in range(2):
        stacks[0].put(site, maps)
        stacks[1].put_scores(site, AttentionScores(query, key, 0.5, reach, (lengths, lengths), logs))
    segments, ends = np.array([0, 30, 70, 73]), np.array([70] * 70 + [40] * 3)
    expected, found = (stack.divergences(segments, ends).cpu().numpy() for stack in stacks)
    assert expected.max() > 0.1
    assert_allclose(found, expected, atol=2e-5 * 40)
