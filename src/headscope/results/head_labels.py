"""Which types each head of a run is of, with the numbers that say so (`head_types` has the declarations)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.core.heads import HeadId, find_head
from headscope.errors import MeasureError, RunError
from headscope.measures import REGISTRY, Measure, make
from headscope.measures.relations import Relations
from headscope.measures.resolver import Resolver
from headscope.results.head_types import NAMES, ORDER, TYPES, HeadType, types_read
from headscope.results.held_out import held_out
from headscope.results.results import Results
from headscope.results.skills import is_opening
from headscope.results.table import Table
from headscope.stats.inference import FEWEST, p_value
from headscope.stats.resampled import Resampled
from headscope.stats.significance import holm

if TYPE_CHECKING:
    from jaxtyping import Bool, Float64, Int64

LEVEL = 0.05  # of all labels of all heads together, after Holm's correction
COLUMNS = ("kind", "layer", "head", "label", "quantity", "value", "low", "high", "n", "documents", "baseline", "survives")


@dataclass(frozen=True)
class Evidence:
    """What a run says of some heads and one quantity of a type, on the data and in every replicate."""

    type: HeadType
    word: str  # what pictures call such a head
    what: str  # what the quantity is of, beside its type: a relation, a token; "" where the type says it
    heads: Int64[np.ndarray, "item"]  # on the head axis
    scores: Resampled
    baseline: Float64[np.ndarray, "replicate+1 item"]

    @cached_property
    def excess(self) -> Float64[np.ndarray, "replicate+1 item"]:
        """By how much values are above what their intervals must exceed."""
        excess: Float64[np.ndarray, "replicate+1 item"] = self.scores.values - self.type.bar(self.baseline)
        return excess

    @property
    def above(self) -> Bool[np.ndarray, "item"]:
        """Whether the value itself is far enough above, whatever its interval."""
        above: Bool[np.ndarray, "item"] = self.excess[0] > self.type.margin
        return above

    @cached_property
    def p(self) -> Float64[np.ndarray, "item"]:
        """The two-sided p of the excess, 1 where it is too small: below .05 where the 95 % interval is above 0."""
        p = p_value(self.excess[0], self.excess[1:], self.scores.support)
        return np.where(np.isfinite(p) & ~self.above, 1.0, p)

    @property
    def survives(self) -> Float64[np.ndarray, "item"]:
        """The share of the replicates in which the value is far enough above."""
        drawn = np.isfinite(self.excess[1:])
        with np.errstate(invalid="ignore", divide="ignore"):
            share: Float64[np.ndarray, "item"] = (drawn & (self.excess[1:] > self.type.margin)).sum(0) / drawn.sum(0)
        return share


@dataclass(frozen=True)
class HeadLabel:
    """One label of a head: the number that gives it, and how often it survives resampling of documents."""

    head: HeadId
    type: HeadType
    word: str
    what: str
    quantity: str  # as the table of the measure names it
    value: float
    low: float
    high: float
    n: int
    documents: int
    baseline: float
    survives: float

    @property
    def sentence(self) -> str:
        """What the head does, as the declaration of its type has it."""
        return self.type.about.format(what=self.what)


@dataclass(frozen=True)
class HeadLabels:
    """The labels of the heads of a model, by one or several runs, each head's most telling first."""

    heads: tuple[HeadId, ...]
    labels: tuple[HeadLabel, ...]  # by head, in the order of `heads`
    tested: int
    measured: frozenset[str]  # names of types
    certain: bool  # False where no number has an interval: labels are then those of the values alone
    signature: str
    notes: tuple[str, ...] = ()  # on what several runs measured

    def __getitem__(self, head: HeadId) -> list[HeadLabel]:
        return self._by_head.get(head, [])

    @cached_property
    def _by_head(self) -> dict[HeadId, list[HeadLabel]]:
        by_head: dict[HeadId, list[HeadLabel]] = {}
        for label in self.labels:
            by_head.setdefault(label.head, []).append(label)
        return by_head

    def words(self) -> list[tuple[str, ...]]:
        """All labels of each head as pictures write them, each once."""
        return [tuple(dict.fromkeys(label.word for label in self[head])) for head in self.heads]

    @property
    def sure(self) -> tuple[HeadLabel, ...]:
        """The labels that hold with an interval."""
        return self.labels if self.certain else ()

    @property
    def rule(self) -> str:
        """What a label means, in a line; or why there is none."""
        if self.certain:
            return f"p < {LEVEL} after Holm's correction for {self.tested:,} heads and labels"
        return (
            f"a label needs an interval, and that {FEWEST} documents or more, and replicates" if self.measured else "nothing was measured"
        )

    def where(self, type: str | None = None, head: str | None = None) -> HeadLabels:
        """The labels of one type, or of one head, by its name."""
        wanted = None
        if head is not None:
            try:
                wanted = find_head(head, self.heads)
            except ValueError as error:
                raise RunError(str(error)) from None
            if wanted is None:
                raise RunError(f"the model has no head {head}", f"It has {self.heads[0]} to {self.heads[-1]}")
        kept = tuple(label for label in self.labels if type in (None, label.type.name) and wanted in (None, label.head))
        return replace(self, heads=self.heads if wanted is None else (wanted,), labels=kept)

    def table(self) -> Table:
        """One row per head and label that holds with an interval, those of a head together, its most telling first."""
        rows = [_row(label) for label in self.sure]
        types: dict[str, Any] = {"kind": str, "label": str, "quantity": str, "layer": int, "head": int, "n": int, "documents": int}
        columns = {name: np.array([row[name] for row in rows], dtype=types.get(name, float)) for name in COLUMNS}
        return Table.of(columns, {"signature": self.signature})

    def of_type(self, name: str) -> list[HeadId]:
        """The heads of a type, in the order of the model."""
        return list(dict.fromkeys(label.head for label in self.sure if label.type.name == name))

    @property
    def unmeasured(self) -> str:
        """One line on the types that were not measured, and what to run; "" if all were."""
        remedies: dict[str, list[str]] = {}
        for name in NAMES:
            types = [type for type in TYPES if type.name == name and type.measure in REGISTRY]
            if types and name not in self.measured:
                remedies.setdefault(types[0].remedy, []).append(name)
        told = [f"{', '.join(names)} ({remedy})" for remedy, names in remedies.items()]
        return f"not measured: {'; '.join(told)}" if told else ""


