"""Sentences with their trees as padded tensors: what a probe sees at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import torch

from headscope.core.annotation import ROOT
from headscope.encoding.batches import grouped
from headscope.encoding.texts import Encoded
from headscope.studies.attention_probe.maps import SPECIALS

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

    from headscope.studies.attention_probe.maps import Map

UNSCORED = -1  # in place of a governor: the word has none


@dataclass(frozen=True)
class ParsedSentence:
    """A sentence as probes know it: its words' rows in the table of vectors, and their governors among the candidates.

    Candidate 0 is the root, candidate j the j-th word.
    """

    forms: Int[torch.Tensor, "word"]
    gold: Int[torch.Tensor, "word"]

    @classmethod
    def of(cls, text: Encoded, rows: Sequence[int]) -> ParsedSentence:
        """The sentence of a text whose words have these rows."""
        gold = [head + 1 if head >= 0 else 0 if head == ROOT else UNSCORED for head in text.annotation.heads]
        return cls(torch.tensor(rows, dtype=torch.int64), torch.tensor(gold, dtype=torch.int64))

    def __len__(self) -> int:
        return len(self.gold)


@dataclass(frozen=True)
class SentenceBatch:
    """Padded sentences, and the maps of each, if there are any."""

    gold: Int[torch.Tensor, "text word"]
    forms: Int[torch.Tensor, "text word"]
    sizes: Int[torch.Tensor, "text"]
    maps: Sequence[Map] | None = None

    @classmethod
    def of(cls, sentences: Sequence[ParsedSentence], maps: Sequence[Map] | None, device: torch.device) -> SentenceBatch:
        """Some sentences, with their maps if there are any."""
        width = max(map(len, sentences))
        gold = torch.full((len(sentences), width), UNSCORED)
        forms = torch.zeros(len(sentences), width, dtype=torch.int64)
        for row, sentence in enumerate(sentences):
            gold[row, : len(sentence)] = sentence.gold
            forms[row, : len(sentence)] = sentence.forms
        sizes = torch.tensor([len(sentence) for sentence in sentences])
        return cls(gold.to(device), forms.to(device), sizes.to(device), maps)

    @cached_property
    def given(self) -> Float[torch.Tensor, "text position position head"]:
        """The attention from i to j, padded. Large: what can do with the maps of one sentence after the other
        should.
        """
        assert self.maps is not None
        return padded(self.maps, self.gold.shape[1] + SPECIALS)

    @cached_property
    def back(self) -> Float[torch.Tensor, "text position position head"]:
        """The attention from j to i."""
        return self.given.transpose(1, 2).contiguous()

    @property
    def words(self) -> Bool[torch.Tensor, "text word"]:
        """Which places hold a word."""
        return torch.arange(self.gold.shape[1], device=self.sizes.device) < self.sizes[:, None]

    @property
    def candidates(self) -> Bool[torch.Tensor, "text 1+word"]:
        """Which candidates there are."""
        return torch.nn.functional.pad(self.words, (1, 0), value=True)


def padded(maps: Sequence[Float[torch.Tensor, "position position k"]], width: int) -> Float[torch.Tensor, "text width width k"]:
    """Maps of several sentences as one tensor, with zeros where a sentence ends."""
    tensor = maps[0].new_empty(len(maps), width, width, maps[0].shape[2])
    for row, sentence in enumerate(maps):
        size = len(sentence)
        tensor[row, :size, :size] = sentence
        if size < width:
            tensor[row, size:] = 0
            tensor[row, :size, size:] = 0
    return tensor


def pieces(sizes: Sequence[int], cells: int, each: int) -> Iterator[list[int]]:
    """The places of sentences of these sizes in groups, those of like length together, whose padded pairs of words
    have at most so many numbers (or which are one sentence); `each` is the numbers of a pair.
    """
    ordered = sorted(range(len(sizes)), key=lambda place: sizes[place])
    return grouped(ordered, lambda piece, place: (len(piece) + 1) * each * (sizes[place] + SPECIALS) ** 2 > cells)
