"""The comparison of studies of one kind: their tables joined by key, and the differences of their numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.comparison.base import Comparison, chosen_pairs, corrected, names_of, unlike
from headscope.comparison.runs import APART, PAIRED, compare, differences
from headscope.errors import RunError
from headscope.results.results import Results
from headscope.results.table import Table
from headscope.studies.base import BOUNDS, ComparedTable
from headscope.studies.registry import REGISTRY

if TYPE_CHECKING:
    from headscope.studies.replicates import Replicated, ReplicatedTables

ALONE = "for each study alone, not for differences: a difference is marked (*) only if two such intervals do not overlap"
_SETTINGS = ("preset", "score", "norm", "max_length", "limit", "dtype", "weights", "unit", "seeds", "words", "rank", "how")
_CLAIMS = ComparedTable("claims", ("id",), {"value": BOUNDS}, "our number for each claim of the paper")  # of a replication


def compare_studies(studies: Sequence[Results], to: int = 1, pairs: bool = False) -> Comparison:
    """The common numbers of studies of one kind, and their differences.

    If studies keep values per document, differences are resampled by document and have intervals; else intervals are
    those of each study, and a difference is marked if they do not overlap.
    """
    chosen = chosen_pairs(len(studies), to, pairs)
    kinds = dict.fromkeys(study.study or "run" for study in studies)
    if len(kinds) > 1:
        raise RunError(
            f"the results are of different kinds: {', '.join(kinds)}", "Compare runs with runs, and studies with studies of the same kind"
        )
    names = names_of(studies)
    kind = next(iter(kinds))
    known = {compared.table: compared for compared in ((_CLAIMS,) if kind == "replication" else REGISTRY[kind].compared)}
    drawn = [replicates_of(study) for study in studies]
    compared: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {}
    left_out = []
    scores = {study.manifest["settings"].get("score") for study in studies}
    for name, joined in known.items():
        if len(scores) > 1 and "difference" in joined.numbers:
            left_out.append(f"{name}: the scores differ: {' and '.join(sorted(map(str, scores)))}")
            continue
        there = [called for called, study in zip(names, studies, strict=True) if name in study and len(study[name])]
        if len(there) == len(studies):
            cells = [_cells(study, name, joined) for study in studies]
            compared[name], alone = _rows(cells, _keys(joined), names, chosen, [tables.get(name, {}) for tables in drawn])
            left_out += [f"{name}: {alone} rows are not in all studies"] if alone else []
        elif there:
            left_out.append(f"{name}: only in {', '.join(there)}")
    compared = {name: both for name, both in compared.items() if both[1]}
    if not compared:
        raise RunError("the studies have no number in common", "; ".join(left_out))
    tested = any(not np.isnan(row["p"]) for _, rows in compared.values() for row in rows)
    untested = any(row["apart"] is not None for _, rows in compared.values() for row in rows)
    paired = any(mine is not None and mine.paired_with(theirs) for mine, theirs in _drawn_pairs(drawn, chosen))
    methods = [*([PAIRED if paired else APART] if tested else []), *([ALONE] if untested else [])]
    return Comparison(
        tuple(studies),
        names,
        chosen,
        "; or, if a study keeps no values per document, ".join(methods) or "none",
        tuple(unlike(studies, names, _SETTINGS)),
        tuple(left_out),
        {name: _keys(known[name]) for name in compared},
        {name: known[name].title for name in compared},
        {name: Table.from_rows(values) for name, (values, _) in compared.items()},
        {name: Table.from_rows(corrected(rows)) for name, (_, rows) in compared.items()},
    )


def replicates_of(results: Results) -> ReplicatedTables:
    """Numbers with their replicates by table and key; empty for studies that keep no replicates."""
    if results.study is None or results.study not in REGISTRY or not results.manifest["settings"].get("replicates"):
        return {}
    return REGISTRY[results.study].replicates(results)


def _keys(joined: ComparedTable) -> tuple[str, ...]:
    return joined.keys if len(joined.numbers) == 1 else (*joined.keys, "quantity")


def _cells(results: Results, name: str, joined: ComparedTable) -> dict[tuple[Any, ...], dict[str, float]]:
    """The numbers of a table by key. Names of heads are removed from keys."""
    cells: dict[tuple[Any, ...], dict[str, float]] = {}
    for row in results[name]:
        of = tuple(row[key].partition(":")[0] if key == "what" else row[key] for key in joined.keys)
        for number, bounds in joined.numbers.items():
            value = row[number]
            if value is None or np.isnan(value):
                continue
            low, high = (row[bound] for bound in bounds) if bounds is not None else (None, None)
            key = of if len(joined.numbers) == 1 else (*of, number)
            cells.setdefault(key, {"value": float(value), "low": _or_nan(low), "high": _or_nan(high)})
    return cells


def _or_nan(value: float | None) -> float:
    return np.nan if value is None else float(value)


def _rows(
    cells: Sequence[Mapping[tuple[Any, ...], Mapping[str, float]]],
    keys: Sequence[str],
    names: Sequence[str],
    pairs: Sequence[tuple[int, int]],
    drawn: Sequence[Mapping[tuple[Any, ...], Replicated]],
) -> tuple[tuple[list[dict[str, Any]], list[dict[str, Any]]], int]:
    """Rows of numbers and rows of differences, and how many keys not all studies have."""
    common = [key for key in cells[0] if all(key in of_study for of_study in cells)]
    values, rows = [], []
    for key in common:
        of = dict(zip(keys, key, strict=True))
        values += [{**of, "run": name, **of_study[key]} for name, of_study in zip(names, cells, strict=True)]
        for first, second in pairs:
            a, b = cells[first][key], cells[second][key]
            row = {**of, "first": names[first], "second": names[second], "a": a["value"], "b": b["value"]}
            row |= {"difference": b["value"] - a["value"], "low": np.nan, "high": np.nan, "p": np.nan, "apart": None}
            if key in drawn[first] and key in drawn[second]:
                mine, theirs = drawn[first][key], drawn[second][key]
                of_pair = differences(mine.numbers, theirs.numbers, mine.paired_with(theirs))
                row |= {name: float(of_pair[name][0]) for name in ("low", "high", "p")}
            elif not np.isnan(a["low"]) and not np.isnan(b["low"]):
                row["apart"] = a["high"] < b["low"] or b["high"] < a["low"]
            rows.append(row)
    return (values, rows), len({key for of_study in cells for key in of_study}) - len(common)


def _drawn_pairs(
    drawn: Sequence[Mapping[str, Mapping[tuple[Any, ...], Replicated]]], pairs: Sequence[tuple[int, int]]
) -> list[tuple[Replicated, Replicated]]:
    """For each pair and table, one number of which both studies have replicates."""
    paired = []
    for first, second in pairs:
        for name, by_key in drawn[first].items():
            paired += [(mine, drawn[second][name][key]) for key, mine in by_key.items() if key in drawn[second].get(name, {})][:1]
    return paired


def compare_any(items: Sequence[Results | Path], to: int = 1, pairs: bool = False) -> Comparison:
    """The common numbers of runs or studies, and their differences: each minus run `to`, or all pairs."""
    results = [result if isinstance(result, Results) else Results.open(result) for result in items]
    kinds = dict.fromkeys(result.study for result in results)
    if None in kinds and len(kinds) > 1:
        raise RunError("both runs and studies were named", "Compare runs with runs, and studies with studies of the same kind")
    return compare(results, to, pairs) if None in kinds else compare_studies(results, to, pairs)
