"""The annotated words of a batch of word-level maps as flat tensors: what head-as-classifier measures ask about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.core.batch import WORD, MapBatch, Side

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int


@dataclass(frozen=True)
class Words:
    """All N words of a batch in one row. `text` and `place` say where each stands in the maps."""

    text: Int[np.ndarray, "n"]
    place: Int[np.ndarray, "n"]
    first: Int[np.ndarray, "batch"]  # the number, among the N, of each text's first word
    sentence: Int[np.ndarray, "n"]

    @classmethod
    def of(cls, side: Side) -> Words:
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
    """The position each word attends to most, and the one that attends to it most, among the `allowed`; -1 if none has any weight.

    Of equal weights the first position wins.
    """
    rows = (batch.weights[text, :, place], batch.weights[text, :, :, place])  # [n, head, position]
    return torch.stack([_strongest(weights * allowed[:, None], -1) for weights in rows])


def all_favourites(
    weights: Float[torch.Tensor, "batch head query key"], allowed: Float[torch.Tensor, "batch query key"]
) -> Int[torch.Tensor, "direction batch head position"]:
    """The same for every position at once, with a mask of 1 and 0 that is the same both ways."""
    masked = weights * allowed[:, None]
    return torch.stack([_strongest(masked, -1), _strongest(masked, -2)])


def _strongest(weights: Float[torch.Tensor, "*shape"], axis: int) -> Int[torch.Tensor, "*shape"]:
    most, where = weights.max(axis)
    return where.masked_fill_(most <= 0, -1)
