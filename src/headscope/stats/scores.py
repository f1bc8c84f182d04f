"""Scores of a system on a set of examples, kept as sufficient statistics: numbers per example that are summed.

`statistics[..., example, k]` can have any leading axes (heads, layers), each of which has separate systems. Since a
score follows from sums, resampling it or restricting it to some examples repeats only the sums, not the predictions. A
score without a value, such as the accuracy over no examples, is NaN.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from headscope.core.suggest import choose_from
from headscope.errors import MeasureError

if TYPE_CHECKING:
    from jaxtyping import Float, Float64, Int

Better = Literal["higher", "lower"]


class Score(ABC):
    """How a system is scored. `columns` names the statistics of an example; `better` says whether higher or lower is
    better.
    """

    name: str
    better: Better = "higher"
    one_each: bool = False  # whether each example is right or wrong, so that McNemar's test applies

    @property
    @abstractmethod
    def columns(self) -> tuple[str, ...]:
        """The names of an example's statistics, in order."""

    @abstractmethod
    def total(self, sums: Float64[np.ndarray, "*system k"]) -> Float64[np.ndarray, "*system"]:
        """The score from sums of statistics."""

    @property
    def signature(self) -> str:
        """Everything that can change the score, in one line."""
        return self.name

    def of(self, statistics: Float[np.ndarray, "*system example k"]) -> Float64[np.ndarray, "*system"]:
        """The score of each system over all examples."""
        return self.total(self._checked(statistics).sum(-2))

    def each(self, statistics: Float[np.ndarray, "*system example k"]) -> Float64[np.ndarray, "*system example"]:
        """The score of each example alone, for scores that are means over examples."""
        raise MeasureError(f"{self.name} is not a mean over examples, so a t-test does not apply", "Use the paired bootstrap")

    def sizes(self, statistics: Float64[np.ndarray, "example k"]) -> Float64[np.ndarray, "example"]:
        """The weight of each example in the score."""
        return np.ones(len(statistics))

    def resampled(
        self,
        statistics: Float[np.ndarray, "*system example k"],
        units: Int[np.ndarray, "example"],
        weights: Float[np.ndarray, "unit replicate"],
    ) -> Float64[np.ndarray, "replicate *system"]:
        """The score of each system if unit u (the document of some examples) counts `weights[u]` times."""
        values = np.moveaxis(self._checked(statistics), -2, 0)
        by_unit = np.zeros((len(weights), *values.shape[1:]))
        np.add.at(by_unit, units, values)
        return self.total(np.tensordot(weights, by_unit, (0, 0)))

    def _checked(self, statistics: Float[np.ndarray, "*system example k"]) -> Float64[np.ndarray, "*system example k"]:
        values = np.asarray(statistics, dtype=np.float64)
        if values.ndim < 2 or values.shape[-1] != len(self.columns):
            raise MeasureError(
                f"statistics of shape {values.shape} are not those of {self.name}, which has {len(self.columns)} per example",
                f"Give {', '.join(self.columns)} for each example",
            )
        return values


class Means(Score):
    """A mean over items, of which each example has one or several."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The sum over an example's items, and their number."""
        return "sum", "count"

    def sizes(self, statistics: Float64[np.ndarray, "example k"]) -> Float64[np.ndarray, "example"]:
        """The number of items of each example."""
        return statistics[:, 1]

    def total(self, sums: Float64[np.ndarray, "*system k"]) -> Float64[np.ndarray, "*system"]:
        """The mean over all items."""
        return ratio(sums[..., 0], sums[..., 1])

    def each(self, statistics: Float[np.ndarray, "*system example k"]) -> Float64[np.ndarray, "*system example"]:
        """The mean over an example's items."""
        values = self._checked(statistics)
        return ratio(values[..., 0], values[..., 1])


@dataclass(frozen=True)
class Mean(Means):
    """A mean over items, such as the loss over predicted pieces, or the share of masked pieces that are predicted
    correctly.
    """

    name: str = "mean"
    better: Better = "higher"

    def statistics(
        self, sums: Float[np.ndarray, "*system example"], counts: Float[np.ndarray, "*#system example"] | float = 1.0
    ) -> Float64[np.ndarray, "*system example 2"]:
        """The statistics of each example, from its sum over its items and their number."""
        totals = np.asarray(sums, dtype=np.float64)
        return np.stack([totals, np.broadcast_to(np.asarray(counts, dtype=np.float64), totals.shape)], -1)


