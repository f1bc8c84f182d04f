"""The annotated words of a batch of word-level maps as flat tensors: what head-as-classifier measures ask about."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.core.batch import WORD, MapBatch, Side

if TYPE_CHECKING:
    from jaxtyping import Bool, Int


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

    def same_sentence(self, width: int) -> Bool[np.ndarray, "n width"]:
        """For each word the positions of the other words of its sentence."""
        sentence_at = np.full((len(self.first), width), -1)
        sentence_at[self.text, self.place] = self.sentence
        allowed: Bool[np.ndarray, "n width"] = sentence_at[self.text] == self.sentence[:, None]
        allowed[np.arange(len(self)), self.place] = False
        return allowed


def favourites(
    batch: MapBatch, text: Int[torch.Tensor, "n"], place: Int[torch.Tensor, "n"], allowed: Bool[torch.Tensor, "n position"]
) -> Int[torch.Tensor, "direction n head"]:
    """The position each word attends to most, and the one that attends to it most, among the `allowed`; -1 if none has any weight.

    Of equal weights the first position wins.
    """
    found = []
    for weights in (batch.weights[text, :, place], batch.weights[text, :, :, place]):  # [n, head, position]
        most, where = weights.masked_fill(~allowed[:, None], 0).max(-1)
        found.append(where.masked_fill_(most <= 0, -1))
    return torch.stack(found)
