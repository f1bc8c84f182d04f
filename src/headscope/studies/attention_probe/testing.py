"""Trained probes on sentences that they did not learn from: which governors they find, and which heads they lean on there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.results.columns import Kept
from headscope.studies.attention_probe.decoding import best_candidates, best_trees
from headscope.studies.attention_probe.head_weights import Leaning
from headscope.studies.attention_probe.material import Material
from headscope.studies.attention_probe.probes import AttentionProbe, AttentionWordsProbe, Probe
from headscope.studies.attention_probe.training import Sentences, in_order

if TYPE_CHECKING:
    from headscope.studies.attention_probe.spec import Name


def right_branching(material: Material, kept: Kept) -> None:
    """The governor is the next word; the last word's is itself, which is wrong."""
    for gold, scored in zip(material.gold(), material.scored(), strict=True):
        guess = np.minimum(np.arange(2, len(gold) + 2), len(gold))
        kept.add("right/right-branching", (guess == gold)[scored][:, None])


@torch.no_grad()
def put_to_the_test(probes: Mapping[Name, Probe], tried: Sentences, material: Material, kept: Kept, trees: bool = False) -> None:
    """Keep which words each seed is right about, by the best candidate and with `trees` by the best tree, and the heads it leans on."""
    leanings = {name: Leaning(probe) for name, probe in probes.items() if isinstance(probe, AttentionProbe | AttentionWordsProbe)}
    gold, scored = material.gold(), material.scored()
    found: dict[str, dict[int, np.ndarray]] = {}
    for _, places, batch in tried.batches(in_order(tried), max(2 * probe.each for probe in probes.values())):
        for name, probe in probes.items():
            scores = probe(batch)
            ways = {"right": best_candidates(scores)} | ({"tree": best_trees(scores, batch)} if trees else {})
            for way, guesses in ways.items():
                own = found.setdefault(f"{way}/{name}", {})
                for place, guess in zip(places, guesses, strict=True):
                    own[place] = (guess[: len(gold[place])] == gold[place][:, None])[scored[place]]
            if name in leanings:
                leanings[name].observe(batch)
    for column, right in found.items():
        kept.add(column, np.concatenate([right[place] for place in range(len(gold))]))
    for name, leaning in leanings.items():
        kept.add(f"weight/{name}", leaning.weight)
        kept.add(f"pull/{name}", leaning.pull)
