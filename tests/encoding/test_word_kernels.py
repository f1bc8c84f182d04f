"""Compiled word maps and favourites (the words with the most attention), compared with the plain ones."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from numpy.typing import NDArray

from headscope.core.batch import WORD, MapBatch, Side, TokenMaps, stack
from headscope.core.heads import HeadLayout, Site
from headscope.encoding.choices import Rows
from headscope.encoding.words import WordGroups, plain_word_map, token_maps, word_map, word_places
from headscope.kernels import words_cpu
from headscope.measures.weights import words as favourites
from headscope.measures.weights.words import SentenceIndex, WordIndex
from headscope.stats.bootstrap import poisson_weights

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"))]


def groups(rng: np.random.Generator, texts: int, device: str, sizes: Sequence[int] = (1, 2, 3, 4)) -> WordGroups:
    """Texts of words of one to four tokens, padded."""
    drawn = [rng.choice(sizes, rng.integers(1, 8)) for _ in range(texts)]
    of = torch.full((texts, max(int(size.sum()) for size in drawn)), -1)
    for row, size in enumerate(drawn):
        of[row, : size.sum()] = torch.from_numpy(np.repeat(np.arange(len(size)), size))
    side = stack([["w"] * len(size) for size in drawn], [[WORD] * len(size) for size in drawn])
    return WordGroups(side, of.to(device), 4, word_places(of.numpy(), side.width))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("rows", ["mean", "first", "max"])
@given(seed=st.integers(0, 10_000), texts=st.integers(1, 4), heads=st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_compiled_word_maps_equal_the_plain_ones(device: str, rows: Rows, seed: int, texts: int, heads: int) -> None:
    rng = np.random.default_rng(seed)
    queries, keys = groups(rng, texts, device), groups(rng, texts, device)
    weights = torch.from_numpy(rng.random((texts, heads, queries.of.shape[1], keys.of.shape[1]))).float().to(device)
    weights = weights * (queries.of >= 0)[:, None, :, None] * (keys.of >= 0)[:, None, None, :]
    torch.testing.assert_close(word_map(weights, queries, keys, rows), plain_word_map(weights, queries, keys, rows))
    for start, stop in ((0, 1), (1, queries.side.width), (0, queries.side.width)):
        if start < stop:
            part, first, end = queries.part(start, stop)
            found = word_map(weights[:, :, first:end], part, keys, rows)
            torch.testing.assert_close(found, plain_word_map(weights, queries, keys, rows)[:, :, start:stop])


def word_index(rng: np.random.Generator, texts: int, width: int) -> tuple[WordIndex, NDArray[np.int64]]:
    """Words of up to three consecutive sentences, and the sentence of each position; some positions have no word."""
    sentence = np.sort(rng.integers(0, 3, (texts, width)), 1)
    sentence[rng.random((texts, width)) < 0.2] = -1
    text, place = (sentence >= 0).nonzero()
    counts = np.bincount(text, minlength=texts)
    return WordIndex(text, place, np.concatenate([[0], np.cumsum(counts)[:-1]]), sentence[text, place]), sentence


def batch_of(maps: torch.Tensor, side: Side, tokens: TokenMaps | None = None) -> MapBatch:
    layout = HeadLayout((Site("encoder", 0, maps.shape[1], maps.shape[1], "drawn"),))
    return MapBatch(0, layout, maps, side, side, partial(poisson_weights, replicates=0), tokens=tokens)


def plain_favourites(words: WordIndex, batch: MapBatch) -> torch.Tensor:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(favourites, "kernel", lambda name: None)
        return SentenceIndex(words, batch.keys.width, batch.device).favourites(batch)


@given(seed=st.integers(0, 10_000))
@settings(max_examples=50, deadline=None)
def test_compiled_favourites_equal_the_plain_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    texts, width = int(rng.integers(1, 4)), int(rng.integers(2, 9))
    words, sentence = word_index(rng, texts, width)
    # Only three different weights, so that some are equal and some are 0.
    weights = torch.from_numpy(rng.integers(0, 3, (texts, 2, width, width)) / 4).float()
    batch = batch_of(weights, stack([["w"] * width] * texts, [[WORD] * width] * texts))
    compiled = SentenceIndex(words, width, batch.device).favourites(batch)
    plain = plain_favourites(words, batch)
    words_at = torch.from_numpy(sentence >= 0)[None, :, None].expand(plain.shape)
    assert_array_equal(compiled[words_at], plain[words_at])
    assert (compiled[~words_at] == -1).all()


@pytest.mark.parametrize("rows", ["mean", "first"])
@given(seed=st.integers(0, 10_000))
@settings(max_examples=50, deadline=None)
def test_favourites_from_token_maps_equal_those_from_the_word_map(rows: Rows, seed: int) -> None:
    """Token maps with exact sums (words of one, two or four tokens, few different weights) have the favourites of the
    plain word map, ties included.
    """
    rng = np.random.default_rng(seed)
    side = groups(rng, int(rng.integers(1, 4)), "cpu", sizes=(1, 2, 4))
    texts, width = side.side.roles.shape
    words, _ = word_index(rng, texts, width)
    inside = (side.side.roles >= 0)[words.text, words.place]
    counts = np.bincount(words.text[inside], minlength=texts)
    first = np.concatenate([[0], np.cumsum(counts)[:-1]])
    words = WordIndex(words.text[inside], words.place[inside], first, words.sentence[inside])
    tokens = side.of.shape[1]
    weights = torch.from_numpy(rng.integers(0, 3, (texts, 2, tokens, tokens)) / 4).float()
    weights = weights * (side.of >= 0)[:, None, :, None] * (side.of >= 0)[:, None, None, :]
    batch = batch_of(plain_word_map(weights, side, side, rows), side.side, token_maps(weights, side, side, rows))
    compiled = SentenceIndex(words, width, batch.device).favourites(batch)
    plain = plain_favourites(words, batch)
    assert_array_equal(compiled[:, words.text, :, words.place], plain[:, words.text, :, words.place])


@given(seed=st.integers(0, 10_000))
@settings(max_examples=25, deadline=None)
def test_counts_of_right_answers_equal_those_of_a_plain_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    chosen = rng.integers(-1, 4, (2, 3, 2, 4))
    text, word, answer, cell = (rng.integers(0, size, 20) for size in (3, 4, 4, 5))
    expected = np.zeros((5, 2, 2), dtype=np.int64)
    for case in range(20):
        for direction in range(2):
            for head in range(2):
                expected[cell[case], direction, head] += chosen[direction, text[case], head, word[case]] == answer[case]
    assert_array_equal(words_cpu.count_right(chosen, text, word, answer, cell, 5), expected)
