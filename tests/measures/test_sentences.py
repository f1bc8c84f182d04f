"""Favourites within sentences: from scores in plain torch, from scores by the kernels, and from maps, they are the
same.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from headscope.core.batch import Forms, MapBatch, Side, TokenMaps
from headscope.core.heads import HeadLayout, Site
from headscope.core.rows import AttentionScores, Reach, SpanWeights
from headscope.kernels import attention_cpu
from headscope.measures.weights import sentences
from headscope.measures.weights.sentences import sentence_layouts
from headscope.measures.weights.words import SentenceIndex, WordIndex, sentence_spans
from headscope.stats.bootstrap import poisson_weights
from headscope.stats.rows import score_statistics, seen

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"))]


def world(seed: int, first_only: bool) -> tuple[WordIndex, np.ndarray, torch.Tensor, int]:
    """Return the words of two texts, the bounds of their tokens, the bounds of the attending tokens, and the number of
    tokens. A text has several sentences of words of one to three tokens, after a special token.
    """
    rng = np.random.default_rng(seed)
    sizes = [rng.integers(1, 4, rng.integers(5, 30)) for _ in range(2)]
    width = max(map(len, sizes)) + 1
    places = np.zeros((2, 2, width), dtype=np.int64)
    places[1, :, 0] = 1  # the special token
    text: list[int] = []
    place: list[int] = []
    sentence: list[int] = []
    for number, size in enumerate(sizes):
        ends = 1 + np.cumsum(size)
        places[0, number, 1 : len(size) + 1], places[1, number, 1 : len(size) + 1] = ends - size, ends
        text += [number] * len(size)
        place += range(1, len(size) + 1)
        sentence += (np.arange(len(size)) * rng.integers(1, 4) // len(size)).tolist()
    firsts = np.array([0, len(sizes[0])])
    words = WordIndex(np.array(text), np.array(place), firsts, np.array(sentence))
    rows = torch.from_numpy(places.copy())
    if first_only:
        rows[1] = torch.minimum(rows[0] + 1, rows[1])
    return words, places, rows, int(places[1].max())


def slowly(words: WordIndex, places: np.ndarray, rows: np.ndarray, maps: np.ndarray) -> np.ndarray:
    """Return the favourite of each word, computed by loops."""
    found = np.full((2, 2, maps.shape[1], places.shape[2]), -1)
    for direction in range(2):
        for head in range(maps.shape[1]):
            for i in range(len(words)):
                best = 0.0
                for j in range(len(words)):
                    if i == j or (words.text[i], words.sentence[i]) != (words.text[j], words.sentence[j]):
                        continue
                    a, b = ((i, j), (j, i))[direction]
                    text = words.text[i]
                    attending = range(*rows[:, text, words.place[a]])
                    attended = range(*places[:, text, words.place[b]])
                    weight = sum(maps[text, head, q, k] for q in attending for k in attended) / max(1, len(attending))
                    if weight > best:
                        best = weight
                        found[direction, text, head, words.place[i]] = words.place[j]
    return found


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("reach", [Reach(), Reach(None, 0), Reach(5, 0), Reach(4, 4)], ids=str)
@pytest.mark.parametrize("first_only", [False, True])
def test_favourites_from_maps_and_from_scores_equal_loops(
    device: str, reach: Reach, first_only: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, places, rows, tokens = world(3, first_only)
    random = torch.Generator().manual_seed(1)
    query, key = (torch.randn(2, heads, tokens, 8, generator=random) for heads in (4, 2))
    lengths = torch.from_numpy(places[1].max(1))
    _, logs = score_statistics(query, key, 0.5, reach, (lengths, lengths), torch.zeros(2, tokens, 0), ())
    visible = seen(reach, lengths, lengths, range(tokens), tokens)[:, None]
    scores = query @ key.repeat_interleave(2, 1).transpose(-1, -2) * 0.5
    maps = scores.masked_fill(~visible, -torch.inf).softmax(-1).nan_to_num(0)
    expected = torch.from_numpy(slowly(words, places, rows.numpy(), maps.double().numpy()))
    target = torch.device(device)

    def chosen(weights: torch.Tensor | None, given: AttentionScores | None) -> torch.Tensor:
        bounds = torch.from_numpy(places).to(target)
        parts = TokenMaps(None if weights is None else weights.to(target), rows.to(target), bounds, places, 3, given)
        out = torch.full((2, 2, 4, places.shape[2]), -1, device=target)
        for layout in sentence_layouts(words, places, target):
            layout.block(parts).put(out, parts)
        return out.cpu()

    moved = AttentionScores(query.to(target), key.to(target), 0.5, reach, (lengths.to(target), lengths.to(target)), logs.to(target))
    torch.testing.assert_close(chosen(maps, None), expected)
    torch.testing.assert_close(chosen(None, moved), expected)
    if device == "cpu":
        spans = torch.from_numpy(sentence_spans(words, places, tokens))
        parts = ((lengths, lengths), torch.zeros(2, tokens, 0), (), spans)
        near = attention_cpu.attend(query, key, key, 0.5, (reach.before, reach.after), *parts)[3]
        assert near is not None
        known = replace(moved, spans=SpanWeights(near, spans[0]))
        layout, side = HeadLayout((Site("encoder", 0, 4, 4, "drawn"),)), Side(np.zeros((2, 1)), lambda: (Forms(), np.zeros((2, 1))))
        maps_of_words = TokenMaps(None, rows, torch.from_numpy(places), places, 3, known)
        batch = MapBatch(0, layout, None, side, side, partial(poisson_weights, replicates=0), tokens=maps_of_words)
        torch.testing.assert_close(SentenceIndex(words, places.shape[2], target).favourites(batch), expected)
    monkeypatch.setattr(sentences, "kernel", lambda name: None)
    torch.testing.assert_close(chosen(maps, None), expected)
    torch.testing.assert_close(chosen(None, moved), expected)
