"""Two runs, number by number: what differs between them, and whether by more than other documents would change it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.core.heads import HeadLayout, Site
from headscope.errors import RunError
from headscope.measures import Measure, make
from headscope.measures.base import Champion, Resampled
from headscope.runs.results import Results
from headscope.runs.table import Table
from headscope.stats.bootstrap import percentile_interval

if TYPE_CHECKING:
    from jaxtyping import Float64

_PAIRED = "paired by document: what both runs read, both resampled alike"
_APART = "as of two independent samples of documents"
_NONE = "not at all: a run has no replicates"
_BEST = ("kind", "label", "a_heads", "b_heads", "a_n", "b_n")
# Settings, beside the model and the corpus, that can make a difference by themselves.
_SETTINGS = ("preset", "max_length", "segment_ids", "word_rows", "limit", "dtype", "weights")
_NUMBERS = ("a", "b", "difference", "low", "high")


@dataclass(frozen=True)
class Comparison:
    """Tables of differences, b minus a. `heads` is None where the heads of the two models do not correspond."""

    a: Results
    b: Results
    how: str  # how the intervals of differences were made
    unlike: tuple[str, ...]  # what else, beside model and corpus, the runs did differently
    left_out: tuple[str, ...]  # what could not be compared, and why
    heads: Table | None  # measure, quantity, kind, layer, head
    layers: Table  # measure, quantity, kind, layer
    best: Table  # measure, kind, label, heads and numbers of cases of both


def compare(a: Results, b: Results) -> Comparison:
    """What two runs have in common, and how it differs.

    Runs over the same corpus with the same seed drew the same documents in each replicate, so their differences are taken
    replicate by replicate, and what is due to the documents cancels. Else each replicate meets another one.
    """
    paired = _same_draws(a, b)
    measures, left_out = _in_common(a, b)
    layouts = layout_of(a), layout_of(b)
    same = _shape(layouts[0]) == _shape(layouts[1])
    shared = [place for place in _layers(layouts[0]) if place in _layers(layouts[1])]
    if not same:
        left_out.append("single heads: the two runs do not have the same layers and heads")
    if not shared:
        left_out.append("layers: the two runs share none")
    heads, layers, best = _Listing("quantity", "kind", "layer", "head"), _Listing("quantity", "kind", "layer"), _Listing(*_BEST)
    for measure in measures:
        both = [(results.state(measure.name), layout) for results, layout in zip((a, b), layouts, strict=True)]
        first, second = ({one.quantity: one for one in measure.resampled(*one)} for one in both)
        for quantity in (quantity for quantity in first if quantity in second):
            pair = first[quantity], second[quantity]
            if same:
                places = [{"kind": id.kind, "layer": id.layer + 1, "head": id.head + 1} for id in layouts[0].ids()]
                heads.add(measure.name, [{"quantity": quantity, **place} for place in places], differences(*pair, paired))
            if f"{measure.name}_layers" in a and shared:
                means = tuple(_by_layer(one, layout, shared) for one, layout in zip(pair, layouts, strict=True))
                rows = [{"quantity": quantity, "kind": kind, "layer": layer + 1} for kind, layer in shared]
                layers.add(measure.name, rows, differences(means[0], means[1], paired))
        champions = [_by_label(list(measure.champions(*one))) for one in both]
        if alone := sorted({label for _, label in champions[0].keys() ^ champions[1].keys()}):
            left_out.append(f"{measure.name}: listed in one run only: {', '.join(alone[:5])}{', ...' if len(alone) > 5 else ''}")
        for key in (key for key in champions[0] if key in champions[1]):
            x, y = champions[0][key], champions[1][key]
            row = {
                "kind": x.kind,
                "label": x.label,
                "a_heads": x.heads,
                "b_heads": y.heads,
                "a_n": int(x.scores.n[0]),
                "b_n": int(y.scores.n[0]),
            }
            best.add(measure.name, [row], differences(x.scores, y.scores, paired))
    drawn = all(results.manifest["settings"]["replicates"] for results in (a, b))
    how = (_PAIRED if paired else _APART) if drawn else _NONE
    tables = heads.table() if same else None, layers.table(), best.table()
    return Comparison(a, b, how, tuple(_unlike(a, b, measures)), tuple(left_out), *tables)


def differences(a: Resampled, b: Resampled, paired: bool) -> dict[str, Float64[np.ndarray, "item"]]:
    """Both values, b minus a, and bounds of the difference, which are NaN where one of the two cannot be resampled."""
    draws = min(len(a.values), len(b.values))
    drawn = b.values[1:draws] - np.roll(a.values[1:draws], 0 if paired else 1, axis=0)
    low, high = percentile_interval(drawn, a.usable & b.usable)
    return {"a": a.values[0], "b": b.values[0], "difference": b.values[0] - a.values[0], "low": low, "high": high}


class _Listing:
    """Rows of a table, gathered measure by measure. What a run has no number for is left out."""

    def __init__(self, *keys: str) -> None:
        self._columns: dict[str, list[Any]] = {name: [] for name in ("measure", *keys, *_NUMBERS)}

    def add(self, measure: str, rows: Sequence[Mapping[str, Any]], numbers: Mapping[str, Float64[np.ndarray, "item"]]) -> None:
        for number, row in enumerate(rows):
            values = {name: float(numbers[name][number]) for name in _NUMBERS}
            if not np.isnan(values["difference"]):
                for name, value in {"measure": measure, **row, **values}.items():
                    self._columns[name].append(value)

    def table(self) -> Table:
        return Table.of(self._columns)


def _by_label(champions: Sequence[Champion]) -> dict[tuple[str, str], Champion]:
    """The best heads by kind and label; by label alone where there is one kind, so that an encoder can be set beside a decoder."""
    one_kind = len({one.kind for one in champions}) == 1
    return {("" if one_kind else one.kind, one.label): one for one in champions}


def _layers(layout: HeadLayout) -> list[tuple[str, int]]:
    return [(site.kind, site.layer) for site in layout.sites]


def _by_layer(one: Resampled, layout: HeadLayout, wanted: Sequence[tuple[str, int]]) -> Resampled:
    """The means over the heads of each wanted layer."""
    slices = [layout.slice(_layers(layout).index(place)) for place in wanted]
    values = np.stack([one.values[:, part].mean(1) for part in slices], 1)
    usable, n = (np.array([array[part].min() for part in slices]) for array in (one.usable, one.n))
    return Resampled(one.quantity, values, usable, n)


def _in_common(a: Results, b: Results) -> tuple[list[Measure], list[str]]:
    """The measures of both runs that were taken alike, and what is said of the others."""
    measures: list[Measure] = []
    left_out = []
    for name, options in a.measures.items():
        other = b.measures.get(name)
        if other is None:
            left_out.append(f"{name}: only in the first run")
        elif different := [option for option in options if options[option] != other.get(option)]:
            left_out.append(f"{name}: {different[0]} is {options[different[0]]!r} in one and {other.get(different[0])!r} in the other")
        else:
            measures.append(make(name, options, "recommended"))
    left_out += [f"{name}: only in the second run" for name in b.measures if name not in a.measures]
    if not measures:
        raise RunError("the two runs have no measure in common", "; ".join(left_out))
    return measures, left_out


def _same_draws(a: Results, b: Results) -> bool:
    """Whether both runs gave the same documents the same weights: weights follow from the seed and the document alone."""
    drawn = []
    for results in (a, b):
        identity = results.manifest["identity"]
        drawn.append((identity.get("corpus") or identity.get("documents"), results.manifest["settings"]["seed"]))
    return drawn[0] == drawn[1] and drawn[0][0] is not None


def _unlike(a: Results, b: Results, measures: Sequence[Measure]) -> list[str]:
    """The settings that differ, and the measures whose texts were cut in different ways."""
    found = []
    for name in _SETTINGS:
        values = [results.manifest["settings"].get(name) for results in (a, b)]
        if values[0] != values[1]:
            found.append(f"{name} is {values[0]} in the first run and {values[1]} in the second")
    ways = [_ways(results) for results in (a, b)]
    for measure in measures:
        first, second = (way.get(measure.name, "") for way in ways)
        if first != second:
            found.append(f"{measure.name} read {first} in the first run and {second} in the second")
    return found


def _ways(results: Results) -> dict[str, str]:
    """How the texts of each measure were cut."""
    readings = results.manifest.get("readings", ())
    return {name: f"a {way['unit']} at a time (too long: {way['overlong']})" for way in readings for name in way["measures"]}


def layout_of(results: Results) -> HeadLayout:
    """Where the heads of a run lie on the head axis of its states."""
    sites = results.manifest["sites"]
    return HeadLayout(tuple(Site(site["kind"], site["layer"] - 1, site["heads"], site["kv_heads"], "") for site in sites))


def _shape(layout: HeadLayout) -> list[tuple[str, int, int]]:
    return [(site.kind, site.layer, site.heads) for site in layout.sites]
