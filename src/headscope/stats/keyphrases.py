"""F1 of keyphrases: of the words that are part of one, or of whole phrases, each exactly where it stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Literal

import numpy as np

from headscope.errors import MeasureError
from headscope.stats.classification import f1
from headscope.stats.scores import Score

if TYPE_CHECKING:
    from jaxtyping import Bool, Float64, Int64

OUTSIDE, INSIDE, BEGINS = 0, 1, 2
_KINDS = {"O": OUTSIDE, "I": INSIDE, "B": BEGINS}
Level = Literal["token", "span"]
Tags = Sequence[str] | Sequence[int]


@dataclass(frozen=True)
class KeyphraseF1(Score):
    """F1 over all texts of what was tagged as part of a phrase.

    Tags are `B`, `I` and `O`, or 1 and 0, where neighbours that are 1 are one phrase.
    """

    level: Level = "token"

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
        for guess, true in zip(predicted, truth, strict=True):
            if len(guess) != len(true):
                raise MeasureError(f"a text has {len(guess)} tags where {len(true)} are known", "Tag every word of a text")
        text_of = np.repeat(np.arange(len(truth)), [len(tags) for tags in truth])
        return self.counted(phrase_kinds(chain(*predicted)), phrase_kinds(chain(*truth)), text_of, len(truth))

    def counted(
        self, predicted: Int64[np.ndarray, "word"], truth: Int64[np.ndarray, "word"], text_of: Int64[np.ndarray, "word"], texts: int
    ) -> Float64[np.ndarray, "example 3"]:
        """Statistics, from kinds of the words of all texts, one text after the other."""
        if self.level == "token":
            found, known = predicted != OUTSIDE, truth != OUTSIDE
            both = found & known
        else:
            (found, ends), (known, true_ends) = (_phrases(kinds, text_of) for kinds in (predicted, truth))
            both = found & known & (ends == true_ends)
        sides = (both, found & ~both, known & ~both)
        return np.stack([np.bincount(text_of, side, minlength=texts) for side in sides], -1)

    def total(self, sums: Float64[np.ndarray, "*system k"]) -> Float64[np.ndarray, "*system"]:
        """F1 from counts."""
        return f1(sums)


def phrase_kinds(tags: Iterable[str | int]) -> Int64[np.ndarray, "word"]:
    """OUTSIDE, INSIDE or BEGINS of each word, by its tag."""
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
    """Which words begin a phrase, and where the first word after a phrase that began there would be. An `I` after no
    phrase begins one.
    """
    opens = np.diff(text_of, prepend=-1) != 0
    before = np.where(opens, OUTSIDE, np.roll(kinds, 1))
    begins = (kinds == BEGINS) | ((kinds == INSIDE) & (before == OUTSIDE))
    stops = np.where((kinds != INSIDE) | opens, np.arange(len(kinds)), len(kinds))
    after = np.minimum.accumulate(stops[::-1])[::-1]  # the first stop that is not before a word
    return begins, np.append(after[1:], len(kinds))[: len(kinds)]
