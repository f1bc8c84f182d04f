"""Answers of a model with heads switched off, as a few numbers per example from which all scores are computed."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch

from headscope.encoding.texts import Encoded
from headscope.models.answers import ask
from headscope.models.model import Model
from headscope.models.prefix import ablated
from headscope.stats.classification import F1, Accuracy, KeyphraseF1, Level, Matthews, phrase_kinds
from headscope.stats.scores import Mean, Score, make_score
from headscope.studies.ablation.spec import OWN

if TYPE_CHECKING:
    from jaxtyping import Float, Float64

    from headscope.models.predictions import Predictions

    Cut = Mapping[int, Float64[np.ndarray, "head"]]  # gates by site; no site: the model as it is
    # A function that answers a batch of texts under each cut, and reports the number of each cut when it is done.
    Answering = Callable[[Sequence[Encoded], Sequence[Cut], Callable[[int], None]], Float64[np.ndarray, "cut example k"]]

# Per text: the sum of the losses, the number of right predictions, and the number of predictions.
_COLUMNS = ("loss", "right", "count")
# For keyphrases: words that were rightly marked as part of a phrase, wrongly marked, and missed; then whole phrases.
_PHRASES = ("found", "wrong", "missed", "phrases_found", "phrases_wrong", "phrases_missed")
_LEVELS: tuple[Level, ...] = ("token", "span")
_CLOSE = 1e-9


def columns_of(model: Model) -> tuple[str, ...]:
    """The names of the numbers per text; for a classifier also its classes, for keyphrases also words and phrases."""
    if model.tagging == "keyphrases":
        return (*_COLUMNS, *_PHRASES)
    return (*_COLUMNS, "found", "truth") if model.objective == "classes" else _COLUMNS


def answering(
    model: Model, share: float = 0.15, seed: int = 0, replace: Mapping[int, Float[torch.Tensor, "head d"]] | None = None, tokens: int = 4096
) -> Answering:
    """A function that counts the answers of a model that predicts words, classes or tags.

    `replace` holds vectors that replace the output of a head that is switched off; without it the output is zero.
    """

    def answer(texts: Sequence[Encoded], cuts: Sequence[Cut], progress: Callable[[int], None]) -> Float64[np.ndarray, "cut example k"]:
        asked = ask(model, texts, share, f"{seed}/0")
        gates = [{site: torch.from_numpy(np.asarray(gate, dtype=np.float32)) for site, gate in cut.items()} for cut in cuts]
        answers = np.zeros((len(cuts), len(texts), len(columns_of(model))))
        for number, logits in ablated(model, texts, gates, asked, replace, tokens):
            answers[number] = counted(logits, asked, len(texts), model)
            progress(number)
        return answers

    return answer


def counted(logits: Float[torch.Tensor, "n class"], asked: Predictions, size: int, model: Model) -> Float64[np.ndarray, "example k"]:
    """The numbers of each text, from the answers at all predicted positions."""
    labels = torch.from_numpy(asked.labels).to(logits.device)
    losses = torch.nn.functional.cross_entropy(logits.float(), labels, reduction="none").double().cpu().numpy()
    chosen = logits.argmax(-1).cpu().numpy()
    sums = [np.bincount(asked.texts, part, minlength=size) for part in (losses, chosen == asked.labels, np.ones(len(losses)))]
    if model.objective == "classes":
        sums += [chosen, asked.labels]  # one per text
    table = np.stack(sums, -1).astype(np.float64)
    if model.tagging == "keyphrases":
        kind_of = np.zeros(max(model.classes.values()) + 1, dtype=np.int64)
        kind_of[list(model.classes.values())] = phrase_kinds(model.classes)
        sides = kind_of[chosen], kind_of[asked.labels], asked.texts, size
        table = np.concatenate([table, *(KeyphraseF1(level).counted(*sides) for level in _LEVELS)], -1)
    return table


def scored(
    name: str, table: Float64[np.ndarray, "*system example k"], model: Model
) -> tuple[Score, Float64[np.ndarray, "*system example s"]]:
    """A score and its statistics for each example, from the counts of `answering`."""
    column = dict(zip(columns_of(model), np.moveaxis(table, -1, 0), strict=True))
    of_texts = model.objective == "classes"
    score = Mean(name) if name.endswith("accuracy") and not of_texts else make_score(name, max(model.classes.values(), default=0) + 1)
    if isinstance(score, Accuracy | F1 | Matthews):
        truth = column["truth"].reshape(-1, table.shape[-2])[0]
        return score, score.statistics(column["found"].astype(np.int64), truth.astype(np.int64))
    if isinstance(score, KeyphraseF1):
        prefix = "" if score.level == "token" else "phrases_"
        return score, np.stack([column[f"{prefix}{part}"] for part in score.columns], -1)
    assert isinstance(score, Mean)
    return score, score.statistics(column["loss" if name in ("loss", "perplexity") else "right"], column["count"])


class Baseline(NamedTuple):
    """A score that needs no model, and how it is reached."""

    value: float
    how: str


def constant_baseline(score: Score, table: Float64[np.ndarray, "example k"], model: Model) -> Baseline | None:
    """The score of an answer that does not depend on the text; None for a user's function, whose baseline is unknown.

    For a classifier the answer is the best single class, and for its loss the shares of the classes. For the loss of
    other models it is an even guess. For all other scores the baseline is 0.
    """
    if score.name == OWN:
        return None
    if score.better == "lower":
        loss, how = _loss_baseline(table, model)
        return Baseline(math.exp(loss) if score.name == "perplexity" else loss, how)
    if model.objective == "classes":
        names = {number: name for name, number in model.classes.items()}
        constant = {name: _constant(score, table, model, number) for number, name in names.items()}
        best = max(constant, key=lambda name: constant[name])
        return Baseline(constant[best], f"the answer {best!r} to every text")
    return Baseline(0.0, "its lowest value")


def baseline_warning(score: Score, value: float, table: Float64[np.ndarray, "example k"], model: Model) -> str | None:
    """A warning if the model's score `value` is no better than the baseline; else None."""
    baseline = constant_baseline(score, table, model)
    if baseline is None or (value > baseline.value + _CLOSE if score.better == "higher" else value < baseline.value - _CLOSE):
        return None
    return (
        f"{score.name} of the whole model is {value:.4f}, no better than {baseline.how} ({baseline.value:.4f}): the model has nothing to "
        "lose, so this study says nothing about its heads. Use a model that was trained for these texts, or another --score"
    )


def _loss_baseline(table: Float64[np.ndarray, "example k"], model: Model) -> tuple[float, str]:
    if model.objective == "classes":
        _, counts = np.unique(table[:, columns_of(model).index("truth")], return_counts=True)
        shares = counts / counts.sum()
        return float(-(shares * np.log(shares)).sum()), "an answer by the shares of the classes"
    return math.log(model.answers), f"an even guess among {model.answers:,}"


def _constant(score: Score, table: Float64[np.ndarray, "example k"], model: Model, number: int) -> float:
    """The score of one class as the answer to every text; -1 if it is undefined."""
    answers = table.copy()
    columns = columns_of(model)
    answers[:, columns.index("found")] = number
    answers[:, columns.index("right")] = answers[:, columns.index("truth")] == number
    _, statistics = scored(score.name, answers, model)
    value = float(score.of(statistics))
    return -1.0 if math.isnan(value) else value
