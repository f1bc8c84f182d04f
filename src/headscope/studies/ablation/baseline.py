"""The score of the best answer that does not depend on the text: a model that is no better has nothing to lose."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headscope.models.model import Model
from headscope.stats.scores import Score
from headscope.studies.ablation.answers import columns_of, scored
from headscope.studies.ablation.spec import OWN

if TYPE_CHECKING:
    from jaxtyping import Float64

_CLOSE = 1e-9


class Baseline(NamedTuple):
    """A score that takes no model, and how it is reached."""

    value: float
    how: str


def constant_baseline(score: Score, table: Float64[np.ndarray, "example k"], model: Model) -> Baseline | None:
    """The score of an answer that does not depend on the text; None for a score of the user's own, of which none is
    known.

    Of a classifier it is that of the best single class, or for its loss that of the shares of the classes. The loss
    of other models is that of an even guess, and all other scores begin at 0.
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
    """A warning if the whole model is no better than the baseline; `value` is its score, `table` what `answering`
    counted. Else None.
    """
    baseline = constant_baseline(score, table, model)
    if baseline is None or (value > baseline.value + _CLOSE if score.better == "higher" else value < baseline.value - _CLOSE):
        return None
    return (
        f"{score.name} of the whole model is {value:.4f}, no better than {baseline.how} ({baseline.value:.4f}): it has nothing to lose, so "
        f"this study finds nothing about its heads. Use a model that was trained for these texts, or another --score"
    )


def _loss_baseline(table: Float64[np.ndarray, "example k"], model: Model) -> tuple[float, str]:
    if model.objective == "classes":
        _, counts = np.unique(table[:, columns_of(model).index("truth")], return_counts=True)
        shares = counts / counts.sum()
        return float(-(shares * np.log(shares)).sum()), "an answer by the shares of the classes"
    return math.log(model.answers), f"an even guess among {model.answers:,}"


def _constant(score: Score, table: Float64[np.ndarray, "example k"], model: Model, number: int) -> float:
    """The score of one class as the answer to every text; -1 where it has none."""
    answers = table.copy()
    columns = columns_of(model)
    answers[:, columns.index("found")] = number
    answers[:, columns.index("right")] = answers[:, columns.index("truth")] == number
    _, statistics = scored(score.name, answers, model)
    value = float(score.of(statistics))
    return -1.0 if math.isnan(value) else value
