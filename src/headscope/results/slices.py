"""The tables of a run's slices: those of every measure, made for the documents of each value of a column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.core.heads import HeadLayout
from headscope.core.state import State, States
from headscope.errors import RunError
from headscope.measures import Measure
from headscope.measures.base import Columns
from headscope.results.table import Table

if TYPE_CHECKING:
    from headscope.results.results import Results

SUFFIX = ".slices"  # of the name under which the table of all slices is written
_NONE = "the run has no slices"
_REMEDY = "Run again with --by and a column of the documents, as in --by genre"


def complete_slices(
    manifest: Mapping[str, Any], measures: Sequence[Measure], states: States, layout: HeadLayout
) -> tuple[dict[str, Any], dict[str, Columns]]:
    """The entry of a manifest for its slices, and their tables: those of each measure, with the slice in the first
    column.

    A slice without texts for a measure gets an empty state, and rows with n 0. A measure whose state is not divided has
    no tables of slices.
    """
    said = manifest["slices"]
    settings, values = manifest["settings"], list(said["values"])
    divided = [measure for measure in measures if states[measure.name].parts]
    by_slice: dict[str, list[Columns]] = {}
    for measure in divided:
        state = states[measure.name]
        for value in values:
            if value not in state.parts:
                state.parts[value] = measure.start(layout, settings["replicates"], settings["seed"]).pack()
            for name, columns in measure.tables(state.part(value), layout).items():
                by_slice.setdefault(name, []).append(columns)
    by = said["by"]
    column = f"document_{by}" if any(by in columns for tables in by_slice.values() for columns in tables) else by
    tables: dict[str, Columns] = {name: _stacked(column, values, each) for name, each in by_slice.items()}
    undivided = [measure.name for measure in measures if measure not in divided]
    return {**said, "column": column, "tables": list(tables), "undivided": undivided}, tables


def _stacked(column: str, values: Sequence[str], each: Sequence[Columns]) -> dict[str, Any]:
    """The tables of slices, stacked; the types of columns are those of the tables that have rows."""
    sizes = [len(next(iter(columns.values()))) for columns in each]
    filled = [columns for columns, size in zip(each, sizes, strict=True) if size] or each[:1]
    names = np.repeat(np.array(values, dtype=object), sizes)
    return {column: names, **{name: np.concatenate([np.asarray(columns[name]) for columns in filled]) for name in each[0]}}


def named_slice(results: Results, choice: Mapping[str, object]) -> str:
    """The slice that `genre="news"` names; an error that lists the slices if there is no such slice."""
    said = results.manifest.get("slices")
    if said is None:
        raise RunError(_NONE, _REMEDY)
    if [*choice] != [said["by"]]:
        named = ", ".join(choice) or "nothing"
        raise RunError(f"the slices of the run are by {said['by']}, not by {named}", f"Name one of {_spelled(said)}")
    value = str(choice[said["by"]])
    if value not in said["values"]:
        raise RunError(f"the run has no slice {said['by']}={value}", f"It has {_spelled(said)}")
    return value


def _spelled(said: Mapping[str, Any]) -> str:
    return ", ".join(f"{said['by']}={value}" for value in said["values"])


def slices_line(results: Results) -> str | None:
    """`slices by genre: news (12 documents), ...`; None for a run without slices."""
    if (said := results.manifest.get("slices")) is None:
        return None
    each = (f"{name} ({counted['documents']:,} document{'s' * (counted['documents'] != 1)})" for name, counted in said["values"].items())
    return f"slices by {said['by']}: {', '.join(each)}"


def manifest_of(manifest: Mapping[str, Any], value: str) -> dict[str, Any]:
    """The manifest of one slice, with its counts and a corpus that differs from that of the other slices."""
    said = manifest["slices"]
    mark = f"{said['by']}={value}"
    identity = {**manifest["identity"], "corpus": f"{manifest['identity'].get('corpus')}|{mark}"}
    kept = {name: content for name, content in manifest.items() if name not in ("slices", "readings", "gallery", "files")}
    return {
        **kept,
        "signature": f"{manifest['signature']}|{mark}",
        "identity": identity,
        "slice": mark,
        "counts": dict(said["values"][value]),
        "measures": {name: options for name, options in manifest["measures"].items() if name not in said["undivided"]},
        "tables": list(said["tables"]),
    }


class SliceTables(Mapping[str, Table]):
    """The tables of one slice, with the columns that the tables of all documents have."""

    def __init__(self, results: Results, value: str) -> None:
        self._results, self._value = results, value
        self._column = results.manifest["slices"]["column"]

    def __getitem__(self, name: str) -> Table:
        return self._results.by_slice(name).where(**{self._column: self._value}).without(self._column)

    def __contains__(self, name: object) -> bool:
        return name in self._results.manifest["slices"]["tables"]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results.manifest["slices"]["tables"])

    def __len__(self) -> int:
        return len(self._results.manifest["slices"]["tables"])


class SliceStates(Mapping[str, State]):
    """The states of one slice, read on demand."""

    def __init__(self, results: Results, value: str) -> None:
        self._results, self._value = results, value

    def __getitem__(self, measure: str) -> State:
        return self._results.state(measure).part(self._value)

    def __iter__(self) -> Iterator[str]:
        return iter(self._results.measures)

    def __len__(self) -> int:
        return len(self._results.measures)
