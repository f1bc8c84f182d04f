"""Retrieval heads without decoding: attention from a question to the passage that answers it (Zhang et al. 2025)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from headscope.core.batch import WORD, MapBatch, Side, SideTest
from headscope.core.hashing import hash64
from headscope.core.rows import RowNeeds
from headscope.encoding.choices import Overlong, Unit
from headscope.encoding.passages import marked_words
from headscope.measures.means import HeadMeans, row_sums

if TYPE_CHECKING:
    import torch
    from jaxtyping import Bool

    from headscope.measures.means import Counts, Sums

Mark = Literal["question", "passage"]
QUESTION: Mark = "question"
PASSAGE: Mark = "passage"


@dataclass(frozen=True)
class MarkTest(SideTest):
    """A test for the positions of a text's question, or of the passage that answers it."""

    which: Mark

    def places(self, side: Side) -> Bool[np.ndarray, "batch position"]:
        """True at the positions of the marked words."""
        if not side.texts:
            return np.zeros(side.roles.shape, dtype=bool)
        return side.spread([getattr(marked_words(text), self.which) for text in side.texts])


@dataclass(frozen=True)
class ControlTest(SideTest):
    """A test for another passage of the same length in the same text, drawn by the seed and the text."""

    seed: int

    def places(self, side: Side) -> Bool[np.ndarray, "batch position"]:
        """True at the positions of the other passage; False everywhere if there is no room for one."""
        question, passage = (side.chosen(which, MarkTest(which)) for which in (QUESTION, PASSAGE))
        found = np.zeros(side.roles.shape, dtype=bool)
        for row, text in enumerate(side.texts):
            key = hash64("other passage", self.seed, text.document, text.positions[0] if text.positions else 0)
            found[row] = other_passage(side.roles[row] == WORD, question[row], passage[row], key)
        return found


@dataclass(frozen=True, kw_only=True)
class Retrieval(HeadMeans):
    """QR score: (1/|q|) Σ_{t in question} Σ_{d in passage} A[t, d], the mean over texts.

    `qr_other` is the same score for another passage of the same length in the same text, drawn by `seed`. A text
    without a question and a passage (`encoding.passages`) is skipped.
    """

    name: ClassVar[str] = "retrieval"
    summary: ClassVar[str] = "attention from a question to the passage that answers it, and to another passage"
    within: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reads: ClassVar[str | None] = "passages or keyphrases"
    natural: ClassVar[tuple[Unit, Overlong] | None] = ("document", "window")

    seed: int = 0

    def quantities(self) -> tuple[str, ...]:
        """`qr`, `qr_other`."""
        return "qr", "qr_other"

    def defined(self, kind: str, quantity: str) -> bool:
        """Whether question and passage are in one text, which excludes cross-attention."""
        return kind != "cross"

    def row_needs(self) -> RowNeeds | None:
        """The weight on both passages, summed over the rows of the question."""
        return self._needs if self.level == "token" else None

    @property
    def _needs(self) -> RowNeeds:
        groups = ((PASSAGE, MarkTest(PASSAGE)), (self._other, ControlTest(self.seed)))
        return RowNeeds(groups, rows=((QUESTION, MarkTest(QUESTION)),))

    @property
    def _other(self) -> str:
        return f"other passage {self.seed}"

    def observe(self, batch: MapBatch) -> tuple[Sums, Counts]:
        """The weight on each passage, summed over the rows of the question."""
        rows = row_sums(batch, self._needs)
        sums: torch.Tensor = rows.over(QUESTION)[..., [rows.needs.column(name) for name in (PASSAGE, self._other)]]
        asked = batch.queries.chosen(QUESTION, MarkTest(QUESTION)).sum(1)
        has_other = batch.keys.chosen(self._other, ControlTest(self.seed)).any(1)
        return sums.transpose(1, 2), np.stack([asked, asked * has_other], 1).astype(np.float64)


def other_passage(
    words: Bool[np.ndarray, "position"], question: Bool[np.ndarray, "position"], passage: Bool[np.ndarray, "position"], key: int
) -> Bool[np.ndarray, "position"]:
    """Another passage: for each stretch of the passage, one of the same length at a place drawn by `key`.

    Places are words outside the question and the passage, never the first position, where sinks are. If the passage is
    before the question, the other one is too, so that causal attention sees all of it. Nothing is chosen if a stretch
    does not fit anywhere.
    """
    free = words & ~question & ~passage
    free[:1] = False
    none: Bool[np.ndarray, "position"] = np.zeros_like(free)
    if not passage.any() or not question.any():
        return none
    begin = int(np.argmax(question))
    if np.flatnonzero(passage)[-1] < begin:
        free[begin:] = False
    chosen: Bool[np.ndarray, "position"] = none.copy()
    for number, size in enumerate(sorted(_stretches(passage), reverse=True)):
        room = np.convolve(free, np.ones(size, dtype=np.int64), "valid") == size
        starts = np.flatnonzero(room)
        if not len(starts):
            return none
        start = int(starts[hash64(key, number) % len(starts)])
        chosen[start : start + size] = True
        free[start : start + size] = False
    return chosen


def _stretches(chosen: Bool[np.ndarray, "position"]) -> Sequence[int]:
    """The lengths of the stretches of chosen positions."""
    edges = np.flatnonzero(np.diff(chosen.astype(np.int8), prepend=0, append=0))
    lengths: list[int] = (edges[1::2] - edges[::2]).tolist()
    return lengths
