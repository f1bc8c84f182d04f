"""Which heads a trained probe leans on: the weight it gives them, and how far that pulls towards the true governor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.studies.attention_probe.batch import Batch
from headscope.studies.attention_probe.maps import SPECIALS
from headscope.studies.attention_probe.probes import AttentionProbe, AttentionWordsProbe

if TYPE_CHECKING:
    from jaxtyping import Float, Float64


@dataclass
class Leaning:
    """Sums over the words that have a word for a governor.

    The weight of a map for a pair of words says how much its attention between them counts. Times that attention, for the true governor,
    less the mean of the same over all words of the sentence, it is the map's pull.
    """

    probe: AttentionProbe | AttentionWordsProbe
    n: int = 0
    _weight: Float[torch.Tensor, "seed k"] | float = 0.0
    _pull: Float[torch.Tensor, "seed k"] | float = 0.0

    @torch.no_grad()
    def observe(self, batch: Batch) -> None:
        """Take in a batch."""
        text, word = (batch.gold > 0).nonzero(as_tuple=True)
        if not len(text):
            return
        governor = batch.gold[text, word] - 1
        maps = torch.cat([batch.given, batch.back], -1)[:, SPECIALS:, SPECIALS:]
        given = maps[text, word, governor]  # [n, k]
        mean = (maps.sum(2) / batch.sizes[:, None, None])[text, word]
        if isinstance(self.probe, AttentionProbe):
            weight = (self.probe.weight * self.probe.scale)[None].expand(len(text), -1, -1)
            usual = weight * mean[:, None]
        else:
            mine, theirs = (part[:, SPECIALS:] for part in self.probe.weights(batch))
            weight = mine[text, word] + theirs[text, governor]
            # What the other words' vectors add, each met by the attention to it.
            other = torch.einsum("bjsk,bijk->bisk", theirs, maps)[text, word] / batch.sizes[text, None, None]
            usual = mine[text, word] * mean[:, None] + other
        self.n += len(text)
        self._weight = self._weight + weight.double().sum(0)
        self._pull = self._pull + (weight * given[:, None] - usual).double().sum(0)

    @property
    def weight(self) -> Float64[np.ndarray, "k seed"]:
        """The mean weight of each map where the true governor is."""
        return self._mean(self._weight)

    @property
    def pull(self) -> Float64[np.ndarray, "k seed"]:
        """The mean pull of each map."""
        return self._mean(self._pull)

    def _mean(self, total: torch.Tensor | float) -> Float64[np.ndarray, "k seed"]:
        if isinstance(total, float):
            return np.full((self.probe.maps, len(self.probe.seeds)), np.nan)
        found: Float64[np.ndarray, "k seed"] = (total / self.n).T.cpu().numpy()
        return found
