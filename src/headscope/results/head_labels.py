"""The types of each head of a run, with the numbers that support them (`head_types` has the declarations)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.core.heads import HeadId, find_head
from headscope.core.maps import WEIGHTS
from headscope.core.suggest import choose_head
from headscope.errors import MeasureError, RunError
from headscope.measures import REGISTRY, Measure, make
from headscope.results.head_evidence import Evidence, evidence, untested
from headscope.results.head_types import NAMES, ORDER, TYPES, HeadType, types_read
from headscope.results.results import Results
from headscope.results.table import Table
from headscope.stats.inference import FEWEST
from headscope.stats.significance import holm

if TYPE_CHECKING:
    from jaxtyping import Bool

LEVEL = 0.05  # of all labels of all heads together, after Holm's correction
COLUMNS = ("kind", "layer", "head", "label", "quantity", "value", "low", "high", "n", "documents", "baseline", "survives")


@dataclass(frozen=True)
class HeadLabel:
    """One label of a head: the number that supports it, and how often it survives resampling of documents."""

    head: HeadId
    type: HeadType
    word: str
    what: str
    quantity: str  # its name in the table of the measure
    value: float
    low: float
    high: float
    n: int
    documents: int
    baseline: float
    survives: float

    @property
    def sentence(self) -> str:
        """What the head does, in the words of the declaration of its type."""
        return self.type.about.format(what=self.what)


@dataclass(frozen=True)
class HeadLabels:
    """The labels of the heads of a model, from one or several runs, the most informative label of each head first."""

    heads: tuple[HeadId, ...]
    labels: tuple[HeadLabel, ...]  # by head, in the order of `heads`
    tested: int
    measured: frozenset[str]  # names of types
    certain: bool  # False if no number has an interval: labels then depend on the values alone
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
        """The labels of each head in pictures, each once."""
        return [tuple(dict.fromkeys(label.word for label in self[head])) for head in self.heads]

    @property
    def sure(self) -> tuple[HeadLabel, ...]:
        """The significant labels."""
        return self.labels if self.certain else ()

    @property
    def rule(self) -> str:
        """What a label means, in one line; or why there are no labels."""
        if self.certain:
            return f"p < {LEVEL} after Holm's correction for {self.tested:,} heads and labels"
        return (
            f"a label needs an interval, which needs {FEWEST} documents or more, and replicates"
            if self.measured
            else "nothing was measured"
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
                raise RunError(f"the model has no head {head}", choose_head(head, self.heads))
        kept = tuple(label for label in self.labels if type in (None, label.type.name) and wanted in (None, label.head))
        return replace(self, heads=self.heads if wanted is None else (wanted,), labels=kept)

    def table(self) -> Table:
        """One row per head and significant label, by head, the most informative label first."""
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
        listed = [f"{', '.join(names)} ({remedy})" for remedy, names in remedies.items()]
        return f"not measured: {'; '.join(listed)}" if listed else ""


def _row(label: HeadLabel) -> dict[str, Any]:
    place = {"kind": label.head.kind, "layer": label.head.layer + 1, "head": label.head.head + 1, "label": label.type.name}
    return {**place, **{name: getattr(label, name) for name in COLUMNS[len(place) :]}}


def head_labels(*runs: Results, types: Sequence[HeadType] = TYPES, measures: Sequence[str] | None = None) -> HeadLabels:
    """The labels of the heads of one model, from its runs. What several runs measured is taken from the first of them.

    A label holds if its value is above its threshold and baseline, with a p below .05 after Holm's correction for all
    heads and labels together. If no number has an interval, for lack of documents or replicates, labels depend on the
    values alone, and `certain` is False. `measures` are those that are read, by default all.
    """
    _check_same_model(runs)
    heads = runs[0].layout.ids()
    sources = list(_sources(runs, measures))
    read = types_read([measure.name for _, measure in sources], types)
    found = [one for run, measure in sources for one in evidence(run, measure, read)]
    p = np.concatenate([np.zeros(0), *(one.p for one in found)])
    certain = bool(np.isfinite(p).any())
    others = sum(untested(run, measure, found) for run, measure in sources if any(type.measure == measure.name for type in read))
    above = np.concatenate([np.zeros(0, dtype=bool), *(one.above for one in found)])
    adjusted = holm(np.concatenate([p, np.ones(others)]))[: len(p)]
    holds = np.nan_to_num(adjusted, nan=1.0) < LEVEL if certain else above
    parts = np.split(holds, np.cumsum([len(one.heads) for one in found]))
    labels = [label for one, kept in zip(found, parts, strict=False) for label in _labels(one, kept, heads)]
    place = {head: number for number, head in enumerate(heads)}
    labels.sort(
        key=lambda label: (place[label.head], ORDER.index(label.type.order), -round(label.value - label.baseline, 6), label.quantity)
    )
    once = {(label.head, label.type, label.what): label for label in reversed(labels)}  # of two directions the better one
    return HeadLabels(
        tuple(heads),
        tuple(label for label in labels if once[label.head, label.type, label.what] is label),
        int(np.isfinite(p).sum()) + others,
        frozenset(type.name for type in read),
        certain,
        " + ".join(run.signature for run in runs),
        tuple(_twice(runs)),
    )


def _labels(one: Evidence, kept: Bool[np.ndarray, "item"], heads: Sequence[HeadId]) -> Iterator[HeadLabel]:
    """The labels of the heads that are kept."""
    low, high = one.scores.bounds()
    for item in np.flatnonzero(kept).tolist():
        yield HeadLabel(
            head=heads[one.heads[item]],
            type=one.type,
            word=one.word,
            what=one.what,
            quantity=one.scores.quantity,
            value=float(one.scores.values[0, item]),
            low=float(low[item]),
            high=float(high[item]),
            n=round(one.scores.n[item]),
            documents=int(one.scores.support.documents[item]),
            baseline=float(one.baseline[0, item]),
            survives=float(one.survives[item]),
        )


def readable_labels(results: Results) -> HeadLabels | None:
    """The labels of a run's heads; None if its states cannot be read."""
    try:
        return results.head_labels
    except RunError:
        results.check()  # it may have been replaced by another run
        return None