def _row(label: HeadLabel) -> dict[str, Any]:
    place = {"kind": label.head.kind, "layer": label.head.layer + 1, "head": label.head.head + 1, "label": label.type.name}
    return {**place, **{name: getattr(label, name) for name in COLUMNS[len(place) :]}}


def head_labels(*runs: Results, types: Sequence[HeadType] = TYPES, measures: Sequence[str] | None = None) -> HeadLabels:
    """The labels of the heads of one model, by its runs. What several runs measured is taken from the first of them.

    A label holds if its value is above its threshold and baseline, with a p below .05 after Holm's correction for all
    heads and labels together. Where no number has an interval, for want of documents or replicates, labels are those
    of the values alone, and `certain` is False. `measures` are those that are read, by default all.
    """
    _check_same_model(runs)
    layout = runs[0].layout
    sources = list(_sources(runs, measures))
    read = types_read([measure.name for _, measure in sources], types)
    found = [one for run, measure in sources for one in evidence(run, measure, read)]
    heads = layout.ids()
    p = np.concatenate([one.p for one in found]) if found else np.zeros(0)
    certain = bool(np.isfinite(p).any())
    holds = (
        np.nan_to_num(holm(p), nan=1.0) < LEVEL if certain else np.concatenate([one.above for one in found] or [np.zeros(0, dtype=bool)])
    )
    labels: list[tuple[float, HeadLabel]] = []
    for one, kept in zip(found, np.split(holds, np.cumsum([len(one.heads) for one in found])[:-1]), strict=True) if found else ():
        low, high = one.scores.bounds()
        for item in np.flatnonzero(kept):
            value, baseline = float(one.scores.values[0, item]), float(one.baseline[0, item])
            label = HeadLabel(
                heads[one.heads[item]],
                one.type,
                one.word,
                one.what,
                one.scores.quantity,
                value,
                float(low[item]),
                float(high[item]),
                round(one.scores.n[item]),
                int(one.scores.support.documents[item]),
                baseline,
                float(one.survives[item]),
            )
            labels.append((value - baseline, label))
    place = {head: number for number, head in enumerate(heads)}
    labels.sort(key=lambda item: (place[item[1].head], ORDER.index(item[1].type.order), -round(item[0], 6), item[1].quantity))
    once = {(label.head, label.type.name, label.word): label for _, label in reversed(labels)}  # of two directions the better one
    return HeadLabels(
        tuple(heads),
        tuple(label for _, label in labels if once[label.head, label.type.name, label.word] is label),
        int(np.isfinite(p).sum()),
        frozenset(type.name for type in read),
        certain,
        " + ".join(run.signature for run in runs),
        tuple(_twice(runs)),
    )


