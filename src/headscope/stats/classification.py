"""Scores of classifiers: accuracy, F1 and Matthews' correlation, each from a few counts an example."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from headscope.errors import MeasureError
from headscope.stats.scores import Means, Score, ratio

if TYPE_CHECKING:
    from jaxtyping import Float64, Int

Average = Literal["binary", "macro", "micro"]


@dataclass(frozen=True)
class Accuracy(Means):
    """The share of examples whose class was found."""

    name = "accuracy"
    one_each = True

    def statistics(
        self, predicted: Int[np.ndarray, "*system example"], truth: Int[np.ndarray, "example"]
    ) -> Float64[np.ndarray, "*system example 2"]:
        """Statistics, from predicted classes."""
        _check(predicted, truth)
        right = (np.asarray(predicted) == truth).astype(np.float64)
        return np.stack([right, np.ones_like(right)], -1)


@dataclass(frozen=True)
class F1(Score):
    """The harmonic mean of precision and recall.

    `binary`: of class `positive` alone; `macro`: the mean over the classes that occur or were predicted; `micro`: of
    all counts together, which is accuracy where each example has one class. NaN where there is nothing to find and
    nothing was found.
    """

    average: Average = "binary"
    classes: int = 2
    positive: int = 1

    def __post_init__(self) -> None:
        if self.average not in get_args(Average):
            raise MeasureError(f"average {self.average!r} is unknown", f"Take one of {', '.join(get_args(Average))}")
        if self.average == "binary" and self.classes != 2:
            raise MeasureError(f"F1 of one class is asked for where there are {self.classes}", "Take f1_macro or f1_micro")

    @property
    def name(self) -> str:  # type: ignore[override]
        """Which F1."""
        return "f1" if self.average == "binary" else f"f1_{self.average}"

    @property
    def _counted(self) -> list[int]:
        return [self.positive] if self.average == "binary" else list(range(self.classes))

    @property
    def columns(self) -> tuple[str, ...]:
        """For each class that counts: found, wrongly found, missed."""
        return tuple(f"{what} {number}" for number in self._counted for what in ("found", "wrong", "missed"))

    def statistics(
        self, predicted: Int[np.ndarray, "*system example"], truth: Int[np.ndarray, "example"]
    ) -> Float64[np.ndarray, "*system example k"]:
        """Statistics, from predicted classes."""
        _check(predicted, truth, self.classes)
        guessed, true = (np.asarray(side)[..., None] == np.array(self._counted) for side in (predicted, truth))
        counts = np.stack([guessed & true, guessed & ~true, ~guessed & true], -1)
        return counts.reshape(*counts.shape[:-2], -1).astype(np.float64)

    def total(self, sums: Float64[np.ndarray, "*system k"]) -> Float64[np.ndarray, "*system"]:
        """F1 from counts."""
        counts = sums.reshape(*sums.shape[:-1], len(self._counted), 3)
        if self.average != "macro":
            return f1(counts.sum(-2))
        scores = f1(counts)
        return ratio(np.nansum(scores, -1), np.isfinite(scores).sum(-1).astype(np.float64))


@dataclass(frozen=True)
class Matthews(Score):
    """Matthews' correlation of classes found and true ones, for two classes or more; 0 where all examples are of one
    class.
    """

    classes: int = 2
    name = "matthews"

    @property
    def columns(self) -> tuple[str, ...]:
        """Whether the class was found; 1; and which class was predicted and which is true."""
        sides = tuple(f"{side} {number}" for side in ("predicted", "true") for number in range(self.classes))
        return "right", "one", *sides

    def statistics(
        self, predicted: Int[np.ndarray, "*system example"], truth: Int[np.ndarray, "example"]
    ) -> Float64[np.ndarray, "*system example k"]:
        """Statistics, from predicted classes."""
        _check(predicted, truth, self.classes)
        guess, true = np.asarray(predicted), np.broadcast_to(truth, np.shape(predicted))
        sides = [np.eye(self.classes)[side] for side in (guess, true)]
        return np.concatenate([(guess == true)[..., None], np.ones((*guess.shape, 1)), *sides], -1)

    def total(self, sums: Float64[np.ndarray, "*system k"]) -> Float64[np.ndarray, "*system"]:
        """The correlation from counts (Gorodkin 2004, in the form that needs no table of confusions)."""
        right, n = sums[..., 0], sums[..., 1]
        predicted, true = sums[..., 2 : 2 + self.classes], sums[..., 2 + self.classes :]
        spread = (n**2 - (predicted**2).sum(-1)) * (n**2 - (true**2).sum(-1))
        with np.errstate(invalid="ignore", divide="ignore"):
            found = (right * n - (predicted * true).sum(-1)) / np.sqrt(spread)
        settled: Float64[np.ndarray, "*system"] = np.where(n > 0, np.where(spread > 0, found, 0.0), np.nan)[()]
        return settled


def f1(counts: Float64[np.ndarray, "*shape 3"]) -> Float64[np.ndarray, "*shape"]:
    """F1 from how many were found, wrongly found, and missed."""
    found, wrong, missed = np.moveaxis(counts, -1, 0)
    return ratio(2 * found, 2 * found + wrong + missed)


def _check(predicted: np.ndarray, truth: np.ndarray, classes: int | None = None) -> None:
    if np.shape(predicted)[-1:] != np.shape(truth):
        raise MeasureError(
            f"classes are predicted for {np.shape(predicted)[-1]} examples where {len(truth)} are known", "Give both for the same examples"
        )
    for side in (predicted, truth):
        if classes is not None and np.size(side) and not 0 <= np.min(side) <= np.max(side) < classes:
            raise MeasureError(f"there is a class {np.min(side)} or {np.max(side)} where classes are 0 to {classes - 1}", "Number them so")
