"""The texts that show best what heads are best at, and the window of a long text that is shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.batch import WORD, stack
from headscope.core.heads import HeadLayout, Kind
from headscope.encoding.batches import token_side
from headscope.encoding.texts import Encoded
from headscope.engine.map_memory import SIDES
from headscope.engine.sample import order
from headscope.gallery.texts import quantised
from headscope.measures import Measure
from headscope.measures.groups import group
from headscope.measures.resolver import Resolver
from headscope.measures.retrieval import PASSAGE, QUESTION, MarkTest, Retrieval
from headscope.measures.sequences import earlier_copies
from headscope.results.skills import Skill

if TYPE_CHECKING:
    import torch
    from jaxtyping import Float, Float64

    from headscope.results.gallery import Map

    # For each head on one text: value, n, and the value of even attention.
    Scores = tuple[Float64[np.ndarray, "head"], Float64[np.ndarray, "head"], Float64[np.ndarray, "head"]]

LONGEST = 48  # most tokens of a text that are shown

Window = tuple[int, int]
BYTES = 1_500_000  # of all examples' maps together
NICE = range(8, 26)  # tokens of a text that shows a surface pattern well
ELSE = 0.9  # factor for a share of attention in a text of another length


def window(text: Encoded, measure: Measure | None = None, label: str = "", longest: int = LONGEST) -> Window:
    """The tokens [start, end) of a text, from the start of a word, that contain the most complete cases of a label."""
    size = len(text)
    if size <= longest:
        return 0, size
    spans = np.array(list(_spans(text, measure, label)) if measure is not None else [], dtype=np.int64).reshape(-1, 2)
    word_of = text.word_of
    first = [at for at in range(size - longest + 1) if at == 0 or word_of[at] < 0 or word_of[at] != word_of[at - 1]]
    starts = np.array([*first, *([] if first[-1] == size - longest else [size - longest])])
    inside = (spans[:, 0] >= starts[:, None]) & (spans[:, 1] < starts[:, None] + longest)
    held = inside.sum(1)
    best = starts[held == held.max()]
    start = int(best[len(best) // 2]) if held.max() else 0
    return start, start + longest


def _spans(text: Encoded, measure: Measure, label: str) -> Iterator[tuple[int, int]]:
    """The first and the last token of each case of a label: a word and its governor, the head words of a mention and of
    its antecedent, or a token of a group.
    """
    if measure.needs is None:
        if label.startswith("to_"):
            name = label.removeprefix("to_")
            places = stack([text.pieces], [text.roles]).chosen(name, group(name))[0]
            yield from ((int(at), int(at)) for at in np.flatnonzero(places))
        elif label in ("induction", "duplicate"):
            copies = earlier_copies(text.ids[None], np.array([text.roles]) == WORD)
            yield from zip(copies.column.tolist(), copies.row.tolist(), strict=True)
        return
    if isinstance(measure, Retrieval):
        side = token_side([text])
        for which in (QUESTION, PASSAGE):
            if len(places := np.flatnonzero(side.chosen(which, MarkTest(which))[0])):
                yield int(places[0]), int(places[-1])
        return
    last = {word: token for token, word in enumerate(text.word_of)}
    first = {word: token for token, word in reversed([*enumerate(text.word_of)])}
    for word, other in _pairs(text, measure, label):
        yield first[min(word, other)], last[max(word, other)]


def _pairs(text: Encoded, measure: Measure, label: str) -> Iterator[tuple[int, int]]:
    """The two words of each case: a word and its governor, or the word of a question and the nearest answer."""
    if isinstance(measure, Resolver):
        for question in measure.asked(0, text.annotation, Counter()):
            if label in question.labels:
                yield question.word, min(question.answers, key=lambda answer: abs(answer - question.word))
        return
    for word, (dependent, head) in enumerate(zip(text.words, text.annotation.heads, strict=True)):
        if head >= 0 and ((dependent.relation or "") + ":").startswith(label + ":"):
            yield word, head


@dataclass(frozen=True)
class ViewedText:
    """A text of a reading, given by its number, and the maps of all heads on it, stacked by kind."""

    reading: int
    text: Encoded
    layout: HeadLayout
    maps: Mapping[Kind, Float[torch.Tensor, "head query key"]]

    def cut(self, kind: Kind, window: Window) -> Float[torch.Tensor, "head query key"]:
        """The maps of a kind, cut to a window of the source: rows, columns, or both. A target is never cut."""
        rows, columns = (slice(*window) if self.text.target is None or side == "source" else slice(None) for side in SIDES[kind])
        return self.maps[kind][:, rows, columns]


@dataclass(frozen=True, eq=False)
class SkillExample:
    """A text kept for a skill."""

    rank: tuple[float, bool, int]
    reading: int
    text: Encoded
    window: Window
    value: float
    n: int
    map: Map


class BestExamples:
    """For each skill its best texts, of different documents."""

    def __init__(self, skills: Sequence[Skill], measures: Mapping[str, Measure], layout: HeadLayout) -> None:
        self._skills = skills
        self._measures = measures
        self._place = {head: (kind, number) for kind, heads in layout.by_kind().items() for number, head in enumerate(heads)}
        self._kept: list[list[SkillExample]] = [[] for _ in skills]
        self._bar = np.zeros(len(skills))  # the score below which a text is not kept
        of: dict[tuple[str, str], list[int]] = {}
        for number, skill in enumerate(skills):
            of.setdefault((skill.measure, skill.quantity), []).append(number)
        self._of = {key: np.array(numbers) for key, numbers in of.items()}
        self._head = np.array([skill.head for skill in skills], dtype=np.int64)

    def add(self, seen: ViewedText, scored: Mapping[str, Mapping[str, Scores]]) -> None:
        """Consider a text, given the scores of the measures on it, by quantity."""
        if seen.text.target is not None and len(seen.text.target) > LONGEST:
            return
        tie = (seen.text.cost in NICE, -order(seen.text))
        for (measure, quantity), numbers in self._of.items():
            if quantity in scored.get(measure, {}):
                value, n, even = (column[self._head[numbers]] for column in scored[measure][quantity])
                scores = _scores(seen.text, value, n, None if self._skills[numbers[0]].contest else even)
                for place in np.flatnonzero((scores > 0) & (scores >= self._bar[numbers])):
                    self._consider(int(numbers[place]), seen, (float(scores[place]), *tie), float(value[place]), int(n[place]))

    def _consider(self, number: int, seen: ViewedText, rank: tuple[float, bool, int], value: float, n: int) -> None:
        skill, kept, text = self._skills[number], self._kept[number], seen.text
        rivals = [example for example in kept if example.text.document == text.document] or kept[skill.examples - 1 :]
        if rivals and rank <= rivals[0].rank:
            return
        part = window(text, self._measures[skill.measure], skill.label)
        kind, head = self._place[skill.head]
        map = quantised(seen.cut(kind, part)[head].cpu().numpy())
        kept[:] = [*(example for example in kept if example not in rivals), SkillExample(rank, seen.reading, text, part, value, n, map)]
        kept.sort(key=lambda example: example.rank, reverse=True)
        self._bar[number] = kept[-1].rank[0] if len(kept) == skill.examples else 0

    def examples(self) -> list[tuple[Skill, SkillExample]]:
        """The kept examples, by head; if there are too many, second texts and then small lifts are dropped."""
        # Skills come with the largest lift first.
        ranked = sorted((place, number) for number, kept in enumerate(self._kept) for place in range(len(kept)))
        chosen = []
        room = BYTES
        for place, number in ranked:
            room -= self._kept[number][place].map.nbytes
            if room < 0:
                break
            chosen.append((self._skills[number].head, number, place))
        return [(self._skills[number], self._kept[number][place]) for _, number, place in sorted(chosen)]


def _scores(
    text: Encoded, value: Float64[np.ndarray, "skill"], n: Float64[np.ndarray, "skill"], even: Float64[np.ndarray, "skill"] | None
) -> Float64[np.ndarray, "skill"]:
    """How well a text shows a skill; 0 or less if it does not. `even` is None if answers are right or wrong."""
    right = np.nan_to_num(value) * n
    if even is None:  # three of three are better than one of one
        return np.where(right > 0, (right + 1) / (n + 2), 0.0)
    # In a short text every token receives much attention from any head: only the excess counts.
    return np.where(right > 0, (value - even) * (1.0 if text.cost in NICE else ELSE), 0.0)
