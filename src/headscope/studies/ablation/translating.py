"""Answers of a model that translates: its sentences, found by beam search, as what BLEU or chrF is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.core.document import Sentence
from headscope.encoding.texts import Encoded
from headscope.models.gates import gated
from headscope.models.generation import generated
from headscope.models.model import Model
from headscope.stats.scores import Score, make_score
from headscope.stats.translation import Bleu, Chrf

if TYPE_CHECKING:
    from jaxtyping import Float, Float64

    from headscope.studies.ablation.answers import Answering, Cut


def reference(text: Encoded) -> str:
    """The translation that a text comes with."""
    return Sentence(text.target.words).text if text.target is not None else ""


def translating(model: Model, name: str, beams: int = 5, replace: Mapping[int, Float[torch.Tensor, "head d"]] | None = None) -> Answering:
    """What translates a batch of texts under each of some cuts, and counts for a score. Every cut takes a search of its own."""

    def answer(texts: Sequence[Encoded], cuts: Sequence[Cut]) -> Float64[np.ndarray, "cut example k"]:
        score = make_score(name, references=[reference(text) for text in texts])
        assert isinstance(score, Bleu | Chrf)
        statistics = []
        for cut in cuts:
            gates = {site: torch.from_numpy(np.asarray(gate, dtype=np.float32)).to(model.device) for site, gate in cut.items()}
            with gated(model, gates, replace):
                statistics.append(score.statistics(generated(model, texts, beams)))
        return np.stack(statistics)

    return answer


def translation_score(name: str) -> Score:
    """A score to sum up what `translating` counts; the references are in the counts already."""
    return make_score(name, references=["."])
