"""Our number for a claim, found in the tables of a step."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headscope.errors import RunError
from headscope.replication.recipe import NONE, Where
from headscope.runs.results import Results
from headscope.runs.table import Table


class LackingError(RunError):
    """There is no such row: not of this annotation, not in this model."""


@dataclass(frozen=True)
class Number:
    """A value of ours, its interval, the interval that says whether its direction is sure, what it is compared with, and of how many."""

    value: float
    low: float = math.nan
    high: float = math.nan
    sure_low: float = math.nan
    sure_high: float = math.nan
    baseline: float = math.nan
    n: int | None = None
    named: str = ""
    p: float = math.nan


def find(results: Results, where: Where) -> Number:
    """The number that is there, or an error that says what is missing."""
    rows = _rows(results, where)
    if where.more_than is not None:
        counted = sum(row[where.column] > where.more_than for row in rows)
        return Number(counted / len(rows) if where.take == "share" else float(counted), n=len(rows))
    known = [row for row in rows if not _missing(row[where.column])]
    if not known:
        raise LackingError(f"{where.table} has no value of {where.column} there")
    if where.take == "one" and len(known) > 1:
        raise RunError(f"{len(known)} rows of {where.table} fit", "Name more columns in rows, or take the least or the most of them")
    chosen = known[0] if where.take == "one" else (max if where.take == "most" else min)(known, key=lambda row: row[where.column])
    return _number(chosen, where)


def curve(results: Results, where: Where) -> list[float]:
    """The values of all layers, from the first to the last."""
    rows = sorted((row for row in _rows(results, where) if row["layer"] is not None), key=lambda row: row["layer"])
    if len({row["layer"] for row in rows}) < len(rows):
        raise RunError(f"several rows of {where.table} are of one layer", "Name more columns in rows")
    return [math.nan if row[where.column] is None else row[where.column] for row in rows]


def by_head(results: Results, where: Where) -> dict[tuple[Any, ...], float]:
    """The values of all heads."""
    return {(row["kind"], row["layer"], row["head"]): row[where.column] for row in _rows(results, where)}


def _rows(results: Results, where: Where) -> list[dict[str, Any]]:
    if where.table not in results:
        raise RunError(f"{where.step} has no table {where.table!r}", f"It has {', '.join(results)}")
    table = results[where.table]
    _require(table, where)
    rows = [row for row in table if _fits(row, where.rows)]
    for column, names in where.any_of.items():
        present = {row[column] for row in rows}
        first = next((name for name in names if name in present), None)
        rows = [row for row in rows if row[column] == first] if first is not None else []
    if where.depth is not None:
        first_layer, last_layer, of = where.depth
        depth = max((site["layer"] for site in results.manifest["sites"]), default=of)
        rows = [row for row in rows if (first_layer - 1) / of < (row["layer"] or 0) / depth <= last_layer / of]
    if not rows:
        asked = ", ".join(f"{name} {_said(value)}" for name, value in {**where.rows, **where.any_of}.items())
        raise LackingError(f"there is no {asked or 'such row'} in {where.table}")
    return rows


def _require(table: Table, where: Where) -> None:
    """An error for a column that there is not."""
    asked = [where.column, *where.rows, *where.any_of, *(where.interval or ()), *(where.surely or ())]
    asked += [name for name in (where.baseline, where.named, where.p) if name is not None]
    asked += [where.n] if where.n != NONE and where.more_than is None else []
    asked += ["layer"] if where.depth is not None else []
    for name in asked:
        if name not in table.columns:
            raise RunError(f"{where.table} has no column {name!r}", f"It has {', '.join(table.columns)}")


def _fits(row: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    for column, value in wanted.items():
        options = value if isinstance(value, list) else [value]
        if row[column] not in [None if option == NONE else option for option in options]:
            return False
    return True


def _said(value: object) -> str:
    return " or ".join(map(str, value)) if isinstance(value, list) else str(value)


def _missing(value: object) -> bool:
    return value is None or (isinstance(value, float) and math.isnan(value))


def _number(row: Mapping[str, Any], where: Where) -> Number:
    def cell(name: str | None) -> float:
        return math.nan if name is None or _missing(row[name]) else float(row[name]) * where.scale

    low, high = (cell(name) for name in where.interval or (None, None))
    sure_low, sure_high = (cell(name) for name in where.surely) if where.surely is not None else (low, high)
    n = cell(where.n) / where.scale if where.n != NONE else math.nan
    p = cell(where.p) / where.scale
    named = str(row[where.named]) if where.named is not None else ""
    return Number(cell(where.column), low, high, sure_low, sure_high, cell(where.baseline), None if math.isnan(n) else round(n), named, p)
