"""The settings and the result of fine-tuning."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

from headscope.errors import ModelError
from headscope.models.finetuning.examples import LABELS, Labels

METRICS = ("accuracy", "f1", "f1_macro", "f1_micro", "matthews", "keyphrase_tokens", "keyphrase_spans")


@dataclass(frozen=True)
class TrainingRecipe:
    """The settings of fine-tuning. `labels` says what is learnt: the class of each text, or tags of words.

    `rate`, the learning rate, rises over the first `warmup` of all steps and then falls to 0. The model is evaluated on
    the dev part `checks` times per epoch; training stops after `patience` evaluations without a better `metric`.
    `held_out` is the share of documents that becomes the dev part if none is given.
    """

    labels: Labels = "label"
    epochs: int = 3
    batch: int = 16
    rate: float = 1e-4
    warmup: float = 0.1
    weight_decay: float = 0.01
    checks: int = 2
    patience: int = 4
    held_out: float = 0.1
    metric: str | None = None
    limit: int | None = None
    max_length: int = 128
    seed: int = 0

    def __post_init__(self) -> None:
        for name, allowed in (("labels", LABELS), ("metric", (None, *METRICS))):
            if getattr(self, name) not in allowed:
                raise ModelError(f"{name} is {getattr(self, name)!r}", f"Use one of {', '.join(str(one) for one in allowed if one)}")
        for name in ("epochs", "batch", "rate", "checks", "patience"):
            if not 0 < getattr(self, name) < math.inf:
                raise ModelError(f"{name} is {getattr(self, name)}", "Use a number above 0")
        for name, high in (("warmup", 1.0), ("held_out", 1.0)):
            if not 0 <= getattr(self, name) < high:
                raise ModelError(f"{name} is {getattr(self, name)}", "Use a share from 0 to below 1")

    @property
    def scored_by(self) -> str:
        """The metric, or the default one for the labels."""
        return self.metric or ("keyphrase_tokens" if self.labels == "keyphrases" else "accuracy")


@dataclass(frozen=True)
class Check:
    """One evaluation on the dev part: the number of steps and epochs before it, the mean training loss since the last
    evaluation, the dev loss and the score.
    """

    step: int
    epoch: float
    loss: float
    dev_loss: float
    score: float

    def beats(self, other: Check) -> bool:
        """Whether the score is better or, if the scores are equal, the dev loss is lower."""
        one, two = ((check.score if math.isfinite(check.score) else -math.inf, -check.dev_loss) for check in (self, other))
        return one > two


@dataclass(frozen=True)
class TrainedModel:
    """The result of training: the folder, the names of the classes, each evaluation on the dev part, and the best one,
    whose state was kept.

    `majority` is the score of a system that always predicts the most frequent label of the training part. `left_out`
    lists what was not used.
    """

    folder: Path
    names: tuple[str, ...]
    metric: str
    checks: tuple[Check, ...]
    best: Check
    majority: float
    n_train: int
    n_dev: int
    left_out: list[str] = field(default_factory=list)
