"""Scores of classifiers and of tagged keyphrases: accuracy, F1, Matthews' correlation, each from a few counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from headscope.core.suggest import choose_from
from headscope.errors import MeasureError
from headscope.stats.scores import Means, Score, ratio

if TYPE_CHECKING:
    from jaxtyping import Bool, Float64, Int, Int64

Average = Literal["binary", "macro", "micro"]
OUTSIDE, INSIDE, BEGINS = 0, 1, 2
_KINDS = {"O": OUTSIDE, "I": INSIDE, "B": BEGINS}
Level = Literal["token", "span"]
Tags = Sequence[str] | Sequence[int]


@dataclass(frozen=True)
class Accuracy(Means):
    """The share of examples that are classified correctly."""

    name = "accuracy"
    one_each = True

    def statistics(
        self, predicted: Int[np.ndarray, "*system example"], truth: Int[np.ndarray, "example"]
    ) -> Float64[np.ndarray, "*system example 2"]:
        """The statistics of each example, from predicted classes."""
        _check(predicted, truth)
        right = (np.asarray(predicted) == truth).astype(np.float64)
        return np.stack([right, np.ones_like(right)], -1)


@dataclass(frozen=True)
class F1(Score):
    """The harmonic mean of precision and recall.

    `binary`: of class `positive` alone. `macro`: the mean over the classes that occur or were predicted. `micro`: of
    all counts together, which is accuracy if each example has one class. NaN if there is nothing to find and nothing
    was found.
    """

    average: Average = "binary"
    classes: int = 2
    positive: int = 1

    def __post_init__(self) -> None:
        if self.average not in get_args(Average):
            raise MeasureError(f"average {self.average!r} is unknown", choose_from(self.average, get_args(Average), "Use one of"))
        if self.average == "binary" and self.classes != 2:
            raise MeasureError(f"binary F1 needs two classes, and there are {self.classes}", "Use f1_macro or f1_micro")

    @property
    def name(self) -> str:  # type: ignore[override]
        """`f1`, or `f1_` and the average."""
        return "f1" if self.average == "binary" else f"f1_{self.average}"

    @property
    def _counted(self) -> list[int]:
        return [self.positive] if self.average == "binary" else list(range(self.classes))

    @property
    def columns(self) -> tuple[str, ...]:
        """For each counted class: true positives (found), false positives (wrong), false negatives (missed)."""
        return tuple(f"{what} {number}" for number in self._counted for what in ("found", "wrong", "missed"))

    def statistics(
        self, predicted: Int[np.ndarray, "*system example"], truth: Int[np.ndarray, "example"]
    ) -> Float64[np.ndarray, "*system example k"]:
        """The statistics of each example, from predicted classes."""
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
    """Matthews' correlation of predicted and true classes; 0 if all examples are of one class."""

    classes: int = 2
    name = "matthews"

    @property
    def columns(self) -> tuple[str, ...]:
        """Whether the class is right; 1; and indicators of the predicted and the true class."""
        sides = tuple(f"{side} {number}" for side in ("predicted", "true") for number in range(self.classes))
        return "right", "one", *sides

    def statistics(
        self, predicted: Int[np.ndarray, "*system example"], truth: Int[np.ndarray, "example"]
    ) -> Float64[np.ndarray, "*system example k"]:
        """The statistics of each example, from predicted classes."""
        _check(predicted, truth, self.classes)
        guess, true = np.asarray(predicted), np.broadcast_to(truth, np.shape(predicted))
        sides = [np.eye(self.classes)[side] for side in (guess, true)]
        return np.concatenate([(guess == true)[..., None], np.ones((*guess.shape, 1)), *sides], -1)

    def total(self, sums: Float64[np.ndarray, "*system k"]) -> Float64[np.ndarray, "*system"]:
        """The correlation from counts (Gorodkin 2004, in the form that needs no confusion matrix)."""
        right, n = sums[..., 0], sums[..., 1]
        predicted, true = sums[..., 2 : 2 + self.classes], sums[..., 2 + self.classes :]
        spread = (n**2 - (predicted**2).sum(-1)) * (n**2 - (true**2).sum(-1))
        with np.errstate(invalid="ignore", divide="ignore"):
            correlation = (right * n - (predicted * true).sum(-1)) / np.sqrt(spread)
        return np.where(n > 0, np.where(spread > 0, correlation, 0.0), np.nan)[()]


