"""Trained probes on held-out sentences: the governors that they find, and the weights of heads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.results.columns import StateColumns
from headscope.stats.spanning import arborescence
from headscope.studies.attention_probe.maps import SPECIALS, SentenceBatch
from headscope.studies.attention_probe.material import AttentionProbeData
from headscope.studies.attention_probe.probes import AttentionProbe, AttentionWordsProbe, Probe
from headscope.studies.attention_probe.training import SentenceMaps, in_order

if TYPE_CHECKING:
    from jaxtyping import Float, Float64, Int64

    from headscope.studies.attention_probe.spec import Name

    Governors = Int64[np.ndarray, "text word seed"]


def right_branching(material: AttentionProbeData, kept: StateColumns) -> None:
    """Record for which words "the governor is the next word" is right; the last word is always wrong."""
    for gold, scored in zip(material.gold(), material.scored(), strict=True):
        guess = np.minimum(np.arange(2, len(gold) + 2), len(gold))
        kept.add("right/right-branching", (guess == gold)[scored][:, None])


@torch.no_grad()
def score_probes(
    probes: Mapping[Name, Probe], tried: SentenceMaps, material: AttentionProbeData, kept: StateColumns, trees: bool = False
) -> None:
    """Record which words each seed gets right, by best candidate and with `trees` by best tree, and the weights of
    heads.
    """
    weights = {name: HeadWeights(probe) for name, probe in probes.items() if isinstance(probe, AttentionProbe | AttentionWordsProbe)}
    gold, scored = material.gold(), material.scored()
    columns: dict[str, dict[int, np.ndarray]] = {}
    for _, places, batch in tried.batches(in_order(tried), max(2 * probe.each for probe in probes.values())):
        for name, probe in probes.items():
            scores = probe(batch)
            ways = {"right": best_candidates(scores)} | ({"tree": best_trees(scores, batch)} if trees else {})
            for way, guesses in ways.items():
                right = columns.setdefault(f"{way}/{name}", {})
                for place, guess in zip(places, guesses, strict=True):
                    right[place] = (guess[: len(gold[place])] == gold[place][:, None])[scored[place]]
            if name in weights:
                weights[name].observe(batch)
    for column, right in columns.items():
        kept.add(column, np.concatenate([right[place] for place in range(len(gold))]))
    for name, of_heads in weights.items():
        kept.add(f"weight/{name}", of_heads.weight)
        kept.add(f"pull/{name}", of_heads.pull)


def best_candidates(scores: Float[torch.Tensor, "text word seed 1+word"]) -> Governors:
    """The best candidate of each word, which may be the word itself; the first of equal ones."""
    governors: Governors = scores.argmax(-1).cpu().numpy()
    return governors


def best_trees(scores: Float[torch.Tensor, "text word seed 1+word"], batch: SentenceBatch) -> Governors:
    """The governors in the tree with one root whose scores have the greatest sum."""
    values = scores.double().cpu().numpy()
    governors = np.zeros(values.shape[:3], dtype=np.int64)
    for text, size in enumerate(batch.sizes.tolist()):
        for seed in range(values.shape[2]):
            table = values[text, :size, seed]
            governors[text, :size, seed] = arborescence(table[:, 1 : size + 1], table[:, 0]) + 1
    return governors


@dataclass
class HeadWeights:
    """The weight and the pull of each head in a trained probe, summed over the words whose governor is a word.

    The weight of a map for a pair of words is the factor of its attention between them. The pull of a map is this
    product for the true governor minus its mean over all words of the sentence.
    """

    probe: AttentionProbe | AttentionWordsProbe
    n: int = 0
    _weight: Float[torch.Tensor, "seed k"] | float = 0.0
    _pull: Float[torch.Tensor, "seed k"] | float = 0.0

    @torch.no_grad()
    def observe(self, batch: SentenceBatch) -> None:
        """Add a batch."""
        text, word = (batch.gold > 0).nonzero(as_tuple=True)
        if not len(text):
            return
        governor = batch.gold[text, word] - 1
        maps = torch.cat([batch.given, batch.back], -1)[:, SPECIALS:, SPECIALS:]
        attention = maps[text, word, governor]  # [n, k]
        mean = (maps.sum(2) / batch.sizes[:, None, None])[text, word]
        if isinstance(self.probe, AttentionProbe):
            weight = (self.probe.weight * self.probe.scale)[None].expand(len(text), -1, -1)
            usual = weight * mean[:, None]
        else:
            mine, theirs = (part[:, SPECIALS:] for part in self.probe.weights(batch))
            weight = mine[text, word] + theirs[text, governor]
            # What the vectors of the other words add, each times the attention to that word.
            other = torch.einsum("bjsk,bijk->bisk", theirs, maps)[text, word] / batch.sizes[text, None, None]
            usual = mine[text, word] * mean[:, None] + other
        self.n += len(text)
        self._weight = self._weight + weight.double().sum(0)
        self._pull = self._pull + (weight * attention[:, None] - usual).double().sum(0)

    @property
    def weight(self) -> Float64[np.ndarray, "k seed"]:
        """The mean weight of each map for the true governor."""
        return self._mean(self._weight)

    @property
    def pull(self) -> Float64[np.ndarray, "k seed"]:
        """The mean pull of each map."""
        return self._mean(self._pull)

    def _mean(self, total: torch.Tensor | float) -> Float64[np.ndarray, "k seed"]:
        if isinstance(total, float):
            return np.full((self.probe.maps, len(self.probe.seeds)), np.nan)
        mean: Float64[np.ndarray, "k seed"] = (total / self.n).T.cpu().numpy()
        return mean
