"""The base class of measures of mentions, which put questions about the mentions of a text to every head."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from headscope.core.annotation import Annotation
from headscope.core.batch import MapBatch, Side
from headscope.core.heads import HeadLayout
from headscope.core.slices import numbers_of
from headscope.core.state import State
from headscope.encoding.choices import Overlong, Unit
from headscope.errors import MeasureError
from headscope.measures.base import Champion, Level, Measure
from headscope.measures.contests import Contests
from headscope.measures.questions import Question, Questions
from headscope.stats.resampled import Resampled

if TYPE_CHECKING:
    import torch


@dataclass(frozen=True, kw_only=True)
class Resolver(Measure):
    """A measure that asks every head about mentions. By default texts are documents, cut to the length of an input."""

    reads: ClassVar[str | None] = "mentions"
    natural: ClassVar[tuple[Unit, Overlong] | None] = ("document", "truncate")

    level: Level = "word"

    def __post_init__(self) -> None:
        if self.level != "word":
            raise MeasureError(f"{self.name}: level is {self.level!r}", "Mentions are made of words: leave level out")
        _ = self.contests  # raises an error for invalid folds

    @property
    @abstractmethod
    def contests(self) -> Contests:
        """How counts are stored and turned into tables."""

    @abstractmethod
    def asked(self, number: int, text: Annotation, counts: Counter[str]) -> list[Question]:
        """The questions about the text with number `number` in the batch. Mentions, with and without a question, are
        added to `counts`.
        """

    def start(self, layout: HeadLayout, replicates: int, seed: int = 0) -> State:
        """A state without counts."""
        return self.contests.start(replicates, seed)

    def update(self, state: State, batch: MapBatch) -> None:
        """Score all heads of a site on a batch."""
        if batch.site.kind != "cross":
            questions: Questions = batch.prepared(self, self.prepare)
            questions.put(self.contests, state, batch)

    def resampled(self, state: State, layout: HeadLayout, least: int | None = None) -> Iterator[Resampled]:
        """Every label and direction."""
        return self.contests.resampled(state, layout, least)

    def champions(self, state: State, layout: HeadLayout) -> Iterator[Champion]:
        """The best head of each label."""
        return self.contests.champions(state, layout)

    def prepare(self, queries: Side, keys: Side, device: torch.device) -> Questions:
        """The questions about a batch of texts."""
        slices = numbers_of(text.slice for text in queries.texts).tolist()
        counts: dict[int, Counter[str]] = {number: Counter() for number in slices}
        asked = [
            question
            for number, (text, of_slice) in enumerate(zip(queries.texts, slices, strict=True))
            for question in self.asked(number, text, counts[of_slice])
        ]
        return Questions.of(queries, asked, counts, device)
