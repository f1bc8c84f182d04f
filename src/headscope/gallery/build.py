"""Making the gallery of a run: a second look, text by text, at a small sample of what the run read.

A text's score for a head is the measure's own on that text alone. Only the maps that are shown are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.core.heads import HeadId, HeadLayout, Kind, Site
from headscope.core.state import State
from headscope.encoding.choices import Rows
from headscope.encoding.texts import Encoded
from headscope.engine.compute import Accumulator, BatchView
from headscope.engine.plan import Plan
from headscope.gallery.distances import GalleryDistances
from headscope.gallery.examples import BestExamples, ViewedText
from headscope.gallery.texts import describe_text, quantised
from headscope.gallery.windows import Window, window
from headscope.measures import Measure
from headscope.results.behaviour import behaviours, shown
from headscope.results.gallery import Example, Gallery
from headscope.results.skills import skilled, skills
from headscope.results.table import Table
from headscope.stats.bootstrap import poisson_weights

if TYPE_CHECKING:
    import torch
    from jaxtyping import Float

    from headscope.gallery.examples import Scores
    from headscope.results.gallery import Map

    # Gives each text, in any order, with the maps of all heads of the plan, those of a kind side by side.
    Look = Callable[[Sequence[Encoded]], Iterable[tuple[Encoded, Mapping[Kind, Float[torch.Tensor, "head query key"]]]]]


@dataclass(frozen=True)
class GalleryReading:
    """Some texts of one way of reading the corpus, and the names of the measures that read it so."""

    texts: Sequence[Encoded]
    measures: frozenset[str]


def build_gallery(plan: Plan, readings: Sequence[GalleryReading], look: Look, tables: Mapping[str, Table], rows: Rows) -> Gallery:
    """The gallery of a run with these tables."""
    layout = plan.layout
    scorer = _Scorer([measure for measure in plan.measures if skilled(measure, tables)], layout, rows)
    best = BestExamples(skills(scorer.measures, tables, layout), {measure.name: measure for measure in scorer.measures}, layout)
    stacks = chosen_stacks(readings[0].texts, layout)
    distances = GalleryDistances(layout, readings[0].texts)
    runs = _Shelf()
    stacked: dict[str, tuple[int, dict[HeadId, Map]]] = {}
    for number, reading in enumerate(readings):
        for text, maps in look(reading.texts):
            seen = ViewedText(number, text, layout, maps)
            best.add(seen, scorer(seen, reading.measures))
            if number == 0:
                distances.add(text, seen.maps)
                if (window := stacks.get(text.id)) is not None:
                    stacked[text.id] = runs.place(number, text, window), _stack(seen, window)
            del maps, seen  # or they would be held until the next ones are there
    ids = layout.ids()
    examples = [
        Example(
            ids[skill.head], skill.measure, skill.quantity, kept.value, kept.n, runs.place(kept.reading, kept.text, kept.window), kept.map
        )
        for skill, kept in best.examples()
    ]
    labels = [shown(labels) for labels in behaviours(tables, layout)]
    return Gallery(tuple(runs.texts), tuple(stacked.values()), tuple(examples), *distances.finish(labels))


def _stack(seen: ViewedText, window: Window) -> dict[HeadId, Map]:
    """The maps of all heads, in the order of the head axis."""
    kinds = seen.layout.by_kind()
    ids = seen.layout.ids()
    maps = {head: map for kind in kinds for head, map in zip(kinds[kind], quantised(seen.cut(kind, window).cpu().numpy()), strict=True)}
    return {id: maps[head] for head, id in enumerate(ids)}


class _Scorer:
    """What measures say of one text. All layers of a kind are put to them as one site of many heads, which is much
    faster.
    """

    def __init__(self, measures: Sequence[Measure], layout: HeadLayout, rows: Rows) -> None:
        self.measures = measures
        self._rows = rows
        self._place = layout.by_kind()
        wide = tuple(Site(kind, 0, len(heads), len(heads), kind) for kind, heads in self._place.items())
        self._plan = Plan(tuple(measures), tuple(range(len(wide))), HeadLayout(wide))

    def __call__(self, seen: ViewedText, names: frozenset[str]) -> dict[str, dict[str, Scores]]:
        """By measure and quantity, each head's value and n, and what even attention gives (0 where that is not
        known).
        """
        accumulator = Accumulator(self._plan, 0, 0, names)
        view = BatchView([seen.text], self._rows, poisson_weights([seen.text.document], 0))
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


class _Shelf:
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


MOST = 3
BYTES = 1_200_000  # of all stacks together
NICE = range(8, 25)  # tokens
LONGEST = 32


def chosen_stacks(texts: Sequence[Encoded], layout: HeadLayout) -> dict[str, Window]:
    """By id, the texts and what part of them is shown: of good length and of different documents, as far as there are
    any.

    Models of many heads get fewer stacks, and smaller ones.
    """
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
