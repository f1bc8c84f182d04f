"""The inputs of probes: vectors of words, from a model's layers or from baselines, as batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from headscope.encoding.batches import pooled
from headscope.studies.hidden_states import HiddenStates

if TYPE_CHECKING:
    from jaxtyping import Float


class Feature(NamedTuple):
    """One vector per word: its source (`model`, `random`, `decay`, `projection`) and its layer."""

    source: str
    layer: int

    def __str__(self) -> str:
        return f"{self.source}/{self.layer}"


@dataclass(frozen=True)
class Features:
    """Vectors of the same sentences from several sources, one after the other: all of their layers, or the `chosen`
    ones.
    """

    parts: tuple[tuple[str, HiddenStates], ...]
    device: torch.device
    scales: tuple[float, ...] = ()  # what the vectors of each feature are multiplied by
    chosen: tuple[int, ...] | None = None  # numbers of features among all features

    @cached_property
    def every(self) -> list[Feature]:
        """The features in order."""
        features = [Feature(source, layer) for source, states in self.parts for layer in states.layers]
        return features if self.chosen is None else [features[number] for number in self.chosen]

    @property
    def size(self) -> int:
        """Numbers of a vector."""
        return self.parts[0][1].size

    @property
    def lengths(self) -> tuple[int, ...]:
        """Words of each sentence."""
        return self.parts[0][1].lengths

    def batch(
        self, numbers: Sequence[int], which: Sequence[int], dtype: torch.dtype = torch.float32
    ) -> Float[torch.Tensor, "feature text word d"]:
        """Some features of some sentences, padded with 0."""
        wanted = list(which) if self.chosen is None else [self.chosen[place] for place in which]
        width = max(self.lengths[number] for number in numbers)
        kept = np.zeros((len(wanted), len(numbers), width, self.size), dtype=self.parts[0][1].values.dtype)
        at = start = 0
        for _, states in self.parts:
            places = [place - start for place in wanted if start <= place < start + len(states.layers)]
            every = places == list(range(len(states.layers)))
            for row, number in enumerate(numbers if places else ()):
                block = states[number]
                kept[at : at + len(places), row, : self.lengths[number]] = block if every else block[places]
            at, start = at + len(places), start + len(states.layers)
        batch = torch.from_numpy(kept).to(self.device).to(dtype)
        if self.scales:
            batch *= torch.tensor([self.scales[place] for place in wanted], device=self.device, dtype=dtype)[:, None, None, None]
        return batch


def batches(lengths: Sequence[int], order: Sequence[int], size: int, pool: int = 1) -> Iterator[list[int]]:
    """Batches of `size` sentences in order; within each `pool` of batches they are sorted by length, to pad less."""
    place = {number: turn for turn, number in enumerate(order)}
    for parts in pooled(order, size, pool, lengths.__getitem__ if pool > 1 else place.__getitem__):
        yield from sorted(parts, key=lambda part: place[part[0]])  # not by length: short and long ones in random order
