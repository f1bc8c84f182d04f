"""Questions put to every head of a batch: which of the words at hand does a word attend to most, and whether that is
a right one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headscope.core.batch import MapBatch
from headscope.core.state import State
from headscope.measures.cases import Cases
from headscope.measures.contests import Contests
from headscope.measures.words import WordIndex, favourites
from headscope.stats.bootstrap import groups_of, key_of

if TYPE_CHECKING:
    import torch
    from jaxtyping import Bool, Int


class Question(NamedTuple):
    """A question about word `word` of text number `text`; words are counted within their text.

    `candidates` may be picked and `answers` are right, whether or not they are candidates; `rules` says which rules
    answer rightly. It is counted under each of its `labels`.
    """

    text: int
    word: int
    candidates: Collection[int]
    answers: Collection[int]
    rules: tuple[bool, ...]
    labels: tuple[str, ...]
    document: str


@dataclass(frozen=True)
class Questions:
    """The questions of a batch as tensors: made once, put to the heads of every layer. A row is a question under one
    label.
    """

    text: Int[torch.Tensor, "question"]
    place: Int[torch.Tensor, "question"]
    candidates: Bool[torch.Tensor, "question position"]
    answers: Bool[torch.Tensor, "question position"]
    row: Int[torch.Tensor, "row"]  # the row's question
    cases: Cases
    counts: Counter[str]

    @classmethod
    def of(cls, batch: MapBatch, asked: Sequence[Question], counts: Counter[str]) -> Questions:
        """These questions about the words of a batch, and what was counted in asking them."""
        import torch

        words = WordIndex.of(batch.queries)
        device = batch.weights.device
        masks = np.zeros((2, len(asked), batch.keys.width), dtype=bool)
        for number, question in enumerate(asked):
            first = words.first[question.text]
            for mask, chosen in zip(masks, (question.candidates, question.answers), strict=True):
                mask[number, words.place[first + np.array(sorted(chosen), dtype=np.int64)]] = True
        labels: dict[str, int] = {}
        rows = [(number, labels.setdefault(label, len(labels))) for number, question in enumerate(asked) for label in question.labels]
        row, label = np.array(rows, dtype=np.int64).reshape(-1, 2).T
        places = [int(words.place[words.first[question.text] + question.word]) for question in asked]
        documents = np.array([key_of(question.document) for question in asked], dtype=np.int64)
        rules = np.array([question.rules for question in asked], dtype=bool).reshape(len(asked), len(asked[0].rules) if asked else 0)
        return cls(
            torch.tensor([question.text for question in asked], dtype=torch.int64, device=device),
            torch.tensor(places, dtype=torch.int64, device=device),
            torch.from_numpy(masks[0]).to(device),
            torch.from_numpy(masks[1]).to(device),
            torch.from_numpy(row.copy()).to(device),
            Cases.of(tuple(labels), label, documents[row], groups_of(documents[row]), rules[row], device),
            counts,
        )

    def right(self, batch: MapBatch) -> Bool[torch.Tensor, "direction row head"]:
        """Which heads of a site answer rightly. Without any weight on a candidate there is no answer, and it is not
        right.
        """
        import torch

        chosen = favourites(batch, self.text, self.place, self.candidates)
        number = torch.arange(len(self.place), device=chosen.device)[:, None]
        return (self.answers[number, chosen.clamp_min(0)] & (chosen >= 0))[:, self.row]

    def put(self, contests: Contests, state: State, batch: MapBatch) -> None:
        """Put the questions to the heads of a site, and count the right answers."""
        contests.count(state, batch, self.counts)
        if len(self.row):
            contests.add(state, batch, self.cases, self.right(batch))
