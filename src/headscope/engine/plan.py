"""The plan of one pass over the corpus, which provides exactly what its measures need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

from headscope.core.batch import Slope
from headscope.core.heads import HeadLayout, Site
from headscope.core.rows import RowNeeds
from headscope.encoding.choices import Overlong, Unit
from headscope.errors import RunError
from headscope.measures import Measure
from headscope.measures.base import Level


@dataclass(frozen=True)
class CorpusReading:
    """One way of cutting the corpus into texts, and the measures that use it."""

    unit: Unit
    overlong: Overlong
    measures: frozenset[str]
    control: bool = False  # whether a measure needs the trees of other sentences
    differentiates: bool = False  # whether a measure needs gradients
    of_words: frozenset[str] = frozenset()  # the measures of words, not of tokens


def readings(measures: Sequence[Measure], unit: Unit, overlong: Overlong) -> tuple[CorpusReading, ...]:
    """The readings of the corpus that a run needs: one for each way that a measure requires, in the order of the
    measures.
    """
    wanted: dict[tuple[Unit, Overlong], list[Measure]] = {}
    for measure in measures:
        wanted.setdefault((measure.unit or unit, measure.overlong or overlong), []).append(measure)
    return tuple(
        CorpusReading(
            *way,
            frozenset(measure.name for measure in group),
            any(measure.options().get("control") == "permuted" for measure in group),
            any(measure.slope() is not None for measure in group),
            frozenset(measure.name for measure in group if measure.level == "word"),
        )
        for way, group in wanted.items()
    )


@dataclass(frozen=True)
class Plan:
    """The measures of a run and the sites that they read. `chosen` has the numbers of these sites among all of the
    model's.
    """

    measures: tuple[Measure, ...]
    chosen: tuple[int, ...]
    layout: HeadLayout

    @classmethod
    def make(cls, measures: Sequence[Measure], sites: Sequence[Site], layers: Sequence[int] | None = None) -> Plan:
        """A plan for all sites, or for those of some layers (counted from 1). Other layers are not captured."""
        available = {site.layer + 1 for site in sites}
        if unknown := sorted(set(layers or ()) - available):
            raise RunError(f"the model has no layer {unknown[0]}", f"Its layers with attention are {min(available)} to {max(available)}")
        chosen = tuple(index for index, site in enumerate(sites) if layers is None or site.layer + 1 in layers)
        return cls(tuple(measures), chosen, HeadLayout(tuple(sites[index] for index in chosen)))

    def by_level(self, names: frozenset[str] | None = None) -> dict[Level, list[Measure]]:
        """The measures of attention (of these names) of each level: word-level maps are made only if one of them needs
        them, once for all.
        """
        levels: dict[Level, list[Measure]] = {}
        for measure in self._named(names):
            if measure.slope() is None:
                levels.setdefault(measure.level, []).append(measure)
        return levels

    def row_needs(self, names: frozenset[str] | None = None) -> RowNeeds | None:
        """The statistics of rows that the measures of attention (of these names) need; None if one of them reads
        maps.
        """
        needs = [measure.row_needs() for measures in self.by_level(names).values() for measure in measures]
        if not needs or None in needs:
            return None
        return reduce(or_, (need for need in needs if need is not None))

    def by_slope(self, names: frozenset[str] | None = None) -> dict[Slope, list[Measure]]:
        """The measures of gradients (of these names), by the way gradients are taken."""
        slopes: dict[Slope, list[Measure]] = {}
        for measure in self._named(names):
            if (slope := measure.slope()) is not None:
                slopes.setdefault(slope, []).append(measure)
        return slopes

    def _named(self, names: frozenset[str] | None) -> Iterator[Measure]:
        return (measure for measure in self.measures if names is None or measure.name in names)
