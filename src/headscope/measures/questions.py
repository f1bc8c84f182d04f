"""Questions to every head of a batch: which candidate a word attends to most, and whether it is a right answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headscope.core.batch import MapBatch, Side
from headscope.core.state import State
from headscope.core.transfer import to_device
from headscope.measures.cases import LABEL_SETS, Cases
from headscope.measures.contests import Contests
from headscope.measures.weights.words import WordIndex, favourites
from headscope.stats.bootstrap import groups_of, keys_of

if TYPE_CHECKING:
    import torch
    from jaxtyping import Bool, Int


class Question(NamedTuple):
    """A question about word `word` of text number `text`; words are numbered within their text.

    `candidates` are the words that can be picked; `answers` are the right ones, candidates or not; `rules` says which
    rules answer correctly. The question is counted under each of its `labels`.
    """

    text: int
    word: int
    candidates: Collection[int]
    answers: Collection[int]
    rules: tuple[bool, ...]
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Questions:
    """The questions of a batch as tensors, made once and put to the heads of every layer."""

    text: Int[torch.Tensor, "question"]
    place: Int[torch.Tensor, "question"]
    candidates: Bool[torch.Tensor, "question position"]
    answers: Bool[torch.Tensor, "question position"]
    cases: Cases
    counts: Mapping[int, Counter[str]]

    @classmethod
    def of(cls, side: Side, asked: Sequence[Question], counts: Mapping[int, Counter[str]], device: torch.device) -> Questions:
        """The questions about the words of a batch, with the counts by slice that were made along with them."""
        words = WordIndex.of(side)
        text = np.array([question.text for question in asked], dtype=np.int64)
        first = words.first[text]
        masks = [
            _mask(words, first, [question.candidates for question in asked], side.width),
            _mask(words, first, [question.answers for question in asked], side.width),
        ]
        labels = np.array([LABEL_SETS.number(question.labels) for question in asked], dtype=np.int64)
        place = words.place[first + np.array([question.word for question in asked], dtype=np.int64)]
        groups = groups_of(keys_of([annotation.document for annotation in side.texts]))[text]
        rules = np.array([question.rules for question in asked] or [()], dtype=bool).T[:, : len(asked)]
        texts, places, candidates, answers = (to_device(array, device) for array in (text, place, *masks))
        label, group, right = (to_device(array, device) for array in (labels, groups, rules))
        return cls(texts, places, candidates, answers, Cases.of(label, group, right, texts, len(text), side.texts), counts)

    def right(self, batch: MapBatch) -> Bool[torch.Tensor, "direction question head"]:
        """Which heads of a site answer correctly. A head without any weight on a candidate gives no answer, which
        counts as wrong.
        """
        import torch

        chosen = favourites(batch, self.text, self.place, self.candidates)
        number = torch.arange(len(self.place), device=chosen.device)[:, None]
        return self.answers[number, chosen.clamp_min(0)] & (chosen >= 0)

    def put(self, contests: Contests, state: State, batch: MapBatch) -> None:
        """Put the questions to the heads of a site, and count the right answers."""
        contests.count(state, batch, self.counts)
        if len(self.cases):
            contests.add(state, batch, self.cases, self.cases.count(self.right(batch)))


def _mask(
    words: WordIndex, first: Int[np.ndarray, "question"], chosen: Sequence[Collection[int]], width: int
) -> Bool[np.ndarray, "question position"]:
    """True at the positions of the chosen words of each question's text, the first word of which has the number
    `first`.
    """
    sizes = [len(of_question) for of_question in chosen]
    question = np.repeat(np.arange(len(sizes)), sizes)
    word = np.fromiter(chain.from_iterable(chosen), dtype=np.int64, count=sum(sizes))
    mask = np.zeros((len(sizes), width), dtype=bool)
    mask[question, words.place[first[question] + word]] = True
    return mask