def evidence(results: Results, measure: Measure, types: Sequence[HeadType]) -> Iterator[Evidence]:
    """What a measure of a run says of those types that read it. Heads without a case are left out."""
    state, layout, ids = results.state(measure.name), results.layout, results.layout.ids()
    for type in (type for type in types if type.measure == measure.name):
        if not type.words and isinstance(measure, Relations | Resolver):
            for one in held_out(measure.contests, state, layout, type.margin):
                yield Evidence(type, one.label if type.name == "syntactic" else type.measure, one.label, one.heads, one.scores, one.rule)
            continue
        known = {scores.quantity: scores for scores in measure.resampled(state, layout)}
        for quantity, word in type.words.items():
            if quantity not in known or is_opening(results[measure.name], quantity):
                continue
            scores = known[quantity]
            heads = np.array([at for at, head in enumerate(ids) if head.kind in type.kinds and scores.n[at] > 0], dtype=np.int64)
            baseline = np.zeros_like(scores.values) if scores.baseline is None else scores.baseline
            if type.control and (control := known.get(f"{quantity}{type.control}")) is not None:
                baseline = np.fmax(baseline, control.values)
            of_heads = Resampled(quantity, scores.values[:, heads], scores.support[heads], scores.n[heads], scores.make_interval)
            yield Evidence(type, word, "" if word == type.name else word, heads, of_heads, baseline[:, heads])


def readable_labels(results: Results) -> HeadLabels | None:
    """The labels of a run's heads; None where its states cannot be read."""
    try:
        return results.head_labels
    except RunError:
        results.check()  # it may have been replaced by another run
        return None


def picture_words(results: Results) -> list[tuple[str, ...]]:
    """All labels of each head as pictures write them; none where the states of the run cannot be read."""
    labels = readable_labels(results)
    return labels.words() if labels is not None else [() for _ in results.layout.ids()]


def _sources(runs: Sequence[Results], measures: Sequence[str] | None) -> Iterator[tuple[Results, Measure]]:
    """Each measure that is read, with the first run that has it."""
    seen: set[str] = set()
    for run in runs:
        for name, options in run.measures.items():
            if name in REGISTRY and name not in seen and (measures is None or name in measures):
                seen.add(name)
                try:
                    yield run, make(name, options)
                except MeasureError:  # of a version that took other options
                    continue


def _twice(runs: Sequence[Results]) -> Iterator[str]:
    """A line for each measure that several runs have."""
    for name in dict.fromkeys(name for run in runs for name in run.measures if any(type.measure == name for type in TYPES)):
        having = [run for run in runs if name in run.measures]
        if len(having) > 1:
            yield f"{name}: of {len(having)} runs that measured it, {having[0].path or 'the first'} is read"


def _check_same_model(runs: Sequence[Results]) -> None:
    """An error if runs are of different models: their heads have nothing in common."""
    first, *others = runs
    for other in others:
        if model_of(first) != model_of(other):
            told = " and ".join(f"{run.path or 'a run'} ({_model_name(run)})" for run in (first, other))
            raise RunError(f"{told} are runs of different models", "Ask for the heads of each, or use headscope compare")


def _model_name(results: Results) -> str:
    settings = results.manifest["settings"]
    weights = "" if settings.get("weights", "trained") == "trained" else f", {settings['weights']} weights"
    return f"{settings.get('model', 'given maps')}{weights}"


def model_of(results: Results) -> tuple[Any, ...]:
    """What tells a run's model from others: its content, its weights, and the heads that were measured."""
    settings, identity = results.manifest["settings"], results.manifest.get("identity", {})
    weights = settings.get("weights", "trained")
    drawn = settings.get("seed") if weights == "random" else None
    return identity.get("model"), weights, drawn, tuple(results.layout.ids())