@dataclass(frozen=True)
class Perplexity(Mean):
    """e to the mean loss in nats. The t-tests compare losses, since a mean of perplexities is not useful."""

    name: str = "perplexity"
    better: Better = "lower"

    def total(self, sums: Float64[np.ndarray, "*system k"]) -> Float64[np.ndarray, "*system"]:
        """The perplexity over all items; infinite if it overflows."""
        with np.errstate(over="ignore"):
            perplexity: Float64[np.ndarray, "*system"] = np.exp(super().total(sums))
        return perplexity


@dataclass(frozen=True)
class Function(Score):
    """A user-defined score: any function from the statistics of the examples to a number."""

    function: Callable[[Float64[np.ndarray, "example k"]], float]
    names: tuple[str, ...]
    name: str = "function"
    better: Better = "higher"

    @property
    def columns(self) -> tuple[str, ...]:
        """The names given to the statistics."""
        return self.names

    def total(self, sums: Float64[np.ndarray, "*system k"]) -> Float64[np.ndarray, "*system"]:
        """Not supported: the function needs examples."""
        raise MeasureError(f"{self.name} does not follow from sums of statistics", "Call `of` with all examples")

    def of(self, statistics: Float[np.ndarray, "*system example k"]) -> Float64[np.ndarray, "*system"]:
        """The value of the function for each system."""
        values = self._checked(statistics)
        flat = values.reshape(-1, *values.shape[-2:])
        return np.array([float(self.function(system)) for system in flat]).reshape(values.shape[:-2])[()]

    def resampled(
        self,
        statistics: Float[np.ndarray, "*system example k"],
        units: Int[np.ndarray, "example"],
        weights: Float[np.ndarray, "unit replicate"],
    ) -> Float64[np.ndarray, "replicate *system"]:
        """The function of the examples, each repeated as often as it was drawn; NaN if none was."""
        values = self._checked(statistics)
        scores = np.full((weights.shape[1], *values.shape[:-2]), np.nan)
        for replicate, drawn in enumerate(weights.T[:, units].astype(np.int64)):
            if drawn.any():
                scores[replicate] = self.of(np.repeat(values, drawn, axis=-2))
        return scores


def ratio(part: Float64[np.ndarray, "*shape"], whole: Float64[np.ndarray, "*shape"]) -> Float64[np.ndarray, "*shape"]:
    """`part` divided by `whole`; NaN where `whole` is 0."""
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios: Float64[np.ndarray, "*shape"] = np.where(whole != 0, part / whole, np.nan)[()]
    return ratios


def make_score(name: str, classes: int = 2, references: Sequence[Any] = ()) -> Score:
    """The score with this name. Scores of classifiers need `classes`, those of translations `references`."""
    from headscope.stats.classification import F1, Accuracy, KeyphraseF1, Matthews
    from headscope.stats.translation import Bleu, Chrf

    makers: dict[str, Callable[[], Score]] = {
        "accuracy": lambda: Accuracy(),
        "f1": lambda: F1("binary", classes),
        "f1_macro": lambda: F1("macro", classes),
        "f1_micro": lambda: F1("micro", classes),
        "matthews": lambda: Matthews(classes),
        "loss": lambda: Mean("loss", "lower"),
        "perplexity": lambda: Perplexity(),
        "masked_accuracy": lambda: Mean("masked_accuracy"),
        "bleu": lambda: Bleu(references),
        "bleu_tokenized": lambda: Bleu(references, "none"),
        "chrf": lambda: Chrf(references),
        "keyphrase_tokens": lambda: KeyphraseF1("token"),
        "keyphrase_spans": lambda: KeyphraseF1("span"),
    }
    if name not in makers:
        raise MeasureError(f"there is no score {name!r}", choose_from(name, makers, "Use one of"))
    return makers[name]()
