"""The annotated words of a batch of word-level maps as flat tensors: what head-as-classifier measures ask about."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.batch import WORD, MapBatch, Side
from headscope.kernels import kernel

if TYPE_CHECKING:
    import torch
    from jaxtyping import Bool, Float, Int


@dataclass(frozen=True)
class WordIndex:
    """All N words of a batch in one row. `text` and `place` say where each stands in the maps."""

    text: Int[np.ndarray, "n"]
    place: Int[np.ndarray, "n"]
    first: Int[np.ndarray, "batch"]  # the number, among the N, of each text's first word
    sentence: Int[np.ndarray, "n"]

    @classmethod
    def of(cls, side: Side) -> WordIndex:
        """The words of the rows or columns of a batch."""
        text, place = side.chosen("words", lambda form, role: role == WORD).nonzero()
        counts = np.bincount(text, minlength=len(side.texts))
        if [len(annotation.words) for annotation in side.texts] != counts.tolist():
            raise ValueError("the annotation has other words than the maps")
        first = np.concatenate([[0], np.cumsum(counts)[:-1]])
        sentence = np.array([number for annotation in side.texts for number in annotation.sentences], dtype=np.int64)
        return cls(text, place, first, sentence)

    def __len__(self) -> int:
        return len(self.text)

    def bounds(self) -> tuple[Int[np.ndarray, "n"], Int[np.ndarray, "n"]]:
        """For each word the number of the first word of its sentence, and of the first one after it."""
        new = np.ones(len(self), dtype=bool)
        new[1:] = (self.sentence[1:] != self.sentence[:-1]) | (self.text[1:] != self.text[:-1])
        edges = np.append(np.flatnonzero(new), len(self))
        which = np.cumsum(new) - 1
        return edges[which], edges[which + 1]

    def same_sentence(self, width: int) -> Bool[np.ndarray, "batch width width"]:
        """For each position that is a word, those of the other words of its sentence."""
        sentence_at = np.full((len(self.first), width), -1)
        sentence_at[self.text, self.place] = self.sentence
        allowed: Bool[np.ndarray, "batch width width"] = (sentence_at[:, :, None] == sentence_at[:, None, :]) & (sentence_at >= 0)[
            :, :, None
        ]
        allowed[:, np.arange(width), np.arange(width)] = False
        return allowed


def favourites(
    batch: MapBatch, text: Int[torch.Tensor, "n"], place: Int[torch.Tensor, "n"], allowed: Bool[torch.Tensor, "n position"]
) -> Int[torch.Tensor, "direction n head"]:
    """The position each word attends to most, and the one that attends to it most, among the `allowed`; -1 if none has
    any weight.

    Of equal weights the first position wins.
    """
    import torch

    rows = (batch.weights[text, :, place], batch.weights[text, :, :, place])  # [n, head, position]
    return torch.stack([_strongest(weights * allowed[:, None], -1) for weights in rows])


class SentenceIndex:
    """Where the sentences of a batch are, so that every word's favourites in its sentence can be found, for all words
    at once.

    `further` are positions that every word of their text may pick, too, such as special tokens.
    """

    def __init__(
        self, words: WordIndex, width: int, device: torch.device, further: Bool[np.ndarray, "batch position"] | None = None
    ) -> None:
        self._words, self._width, self._device, self._further = words, width, device, further

    def favourites(self, weights: Float[torch.Tensor, "batch head query key"]) -> Int[torch.Tensor, "direction batch head position"]:
        """As `favourites`, with the other words of the sentence allowed, and what is further allowed."""
        import torch

        plain = self._further is None and weights.device.type == "cpu" and weights.dtype == torch.float32
        if plain and (fast := kernel("words_cpu")) is not None:
            return torch.from_numpy(fast.favourites(weights.contiguous().numpy(), *self._ranges, torch.get_num_threads()))
        masked = weights * self._allowed[:, None]
        return torch.stack([_strongest(masked, -1), _strongest(masked, -2)])

    @cached_property
    def _allowed(self) -> Float[torch.Tensor, "batch query key"]:
        import torch

        allowed = self._words.same_sentence(self._width)
        if self._further is not None:  # from words to them, and from them to words
            allowed |= self._further[:, None, :] | self._further[:, :, None]
        return torch.from_numpy(allowed).to(self._device, torch.float32)

    @cached_property
    def _ranges(self) -> tuple[Int[np.ndarray, "batch position"], Int[np.ndarray, "side batch position"]]:
        """The sentence of each position, -1 if it is no word, and from which position to which that reaches."""
        words = self._words
        sentence = np.full((len(words.first), self._width), -1, dtype=np.int64)
        sentence[words.text, words.place] = words.sentence
        bounds = np.zeros((2, *sentence.shape), dtype=np.int64)
        first, after = words.bounds()
        bounds[0, words.text, words.place] = words.place[first]
        bounds[1, words.text, words.place] = words.place[after - 1] + 1
        return sentence, bounds


def _strongest(weights: Float[torch.Tensor, "*shape"], axis: int) -> Int[torch.Tensor, "*shape"]:
    most, where = weights.max(axis)
    return where.masked_fill_(most <= 0, -1)
