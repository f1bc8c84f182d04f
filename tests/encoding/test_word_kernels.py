"""The compiled forms of word maps and of favourites against the plain ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from headscope.core.batch import WORD, stack
from headscope.encoding.choices import Rows
from headscope.encoding.words import WordGroups, plain_word_map, word_map
from headscope.measures import words as favourites
from headscope.measures.words import SentenceIndex, WordIndex

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"))]


def groups(rng: np.random.Generator, texts: int, device: str) -> WordGroups:
    """Texts of words of one to four tokens, padded."""
    sizes = [rng.integers(1, 5, rng.integers(1, 8)) for _ in range(texts)]
    of = torch.full((texts, max(int(size.sum()) for size in sizes)), -1)
    for row, size in enumerate(sizes):
        of[row, : size.sum()] = torch.from_numpy(np.repeat(np.arange(len(size)), size))
    side = stack([["w"] * len(size) for size in sizes], [[WORD] * len(size) for size in sizes])
    return WordGroups(side, of.to(device))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("rows", ["mean", "first", "max"])
@given(seed=st.integers(0, 10_000), texts=st.integers(1, 4), heads=st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_compiled_word_maps_are_those_of_products(device: str, rows: Rows, seed: int, texts: int, heads: int) -> None:
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


@given(seed=st.integers(0, 10_000))
@settings(max_examples=50, deadline=None)
def test_compiled_favourites_are_those_of_masks(seed: int) -> None:
    rng = np.random.default_rng(seed)
    texts, width = int(rng.integers(1, 4)), int(rng.integers(2, 9))
    # Sentences follow each other, with something between them now and then that is no word.
    sentence = np.sort(rng.integers(0, 3, (texts, width)), 1)
    sentence[rng.random((texts, width)) < 0.2] = -1
    text, place = (sentence >= 0).nonzero()
    counts = np.bincount(text, minlength=texts)
    words = WordIndex(text, place, np.concatenate([[0], np.cumsum(counts)[:-1]]), sentence[text, place])
    # Few different weights, so that some are equal, and some are 0.
    weights = torch.from_numpy(rng.integers(0, 3, (texts, 2, width, width)) / 4).float()
    compiled = SentenceIndex(words, width, torch.device("cpu")).favourites(weights)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(favourites, "kernel", lambda name: None)
        plain = SentenceIndex(words, width, torch.device("cpu")).favourites(weights)
    words_at = torch.from_numpy(sentence >= 0)[None, :, None].expand(plain.shape)
    assert_array_equal(compiled[words_at], plain[words_at])
    assert (compiled[~words_at] == -1).all()
