"""The gallery of a finished run, made in a second pass over a small sample of its texts.

A text's score for a head is the value of the measure on that text. Only the maps that are shown are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.core.heads import HeadId, HeadLayout, Kind, Site
from headscope.core.state import State
from headscope.encoding.choices import Rows
from headscope.encoding.texts import Encoded
from headscope.engine.accumulate import Accumulator, BatchView
from headscope.engine.plan import CorpusReading as Way
from headscope.engine.plan import Plan
from headscope.engine.sample import Sample
from headscope.gallery.examples import BestExamples, ViewedText, Window, window
from headscope.gallery.texts import describe_text, quantised
from headscope.measures import Measure
from headscope.results.gallery import Example, Gallery, Points, neighbours
from headscope.results.head_labels import picture_words
from headscope.results.results import LEFT_OUT, Results
from headscope.results.skills import skilled, skills
from headscope.results.table import Table
from headscope.stats.bootstrap import poisson_weights
from headscope.stats.divergence import jensen_shannon
from headscope.stats.embedding import metric

if TYPE_CHECKING:
    import torch
    from jaxtyping import Float, Float32

    from headscope.gallery.examples import Scores
    from headscope.results.gallery import Map

    # A function that yields each text, in any order, with the maps of all heads of the plan, stacked by kind.
    Look = Callable[[Sequence[Encoded]], Iterable[tuple[Encoded, Mapping[Kind, Float[torch.Tensor, "head query key"]]]]]

MOST = 3  # stacks: texts with the maps of all heads
BYTES = 1_200_000  # of all stacks together
NICE = range(8, 25)  # tokens of a stack
LONGEST = 32  # tokens of a stack
TOO_LONG = f"{LEFT_OUT}: texts are too long to keep their maps"
ROWS = 2000  # of attention over which distances are means
PAIRS = 160_000_000  # of heads, times rows: with many heads fewer rows are used
HEADS = 2048  # most heads that are compared


@dataclass(frozen=True)
class GalleryReading:
    """Some texts of one way to read the corpus, and the names of the measures that use it."""

    texts: Sequence[Encoded]
    measures: frozenset[str]


def build_gallery(
    plan: Plan, readings: Sequence[GalleryReading], look: Look, tables: Mapping[str, Table], rows: Rows, labels: Sequence[str]
) -> Gallery:
    """The gallery of a run with these tables, whose heads have these labels."""
    layout = plan.layout
    scorer = _Scorer([measure for measure in plan.measures if skilled(measure, tables)], layout, rows)
    best = BestExamples(skills(scorer.measures, tables, layout), {measure.name: measure for measure in scorer.measures}, layout)
    stacks = chosen_stacks(readings[0].texts, layout)
    distances = GalleryDistances(layout, readings[0].texts)
    texts = _GalleryTexts()
    stacked: dict[str, tuple[int, dict[HeadId, Map]]] = {}
    for number, reading in enumerate(readings):
        for text, maps in look(reading.texts):
            seen = ViewedText(number, text, layout, maps)
            best.add(seen, scorer(seen, reading.measures))
            if number == 0:
                distances.add(text, seen.maps)
                if (window := stacks.get(text.id)) is not None:
                    stacked[text.id] = texts.place(number, text, window), _stack(seen, window)
            del maps, seen  # free the memory before the next maps are computed
    ids = layout.ids()
    examples = [
        Example(
            ids[skill.head],
            skill.measure,
            skill.quantity,
            kept.value,
            kept.n,
            texts.place(kept.reading, kept.text, kept.window),
            kept.map,
        )
        for skill, kept in best.examples()
    ]
    return Gallery(tuple(texts.texts), tuple(stacked.values()), tuple(examples), *distances.finish(labels))


def _stack(seen: ViewedText, window: Window) -> dict[HeadId, Map]:
    kinds = seen.layout.by_kind()
    ids = seen.layout.ids()
    maps = {head: map for kind in kinds for head, map in zip(kinds[kind], quantised(seen.cut(kind, window).cpu().numpy()), strict=True)}
    return {id: maps[head] for head, id in enumerate(ids)}


class _Scorer:
    """Scores of measures on one text. All layers of a kind are one site of many heads, which is much faster."""

    def __init__(self, measures: Sequence[Measure], layout: HeadLayout, rows: Rows) -> None:
        self.measures = measures
        self._rows = rows
        self._place = layout.by_kind()
        wide = tuple(Site(kind, 0, len(heads), len(heads), kind) for kind, heads in self._place.items())
        self._plan = Plan(tuple(measures), tuple(range(len(wide))), HeadLayout(wide))

    def __call__(self, seen: ViewedText, names: frozenset[str]) -> dict[str, dict[str, Scores]]:
        """By measure and quantity: each head's value, its n, and the value of even attention (0 if not known)."""
        accumulator = Accumulator(self._plan, 0, 0, names)
        view = BatchView([seen.text], self._rows, partial(poisson_weights, replicates=0))
        for index, kind in enumerate(self._place):
            accumulator.add(view, index, seen.maps[kind][None])
        return {measure.name: self._scores(measure, accumulator.states[measure.name]) for measure in self.measures if measure.name in names}

    def _scores(self, measure: Measure, state: State) -> dict[str, Scores]:
        wide = self._plan.layout
        order = np.argsort(np.concatenate([*self._place.values()]))
        even = measure.expected(state, wide)
        return {
            quantity: (value[order], n[order], even[quantity][order] if quantity in even else np.zeros(len(order)))
            for quantity, (value, n) in measure.glimpse(state, wide).items()
        }