def f1(counts: Float64[np.ndarray, "*shape 3"]) -> Float64[np.ndarray, "*shape"]:
    """F1 from the numbers found, wrongly found and missed."""
    right, wrong, missed = np.moveaxis(counts, -1, 0)
    return ratio(2 * right, 2 * right + wrong + missed)


def _check(predicted: np.ndarray, truth: np.ndarray, classes: int | None = None) -> None:
    if np.shape(predicted)[-1:] != np.shape(truth):
        raise MeasureError(
            f"there are predictions for {np.shape(predicted)[-1]} examples and true classes for {len(truth)}",
            "Give both for the same examples",
        )
    for side in (predicted, truth):
        if classes is not None and np.size(side) and not 0 <= np.min(side) <= np.max(side) < classes:
            raise MeasureError(f"there are classes from {np.min(side)} to {np.max(side)}", f"Number them from 0 to {classes - 1}")


@dataclass(frozen=True)
class KeyphraseF1(Score):
    """F1 of the words or spans tagged as phrases, by `B`, `I` and `O`, or by 1 and 0, where
    adjacent 1s are one phrase.
    """

    level: Level = "token"

    @property
    def name(self) -> str:  # type: ignore[override]
        """`keyphrase_tokens` or `keyphrase_spans`."""
        return f"keyphrase_{self.level}s"

    @property
    def columns(self) -> tuple[str, ...]:
        """True positives (found), false positives (wrong), false negatives (missed)."""
        return "found", "wrong", "missed"

    def statistics(self, predicted: Sequence[Tags], truth: Sequence[Tags]) -> Float64[np.ndarray, "example 3"]:
        """The statistics of each text, from one system's tags, one sequence per text."""
        if len(predicted) != len(truth):
            raise MeasureError(f"there are tags for {len(predicted)} texts and true tags for {len(truth)}", "Give both for the same texts")
        for guess, true in zip(predicted, truth, strict=True):
            if len(guess) != len(true):
                raise MeasureError(f"a text has {len(guess)} tags and {len(true)} true tags", "Tag every word of a text")
        text_of = np.repeat(np.arange(len(truth)), [len(tags) for tags in truth])
        return self.counted(phrase_kinds(chain(*predicted)), phrase_kinds(chain(*truth)), text_of, len(truth))

    def counted(
        self, predicted: Int64[np.ndarray, "word"], truth: Int64[np.ndarray, "word"], text_of: Int64[np.ndarray, "word"], texts: int
    ) -> Float64[np.ndarray, "example 3"]:
        """The statistics of each text, from the kinds of the words of all texts in sequence."""
        if self.level == "token":
            tagged, known = predicted != OUTSIDE, truth != OUTSIDE
            both = tagged & known
        else:
            (tagged, ends), (known, true_ends) = (_phrases(kinds, text_of) for kinds in (predicted, truth))
            both = tagged & known & (ends == true_ends)
        sides = (both, tagged & ~both, known & ~both)
        return np.stack([np.bincount(text_of, side, minlength=texts) for side in sides], -1)

    def total(self, sums: Float64[np.ndarray, "*system k"]) -> Float64[np.ndarray, "*system"]:
        """F1 from counts."""
        return f1(sums)


def phrase_kinds(tags: Iterable[str | int]) -> Int64[np.ndarray, "word"]:
    """OUTSIDE, INSIDE or BEGINS for each word, from its tag."""
    kinds = []
    for tag in tags:
        kind = str(tag)[:1].upper() if isinstance(tag, str) else "I" if tag else "O"
        if kind not in _KINDS:
            raise MeasureError(f"the tag {tag!r} is unknown", "Tag words as B, I or O, or as 1 or 0")
        kinds.append(_KINDS[kind])
    return np.array(kinds, dtype=np.int64)


def _phrases(
    kinds: Int64[np.ndarray, "word"], text_of: Int64[np.ndarray, "word"]
) -> tuple[Bool[np.ndarray, "word"], Int64[np.ndarray, "word"]]:
    """Which words begin a phrase, and where these phrases end. An `I` that follows no phrase begins one."""
    opens = np.diff(text_of, prepend=-1) != 0
    before = np.where(opens, OUTSIDE, np.roll(kinds, 1))
    begins = (kinds == BEGINS) | ((kinds == INSIDE) & (before == OUTSIDE))
    stops = np.where((kinds != INSIDE) | opens, np.arange(len(kinds)), len(kinds))
    after = np.minimum.accumulate(stops[::-1])[::-1]  # the first stop at or after each word
    return begins, np.append(after[1:], len(kinds))[: len(kinds)]