def picture_words(results: Results) -> list[tuple[str, ...]]:
    """The labels of each head in pictures; none if the states of the run cannot be read."""
    labels = readable_labels(results)
    return labels.words() if labels is not None else [() for _ in results.layout.ids()]


def _sources(runs: Sequence[Results], measures: Sequence[str] | None) -> Iterator[tuple[Results, Measure]]:
    """The measures that are read, each with the first run that has it."""
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
            yield f"{name}: {len(having)} runs measured it, and {having[0].path or 'the first'} is used"


def _check_same_model(runs: Sequence[Results]) -> None:
    """Raise an error if runs are of different models or maps, whose numbers have nothing in common."""
    first, *others = runs
    for other in others:
        if model_of(first) != model_of(other):
            named = " and ".join(f"{run.path or 'a run'} ({_model_name(run)})" for run in (first, other))
            what = "models" if first.map == other.map else "maps"
            raise RunError(f"{named} are runs of different {what}", "List the heads of each run, or use headscope compare")


def _model_name(results: Results) -> str:
    settings = results.manifest["settings"]
    weights = "" if settings.get("weights", "trained") == "trained" else f", {settings['weights']} weights"
    maps = "" if results.map == WEIGHTS else f", {results.map} maps"
    return f"{settings.get('model', 'given maps')}{weights}{maps}"


def model_of(results: Results) -> tuple[Any, ...]:
    """What distinguishes the heads of a run from others: the content of the model, its weights, the measured maps and
    the measured heads.
    """
    settings, identity = results.manifest["settings"], results.manifest.get("identity", {})
    weights = settings.get("weights", "trained")
    drawn = settings.get("seed") if weights == "random" else None
    return identity.get("model"), weights, drawn, results.map, tuple(results.layout.ids())
