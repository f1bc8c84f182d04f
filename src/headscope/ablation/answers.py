"""What a model answers, with heads switched off, and how it is counted: a few numbers an example, whatever is scored by them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.encoding.texts import Encoded
from headscope.models.asking import ask
from headscope.models.model import Model
from headscope.models.prefix import ablated
from headscope.stats.classification import F1, Accuracy, Matthews
from headscope.stats.scores import Mean, Score, make_score

if TYPE_CHECKING:
    from jaxtyping import Float, Float64

    from headscope.models.predictions import Predictions

    Cut = Mapping[int, Float64[np.ndarray, "head"]]  # gates by site; no site: the model as it is
    # What answers a batch of texts under each of some cuts.
    Answering = Callable[[Sequence[Encoded], Sequence[Cut]], Float64[np.ndarray, "cut example k"]]

# Of a text: the sum of losses of what is predicted, how many were right, how many there were, and of a classifier, which class it found
# and which is true.
COLUMNS = ("loss", "right", "count", "found", "truth")


def answering(
    model: Model, share: float = 0.15, seed: int = 0, replace: Mapping[int, Float[torch.Tensor, "head d"]] | None = None, tokens: int = 4096
) -> Answering:
    """What counts the answers of a model that predicts words or classes.

    `replace` are vectors that stand in for what a head gives where it is switched off; without them it gives nothing.
    """

    def answer(texts: Sequence[Encoded], cuts: Sequence[Cut]) -> Float64[np.ndarray, "cut example k"]:
        asked = ask(model, texts, share, f"{seed}/0")
        gates = [{site: torch.from_numpy(np.asarray(gate, dtype=np.float32)) for site, gate in cut.items()} for cut in cuts]
        found = np.zeros((len(cuts), len(texts), len(COLUMNS)))
        for number, logits in ablated(model, texts, gates, asked, replace, tokens):
            found[number] = counted(logits, asked, len(texts))
        return found

    return answer


def counted(logits: Float[torch.Tensor, "n class"], asked: Predictions, size: int) -> Float64[np.ndarray, "example k"]:
    """The numbers of each text, from what was answered wherever something was asked."""
    labels = torch.from_numpy(asked.labels).to(logits.device)
    losses = torch.nn.functional.cross_entropy(logits.float(), labels, reduction="none").double().cpu().numpy()
    found = logits.argmax(-1).cpu().numpy()
    table = np.zeros((size, len(COLUMNS)))
    for column, values in enumerate((losses, found == asked.labels, np.ones(len(losses)))):
        np.add.at(table[:, column], asked.texts, values)
    table[asked.texts, 3], table[asked.texts, 4] = found, asked.labels
    return table


def scored(
    name: str, table: Float64[np.ndarray, "*system example k"], classes: int
) -> tuple[Score, Float64[np.ndarray, "*system example s"]]:
    """A score and its statistics of each example, from what `answering` counts; `classes` is 0 of a model that predicts words."""
    loss, right, count, found, truth = np.moveaxis(table, -1, 0)
    score = Mean(name) if name in ("accuracy", "masked_accuracy") and not classes else make_score(name, classes)
    if isinstance(score, Accuracy | F1 | Matthews):
        return score, score.statistics(found.astype(np.int64), truth.reshape(-1, truth.shape[-1])[0].astype(np.int64))
    assert isinstance(score, Mean)
    return score, score.statistics(loss if name in ("loss", "perplexity") else right, count)
