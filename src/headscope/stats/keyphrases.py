"""F1 of keyphrases: of the words that are part of one, or of whole phrases, each exactly where it stands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from headscope.errors import MeasureError
from headscope.stats.classification import f1
from headscope.stats.scores import Score

if TYPE_CHECKING:
    from jaxtyping import Float64

Tags = Sequence[str] | Sequence[int]


@dataclass(frozen=True)
class KeyphraseF1(Score):
    """F1 over all texts of what was tagged as part of a phrase.

    Tags are `B`, `I` and `O`, or 1 and 0, where neighbours that are 1 are one phrase.
    """

    level: Literal["token", "span"] = "token"

    @property
    def name(self) -> str:  # type: ignore[override]
        """Which F1."""
        return f"keyphrase_{self.level}s"

    @property
    def columns(self) -> tuple[str, ...]:
        """Found, wrongly found, missed."""
        return "found", "wrong", "missed"

    def statistics(self, predicted: Sequence[Tags], truth: Sequence[Tags]) -> Float64[np.ndarray, "example 3"]:
        """Statistics, from one system's tags, one sequence a text."""
        if len(predicted) != len(truth):
            raise MeasureError(f"{len(predicted)} texts are tagged where {len(truth)} are known", "Give both for the same texts")
        counts = np.zeros((len(truth), 3))
        for row, guess, true in zip(counts, predicted, truth, strict=True):
            if len(guess) != len(true):
                raise MeasureError(f"a text has {len(guess)} tags where {len(true)} are known", "Tag every word of a text")
            found, known = (self._items(tags) for tags in (guess, true))
            row[:] = len(found & known), len(found - known), len(known - found)
        return counts

    def total(self, sums: Float64[np.ndarray, "*system k"]) -> Float64[np.ndarray, "*system"]:
        """F1 from counts."""
        return f1(sums)

    def _items(self, tags: Tags) -> set[tuple[int, int]]:
        phrases = spans(tags)
        return phrases if self.level == "span" else {(place, place + 1) for start, end in phrases for place in range(start, end)}


def spans(tags: Tags) -> set[tuple[int, int]]:
    """Where phrases begin and where the first word after them is. An `I` that follows no phrase begins one."""
    found: set[tuple[int, int]] = set()
    start: int | None = None
    for place, tag in enumerate([*tags, "O"]):
        kind = str(tag)[:1].upper() if isinstance(tag, str) else "I" if tag else "O"
        if kind not in ("B", "I", "O"):
            raise MeasureError(f"the tag {tag!r} is unknown", "Tag words as B, I or O, or as 1 or 0")
        if start is not None and kind != "I":
            found.add((start, place))
            start = None
        if start is None and kind != "O":
            start = place
    return found
