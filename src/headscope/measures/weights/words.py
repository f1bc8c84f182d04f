"""The annotated words of a batch of word-level maps as flat tensors, for measures of heads as classifiers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.batch import IS_WORD, MapBatch, Side, TokenMaps
from headscope.core.rows import SpanWeights
from headscope.kernels import kernel
from headscope.measures.weights.sentences import SentenceBlock, sentence_layouts

if TYPE_CHECKING:
    import torch
    from jaxtyping import Bool, Float, Int


@dataclass(frozen=True)
class WordIndex:
    """All N words of a batch in one sequence. `text` and `place` are their places in the maps."""

    text: Int[np.ndarray, "n"]
    place: Int[np.ndarray, "n"]
    first: Int[np.ndarray, "batch"]  # the number, among the N, of each text's first word
    sentence: Int[np.ndarray, "n"]

    @classmethod
    def of(cls, side: Side) -> WordIndex:
        """The words of the rows or columns of a batch."""
        text, place = side.chosen("word", IS_WORD).nonzero()
        counts = np.bincount(text, minlength=len(side.texts))
        if [len(annotation.words) for annotation in side.texts] != counts.tolist():
            raise ValueError("the words of the annotation are not those of the maps")
        first = np.concatenate([[0], np.cumsum(counts)[:-1]])
        sentence = np.concatenate([annotation.sentence_of for annotation in side.texts])
        return cls(text, place, first, sentence)

    def __len__(self) -> int:
        return len(self.text)

    def bounds(self) -> tuple[Int[np.ndarray, "n"], Int[np.ndarray, "n"]]:
        """For each word, the numbers of the first word of its sentence and of the first word after it."""
        new = np.ones(len(self), dtype=bool)
        new[1:] = (self.sentence[1:] != self.sentence[:-1]) | (self.text[1:] != self.text[:-1])
        edges = np.append(np.flatnonzero(new), len(self))
        which = np.cumsum(new) - 1
        return edges[which], edges[which + 1]

    def same_sentence(self, width: int) -> Bool[np.ndarray, "batch width width"]:
        """For each position that is a word, True at the other words of its sentence."""
        sentence_at = np.full((len(self.first), width), -1)
        sentence_at[self.text, self.place] = self.sentence
        allowed: Bool[np.ndarray, "batch width width"] = (sentence_at[:, :, None] == sentence_at[:, None, :]) & (sentence_at >= 0)[
            :, :, None
        ]
        allowed[:, np.arange(width), np.arange(width)] = False
        return allowed


def sentence_spans(words: WordIndex, places: Int[np.ndarray, "side batch word"], tokens: int) -> Int[np.ndarray, "side batch token"]:
    """For each token the tokens of its sentence: the first, and the first one after them; twice 0 if it is part of no
    word. `places` are the tokens of words.
    """
    first, after = words.bounds()
    starts, stops = (side[words.text, words.place] for side in places)
    counts = stops - starts
    word = np.repeat(np.arange(len(words)), counts)
    token = np.arange(len(word)) - np.repeat(np.cumsum(counts) - counts - starts, counts)
    spans = np.zeros((2, len(words.first), tokens), dtype=np.int64)
    spans[:, words.text[word], token] = np.stack([starts[first], stops[after - 1]])[:, word]
    return spans


def trees_of(side: Side) -> tuple[Int[np.ndarray, "tree n"], Int[np.ndarray, "tree n"]]:
    """The tags of all words of a batch, by number, and their governors, by number within the text: first in their own
    tree, then in each draw of the control. If a text has fewer trees, the missing ones have no annotation.
    """
    count = max(len(annotation.trees) for annotation in side.texts)
    trees = [annotation.trees.filled(count) for annotation in side.texts]
    return np.concatenate([tree.tags for tree in trees], 1), np.concatenate([tree.heads for tree in trees], 1)


def favourites(
    batch: MapBatch, text: Int[torch.Tensor, "n"], place: Int[torch.Tensor, "n"], allowed: Bool[torch.Tensor, "n position"]
) -> Int[torch.Tensor, "direction n head"]:
    """The position that each word attends to most and the one that attends to it most, among the `allowed`; -1 if none
    of these has any weight.

    The first of equal weights wins.
    """
    import torch

    rows = (batch.weights[text, :, place], batch.weights[text, :, :, place])  # [n, head, position]
    return torch.stack([_strongest(weights * allowed[:, None], -1) for weights in rows])


class SentenceIndex:
    """The places of a batch's sentences, used to find the favourites of all words in their sentences at once.

    `further` are positions that every word of their text can also pick, such as special tokens. `places` are the tokens
    of words; if given, sentences are laid out for a GPU on creation, not when its attention arrives.
    """

    def __init__(
        self,
        words: WordIndex,
        width: int,
        device: torch.device,
        further: Bool[np.ndarray, "batch position"] | None = None,
        places: Int[np.ndarray, "side batch position"] | None = None,
    ) -> None:
        self._words, self._width, self._device, self._further = words, width, device, further
        self._layouts = sentence_layouts(words, places, device) if places is not None and device.type == "cuda" else None
        self._blocks: list[SentenceBlock] | None = None

    def favourites(self, batch: MapBatch) -> Int[torch.Tensor, "direction batch head position"]:
        """The result of `favourites`, with the other words of the sentence and the `further` positions allowed."""
        import torch

        tokens = batch.tokens if self._further is None else None
        if tokens is not None and (fast := kernel("words_cpu")) is not None and (spans := _on_cpu(tokens)) is not None:
            arrays = (tensor.contiguous().numpy() for tensor in (*spans, tokens.rows, tokens.columns))
            return torch.from_numpy(fast.favourites_of_tokens(*arrays, *self._ranges))
        if tokens is not None and (tokens.weights is None or tokens.rows.is_cuda):
            return self._by_sentence(tokens)
        source = batch.weights
        plain = self._further is None and source.device.type == "cpu" and source.dtype == torch.float32
        if plain and (fast := kernel("words_cpu")) is not None:
            return torch.from_numpy(fast.favourites(source.contiguous().numpy(), *self._ranges))
        masked = batch.weights * self._allowed[:, None]
        return torch.stack([_strongest(masked, -1), _strongest(masked, -2)])

    def _by_sentence(self, tokens: TokenMaps) -> Int[torch.Tensor, "direction batch head position"]:
        """The favourites from the weights within each sentence alone; sentences of similar length are processed
        together.
        """
        if self._blocks is None:
            layouts = self._layouts or sentence_layouts(self._words, tokens.places, self._device)
            self._blocks = [layout.block(tokens) for layout in layouts]
        heads = (tokens.scores.query if tokens.weights is None else tokens.weights).shape[1]  # type: ignore[union-attr]
        chosen = tokens.rows.new_full((2, len(self._words.first), heads, self._width), -1)
        for block in self._blocks:
            block.put(chosen, tokens)
        return chosen

    @cached_property
    def _allowed(self) -> Float[torch.Tensor, "batch query key"]:
        import torch

        allowed = self._words.same_sentence(self._width)
        if self._further is not None:  # from words to them, and from them to words
            allowed |= self._further[:, None, :] | self._further[:, :, None]
        return torch.from_numpy(allowed).to(self._device, torch.float32)

    @cached_property
    def _ranges(self) -> tuple[Int[np.ndarray, "batch position"], Int[np.ndarray, "side batch position"]]:
        """The sentence of each position, -1 if it is not a word, and the first position of that sentence and the first
        after it.
        """
        words = self._words
        sentence = np.full((len(words.first), self._width), -1, dtype=np.int64)
        sentence[words.text, words.place] = words.sentence
        bounds = np.zeros((2, *sentence.shape), dtype=np.int64)
        first, after = words.bounds()
        bounds[0, words.text, words.place] = words.place[first]
        bounds[1, words.text, words.place] = words.place[after - 1] + 1
        return sentence, bounds


def _on_cpu(tokens: TokenMaps) -> SpanWeights | None:
    """The weights of each row at least on the tokens of its sentence, if they are on the CPU; None if they are not
    known.
    """
    import torch

    weights = tokens.weights
    if weights is None:
        return None if tokens.scores is None else tokens.scores.spans
    if weights.device.type != "cpu" or weights.dtype != torch.float32:
        return None
    return SpanWeights(weights, torch.zeros((len(weights), weights.shape[2]), dtype=torch.int64))


def _strongest(weights: Float[torch.Tensor, "*shape"], axis: int) -> Int[torch.Tensor, "*shape"]:
    most, where = weights.max(axis)
    return where.masked_fill_(most <= 0, -1)
