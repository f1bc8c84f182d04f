"""The comparison of runs, number by number, with intervals over documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.comparison.base import Comparison, adjusted, chosen_pairs, corrected, names_of, same_draws, unlike
from headscope.comparison.head_types import type_shares
from headscope.core.heads import HeadLayout
from headscope.errors import MeasureError, RunError
from headscope.measures import REGISTRY, Measure, make
from headscope.measures.base import Champion
from headscope.measures.own import OWN
from headscope.results.results import Results, blame_folder
from headscope.results.table import Table
from headscope.stats.inference import Support, interval
from headscope.stats.resampled import Resampled

if TYPE_CHECKING:
    from jaxtyping import Float64

PAIRED = "paired by document: each replicate draws the same documents for both"
APART = "as two independent samples of documents"
NONE = "none: a run has no replicates"
# Settings other than the model and the corpus that can change numbers.
_SETTINGS = ("preset", "max_length", "segment_ids", "word_rows", "limit", "dtype", "weights", "map")
_KEYS = {
    "overall": ("measure", "kind", "quantity"),
    "best": ("measure", "kind", "label"),
    "types": ("type",),
    "layers": ("measure", "quantity", "kind", "layer"),
    "heads": ("measure", "quantity", "kind", "layer", "head"),
}
TITLES = {
    "overall": "the mean over all heads",
    "best": "the best head of each label",
    "types": "the share of heads of each type, and the heads whose type is significant",
    "layers": "the mean over the heads of a layer",
    "heads": "single heads",
}


@blame_folder
def compare(runs: Sequence[Results], to: int = 1, pairs: bool = False, names: Sequence[str] | None = None) -> Comparison:
    """The common numbers of runs and their differences: each run minus run `to`, counted from 1, or all pairs.

    Runs over the same corpus with the same seed drew the same documents in each replicate. Their differences are taken
    replicate by replicate, so that effects of the documents cancel. Otherwise each replicate is paired with a different
    one.
    """
    chosen = chosen_pairs(len(runs), to, pairs)
    called = tuple(names) if names is not None else names_of(runs)
    measures, left_out = _in_common(runs, called)
    layouts = [run.layout for run in runs]
    same = all(_shape(layout) == _shape(layouts[0]) for layout in layouts)
    shared = [place for place in _layers(layouts[0]) if all(place in _layers(layout) for layout in layouts)]
    kinds = [list[str](layout.by_kind()) for layout in layouts]
    if not same:
        left_out.append("single heads: the runs do not have the same layers and heads")
    if not shared:
        left_out.append("layers: the runs share none")
    paired = [same_draws(runs[first], runs[second]) for first, second in chosen]
    levels = {name: _Level(called, chosen, paired) for name in _KEYS}
    for measure in measures:
        states = [(run.state(measure.name), layout) for run, layout in zip(runs, layouts, strict=True)]
        quantities = [{scores.quantity: scores for scores in measure.resampled(*state)} for state in states]
        champions = [_by_label(list(measure.champions(*state))) for state in states]
        listed = {quantity for run in runs for quantity in run[measure.name]["quantity"]}  # a table omits undefined quantities
        for quantity in (name for name in quantities[0] if name in listed and all(name in of_run for of_run in quantities)):
            each = [of_run[quantity] for of_run in quantities]
            key = {"measure": measure.name, "quantity": quantity}
            if same:
                places = [{"kind": id.kind, "layer": id.layer + 1, "head": id.head + 1} for id in layouts[0].ids()]
                levels["heads"].add([{**key, **place} for place in places], each)
            if f"{measure.name}_layers" in runs[0] and shared:
                means = [_by_layer(scores, layout, shared) for scores, layout in zip(each, layouts, strict=True)]
                levels["layers"].add([{**key, "kind": kind, "layer": layer + 1} for kind, layer in shared], means)
            if not champions[0] and (common := _common_kinds(kinds)):
                means = [_by_kind(scores, layout, kinds) for scores, layout, kinds in zip(each, layouts, common, strict=True)]
                levels["overall"].add([{"measure": measure.name, "kind": kind, "quantity": quantity} for kind in common[0]], means)
        left_out += _champions(levels["best"], measure.name, champions)
    shares = [type_shares(run, measures) for run in runs]
    for name in (name for name in shares[0] if all(name in of_run for of_run in shares)):
        of_type = [of_run[name] for of_run in shares]
        levels["types"].add([{"type": name}], [one.share for one in of_type], [{"heads": one.summary} for one in of_type])
    drawn = all(run.manifest["settings"]["replicates"] for run in runs)
    methods = dict.fromkeys(PAIRED if alike else APART for alike in paired) if drawn else {NONE: None}
    return Comparison(
        tuple(runs),
        called,
        chosen,
        "; or, if corpora or seeds differ, ".join(methods),
        (*unlike(runs, called, _SETTINGS), *_text_differences(runs, called, measures)),
        tuple(left_out),
        _KEYS,
        TITLES,
        {name: Table.from_rows(level.values) for name, level in levels.items() if level.values},
        {name: Table.from_rows(corrected(level.differences)) for name, level in levels.items() if level.differences},
    )


def differences(a: Resampled, b: Resampled, paired: bool) -> dict[str, Float64[np.ndarray, "item"]]:
    """Both values, b minus a, bounds and p of the difference (NaN with too few documents), and documents."""
    draws = min(len(a.values), len(b.values))
    drawn = b.values[1:draws] - np.roll(a.values[1:draws], 0 if paired else 1, axis=0)
    support = a.support.both(b.support) if paired else a.support.apart(b.support, (_variance(a), _variance(b)))
    difference = b.values[0] - a.values[0]
    low, high = interval(difference, drawn, support)
    return {
        **{"a": a.values[0], "b": b.values[0], "difference": difference, "low": low, "high": high},
        "p": adjusted(difference, drawn, support),
        "documents": support.documents,
    }


def _variance(scores: Resampled) -> Float64[np.ndarray, "item"]:
    valid = np.isfinite(scores.values[1:])
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(valid, scores.values[1:], 0).sum(0) / valid.sum(0)
        variance: Float64[np.ndarray, "item"] = (np.where(valid, scores.values[1:] - mean, 0) ** 2).sum(0) / (valid.sum(0) - 1)
    return variance


class _Level:
    """Rows of two tables, gathered measure by measure. Numbers that a run lacks are omitted."""

    def __init__(self, names: Sequence[str], pairs: Sequence[tuple[int, int]], paired: Sequence[bool]) -> None:
        self._names, self._pairs, self._paired = names, pairs, paired
        self.values: list[dict[str, Any]] = []
        self.differences: list[dict[str, Any]] = []

    def add(self, keys: Sequence[Mapping[str, Any]], each: Sequence[Resampled], more: Sequence[Mapping[str, Any]] = ()) -> None:
        """Add the numbers of all runs for some keys; `more` has further columns of each run."""
        bounds = [scores.bounds() for scores in each]
        for number, name in enumerate(self._names):
            for place, key in enumerate(keys):
                numbers = {"value": each[number].values[0, place], "low": bounds[number][0][place], "high": bounds[number][1][place]}
                if not np.isnan(numbers["value"]):
                    extra = more[number] if more else {}
                    row = {
                        **{name: float(value) for name, value in numbers.items()},
                        "documents": int(each[number].support.documents[place]),
                    }
                    self.values.append({**key, "run": name, **extra, **row})
        for (first, second), paired in zip(self._pairs, self._paired, strict=True):
            compared = differences(each[first], each[second], paired)
            both = {
                f"{letter}_{name}": value
                for letter, at in zip("ab", (first, second), strict=True)
                if more
                for name, value in more[at].items()
            }
            for place, key in enumerate(keys):
                values = {name: column[place].item() for name, column in compared.items()}
                if not np.isnan(values["difference"]):
                    self.differences.append({**key, "first": self._names[first], "second": self._names[second], **both, **values})


def _champions(level: _Level, measure: str, champions: Sequence[Mapping[tuple[str, str], Champion]]) -> list[str]:
    """Add the best heads of each label, and return a line on labels that some runs do not list."""
    common = [key for key in champions[0] if all(key in champion for champion in champions)]
    for key in common:
        each = [champion[key] for champion in champions]
        more = [{"heads": champion.heads, "n": int(champion.scores.n[0])} for champion in each]
        row = {"measure": measure, "kind": each[0].kind, "label": each[0].label}
        level.add([row], [champion.scores for champion in each], more)
    alone = sorted({label for champion in champions for _, label in champion} - {label for _, label in common})
    return [f"{measure}: not listed in all runs: {', '.join(alone[:5])}{', ...' if len(alone) > 5 else ''}"] if alone else []


def _by_label(champions: Sequence[Champion]) -> dict[tuple[str, str], Champion]:
    """The best heads by kind and label; only by label if there is one kind, so that kinds can differ between runs."""
    one_kind = len({champion.kind for champion in champions}) == 1
    return {("" if one_kind else champion.kind, champion.label): champion for champion in champions}


def _common_kinds(kinds: Sequence[list[str]]) -> list[list[str]]:
    """For each run, the kinds of attention that are compared: its only one, or those that all runs have."""
    if all(len(of_run) == 1 for of_run in kinds):
        return list(kinds)
    common = [kind for kind in kinds[0] if all(kind in of_run for of_run in kinds)]
    return [common] * len(kinds) if common else []


def _layers(layout: HeadLayout) -> list[tuple[str, int]]:
    return [(site.kind, site.layer) for site in layout.sites]


def _by_layer(scores: Resampled, layout: HeadLayout, wanted: Sequence[tuple[str, int]]) -> Resampled:
    places = _layers(layout)
    heads = np.arange(layout.size)
    return _means(scores, [heads[layout.slice(places.index(place))] for place in wanted])


def _by_kind(scores: Resampled, layout: HeadLayout, wanted: Sequence[str]) -> Resampled:
    heads = {str(kind): of_kind for kind, of_kind in layout.by_kind().items()}
    return _means(scores, [heads[kind] for kind in wanted])


def _means(scores: Resampled, groups: Sequence[Any]) -> Resampled:
    values = np.stack([scores.values[:, group].mean(1) for group in groups], 1)
    documents, effective, n = (
        np.array([array[group].min() for group in groups]) for array in (scores.support.documents, scores.support.effective, scores.n)
    )
    return Resampled(scores.quantity, values, Support(documents, effective), n, scores.make_interval)


def _in_common(runs: Sequence[Results], names: Sequence[str]) -> tuple[list[Measure], list[str]]:
    """The measures that all runs have with the same options, and lines on the others."""
    measures: list[Measure] = []
    left_out = []
    for measure in dict.fromkeys(measure for results in runs for measure in results.measures):
        taken = [results.measures.get(measure) for results in runs]
        if None in taken:
            left_out.append(f"{measure}: only in {', '.join(name for name, known in zip(names, taken, strict=True) if known is not None)}")
            continue
        options = [known or {} for known in taken]
        different = [option for option in options[0] if any(known.get(option) != options[0][option] for known in options)]
        if different:
            values = [known.get(different[0]) for known in options]
            wording = ", ".join(f"{'not set' if value is None else value} in {name}" for name, value in zip(names, values, strict=True))
            left_out.append(f"{measure}: {different[0]} is {wording}")
        elif measure not in REGISTRY and measure not in OWN:
            left_out.append(f"{measure}: a custom measure, whose code is not run without your consent")
        else:
            try:
                measures.append(make(measure, options[0], "recommended"))
            except MeasureError as error:  # a custom measure, which is not imported automatically
                left_out.append(f"{measure}: {error.problem}")
    if not measures:
        raise RunError("the runs have no measure in common", "; ".join(left_out))
    return measures, left_out


def _text_differences(runs: Sequence[Results], names: Sequence[str], measures: Sequence[Measure]) -> list[str]:
    """Lines on the measures whose texts were cut in different ways."""
    ways = [_ways(results) for results in runs]
    lines = []
    for measure in measures:
        described = [way.get(measure.name, "") for way in ways]
        if len(set(described)) > 1:
            lines.append(f"{measure.name} read " + ", ".join(f"{way} in {name}" for way, name in zip(described, names, strict=True)))
    return lines


def _ways(results: Results) -> dict[str, str]:
    readings = results.manifest.get("readings", ())
    return {name: f"a {way['unit']} at a time (too long: {way['overlong']})" for way in readings for name in way["measures"]}


def _shape(layout: HeadLayout) -> list[tuple[str, int, int]]:
    return [(site.kind, site.layer, site.heads) for site in layout.sites]