class _GalleryTexts:
    """The texts of a gallery, each once."""

    def __init__(self) -> None:
        self.texts: list[dict[str, Any]] = []
        self._place: dict[tuple[int, str, Window], int] = {}

    def place(self, reading: int, text: Encoded, window: Window) -> int:
        """The number of a text, or of a window of it."""
        key = (reading, text.id, window)
        if key not in self._place:
            self._place[key] = len(self.texts)
            self.texts.append(describe_text(text, window))
        return self._place[key]


def chosen_stacks(texts: Sequence[Encoded], layout: HeadLayout) -> dict[str, Window]:
    """By id, the texts and windows to show: of good length, if possible of different documents; few for many heads."""
    size = max(1, layout.size) * 2
    count = max(1, min(MOST, BYTES // (size * NICE[-1] ** 2)))
    longest = min(LONGEST, isqrt(BYTES // (size * count)))
    usable = [text for text in texts if text.target is None or len(text.target) <= longest]  # a target is never cut
    ranked = sorted(usable, key=lambda text: 0 if text.cost in NICE and text.cost <= longest else text.cost)
    taken: dict[str, Encoded] = {}
    for again in (False, True):
        for text in ranked:
            if len(taken) < count and (again or all(text.document != other.document for other in taken.values())):
                taken[text.id] = text
    return {id: window(text, longest=longest) for id, text in taken.items()}


def attach_gallery(results: Results, plan: Plan, sampled: Sequence[tuple[Way, Sample]], look: Look, rows: Rows) -> Results:
    """Add the gallery to a finished run, and return it. The manifest names readings whose texts are too long."""
    texts = [sample.texts() for _, sample in sampled]
    readings = [GalleryReading(some, way.measures) for some, (way, _) in zip(texts, sampled, strict=True) if some]
    without = [way.unit for some, (way, sample) in zip(texts, sampled, strict=True) if not some and sample.too_long]

    def make(tables: Mapping[str, Table]) -> Gallery | None:
        labels = [next(iter(words), "") for words in picture_words(results)]
        return build_gallery(plan, readings, look, tables, rows, labels) if readings else None

    return results.with_gallery(make, [TOO_LONG] if not readings else [f"{TOO_LONG}, by {unit}" for unit in without])


class GalleryDistances:
    """Sums of divergences between the heads of one kind, the one with the most heads."""

    def __init__(self, layout: HeadLayout, texts: Sequence[Encoded]) -> None:
        kinds = layout.by_kind()
        self._size = layout.size
        self._kind: Kind = max(kinds, key=lambda kind: len(kinds[kind]))
        self._heads = kinds[self._kind]
        most = min(ROWS, PAIRS // len(self._heads) ** 2) if 1 < len(self._heads) <= HEADS else 0
        before = accumulate((text.cost for text in texts), initial=0)
        self._wanted = {text.id for text, rows in zip(texts, before, strict=False) if rows < most}
        self._sum = np.zeros((len(self._heads),) * 2)
        self._rows = 0

    def add(self, text: Encoded, maps: Mapping[Kind, Float[torch.Tensor, "head query key"]]) -> None:
        """Add all rows of a text, if it is one of the first texts that together have enough rows."""
        if text.id in self._wanted:
            sums, rows = jensen_shannon(maps[self._kind])
            self._sum += sums.cpu().numpy()
            self._rows += rows

    def finish(self, behaviour: Sequence[str]) -> tuple[Float32[np.ndarray, "head head"] | None, Points | None]:
        """The mean distances and the heads as points; None for models whose heads are not compared."""
        if not self._rows:
            return None, None
        mean = self._sum / self._rows
        embedding = metric(mean)
        distances = np.full((self._size, self._size), np.nan, dtype=np.float32)
        distances[np.ix_(self._heads, self._heads)] = mean
        x, y = np.full((2, self._size), np.nan)
        x[self._heads], y[self._heads] = embedding.points.T
        return distances, Points(x, y, embedding.stress, tuple(behaviour), self._rows, neighbours(distances))
