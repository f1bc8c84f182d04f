"""Our number for a claim, from the tables of a step, with its interval or test."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.core.suggest import choose_from
from headscope.errors import RunError
from headscope.replication.recipe import NONE, Where
from headscope.results.results import Results
from headscope.results.table import Table
from headscope.stats.inference import FEWEST, reason

if TYPE_CHECKING:
    from jaxtyping import Float64

LEVEL = 0.05
PERMUTATIONS = 2000
Bounds = tuple[float, float]


def widened(value: float, bounds: Bounds, several: int = 1, documents: int | None = None) -> Bounds:
    """A 95 % interval at the level that holds for the best, or for all, of several numbers at once (Bonferroni).

    The tails are those of Student's t if the number of documents is known, else those of the normal distribution.
    """
    if several <= 1:
        return bounds
    low, high = bounds
    more = _quantile(1 - LEVEL / 2 / several, documents) / _quantile(1 - LEVEL / 2, documents) - 1
    return low - max(value - low, 0.0) * more, high + max(high - value, 0.0) * more


def difference(first: float, first_bounds: Bounds, other: float, other_bounds: Bounds) -> Bounds:
    """The interval of `other` minus `first`, from the interval of each (the MOVER of Zou and Donner 2008).

    It is exact for independent normal numbers, and wider than necessary for positively correlated numbers of the same
    documents.
    """
    gap = other - first
    down = math.hypot(other - other_bounds[0], first_bounds[1] - first)
    up = math.hypot(other_bounds[1] - other, first - first_bounds[0])
    return gap - down, gap + up


def within_layers(
    first: Sequence[float], other: Sequence[float], layers: Sequence[object], permutations: int = PERMUTATIONS, seed: int = 0
) -> float:
    """The two-sided p of a correlation over heads: heads are permuted within their layers, after the mean of
    each layer is subtracted.

    What all heads of a layer share is removed, because neighbouring layers are similar for other reasons. NaN if no
    layer has two heads that differ.
    """
    number = {layer: place for place, layer in enumerate(dict.fromkeys(layers))}
    of = np.array([number[layer] for layer in layers])
    x, y = (_centred(np.asarray(values, dtype=np.float64), of) for values in (first, other))
    if not (x.any() and y.any()):
        return math.nan
    generator = np.random.default_rng(seed)
    drawn = np.argsort(of + generator.random((permutations, len(of))), axis=1)  # layer by layer, shuffled within each
    sums = np.abs(y[drawn] @ x[np.argsort(of, kind="stable")])
    hits = int((sums >= abs(float(x @ y)) * (1 - 1e-9)).sum())  # equal sums may have been added up in another order
    return (hits + 1) / (permutations + 1)


def _centred(values: Float64[np.ndarray, "head"], of: np.ndarray) -> Float64[np.ndarray, "head"]:
    centred: Float64[np.ndarray, "head"] = values - (np.bincount(of, values) / np.bincount(of))[of]
    return np.where(np.abs(centred) < 1e-12 * np.abs(values).max(initial=0.0), 0.0, centred)


def _quantile(share: float, documents: int | None) -> float:
    from scipy.special import ndtri, stdtrit

    return float(ndtri(share) if documents is None or documents < 2 else stdtrit(documents - 1, share))


class LackingError(RunError):
    """An error for a row that does not exist for this annotation or in this model."""


@dataclass(frozen=True)
class Number:
    """Our value, its interval, its baseline, and its n.

    `sure_low` and `sure_high` are the interval that decides on a direction: that of the difference from the baseline,
    if there is one, and widened if the row is the best of several. `untested` says why there is no decision. `tested`
    is the test that decides, if it is not of the value itself.
    """

    value: float
    low: float = math.nan
    high: float = math.nan
    sure_low: float = math.nan
    sure_high: float = math.nan
    baseline: float = math.nan
    n: int | None = None
    named: str = ""
    p: float = math.nan
    documents: int | None = None
    untested: str = ""
    tested: str = ""


def find(results: Results, where: Where) -> Number:
    """The number at a place, or an error that says what is missing."""
    rows = _rows(results, where)
    known = [row for row in rows if not _missing(row[where.column])]
    if not known:
        raise LackingError(f"{where.table} has no value of {where.column} in this row")
    if where.more_than is not None:
        return _counted(known, where)
    if where.take == "one" and len(known) > 1:
        raise RunError(f"{len(known)} rows of {where.table} fit", "Name more columns in rows, or take the smallest or the largest of them")
    if where.take == "one":
        chosen, several = known[0], 1
    else:
        chosen, several = (max if where.take == "most" else min)(known, key=lambda row: row[where.column]), len(known)
    if where.chosen_from is not None:
        several = sum(row["label"] == chosen["label"] for row in _table(results, where.chosen_from, where))
    return _number(chosen, _tested(results, where, chosen), where, several)


def curve(results: Results, where: Where) -> list[float]:
    """The values of all layers, from the first to the last."""
    rows = sorted((row for row in _rows(results, where) if row["layer"] is not None), key=lambda row: row["layer"])
    if len({row["layer"] for row in rows}) < len(rows):
        raise RunError(f"several rows of {where.table} have the same layer", "Name more columns in rows")
    return [math.nan if row[where.column] is None else row[where.column] for row in rows]


def by_head(results: Results, where: Where) -> dict[tuple[Any, ...], float]:
    """The values of all heads."""
    rows = (row for row in _rows(results, where) if not _missing(row[where.column]))
    return {(row["kind"], row["layer"], row["head"]): row[where.column] for row in rows}


def _rows(results: Results, where: Where) -> list[dict[str, Any]]:
    table = _table(results, where.table, where)
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


def _table(results: Results, name: str, where: Where) -> Table:
    if name not in results:
        raise RunError(f"{where.step} has no table {name!r}", choose_from(name, results, "It has"))
    return results[name]


def _tested(results: Results, where: Where, chosen: dict[str, Any]) -> dict[str, Any]:
    """The row with the interval, the p and the n of the number."""
    if not where.test_rows:
        return chosen
    rows = [row for row in results[where.table] if _fits(row, {**where.rows, **where.test_rows})]
    if len(rows) != 1:
        raise RunError(f"{len(rows)} rows of {where.table} fit test_rows", "Name the columns that distinguish its row from others")
    return rows[0]


def _require(table: Table, where: Where) -> None:
    """Raise an error for a column that the table lacks."""
    asked = [where.column, *where.rows, *where.test_rows, *where.any_of, *(where.interval or ()), *(where.difference_interval or ())]
    asked += [name for name in (where.baseline, where.named, where.p) if name is not None]
    asked += [where.n] if where.n != NONE and where.more_than is None else []
    asked += ["layer"] if where.depth is not None else []
    for name in asked:
        if name not in table.columns:
            raise RunError(f"{where.table} has no column {name!r}", choose_from(name, table.columns, "It has"))


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


def _counted(rows: list[dict[str, Any]], where: Where) -> Number:
    """How many rows, or which share, are above a threshold, with bounds that hold if all rows' intervals do."""
    limit, unit = where.more_than or 0.0, len(rows) if where.take == "share" else 1
    value = sum(row[where.column] > limit for row in rows) / unit
    n = len(rows)
    untested = _untested(where, rows)
    if untested or where.interval is None:
        return Number(value, n=n, untested=untested or _NEITHER)
    bounds = [widened(row[where.column], _bounds(row, where.interval), n, _documents(row)) for row in rows]
    least, most = (sum(bound[side] > limit for bound in bounds) / unit for side in (0, 1))
    return Number(value, least, most, least, most, n=n)


def _number(row: Mapping[str, Any], tested: Mapping[str, Any], where: Where, several: int) -> Number:
    scale = where.scale
    value = float(row[where.column]) * scale
    low, high = _bounds(row, where.interval, scale)
    baseline = math.nan if where.baseline is None or _missing(row[where.baseline]) else float(row[where.baseline]) * scale
    sure_low, sure_high = _bounds(tested, where.difference_interval or where.interval, scale)
    documents, n = _documents(tested), None if where.n == NONE or _missing(tested[where.n]) else round(tested[where.n])
    # `difference_interval` is the interval of a difference: from the baseline, or one whose value is in no column here.
    middle = value if where.difference_interval is None else (sure_low + sure_high) / 2 if math.isnan(baseline) else value - baseline
    sure_low, sure_high = widened(middle, (sure_low, sure_high), several, documents)
    return Number(
        value,
        low,
        high,
        sure_low,
        sure_high,
        baseline,
        n,
        "" if where.named is None else str(row[where.named]),
        math.nan if where.p is None or _missing(tested[where.p]) else float(tested[where.p]),
        documents,
        _untested(where, [tested]),
        f"{where.column} {tested[where.column]:.3g} of {n} {where.n_counts}"
        if where.test_rows and not _missing(tested[where.column])
        else "",
    )


_NEITHER = "there is neither an interval nor a p value"


def _untested(where: Where, rows: list[Any]) -> str:
    """Why rows allow no verdict: the recipe names neither interval nor p, or these are empty; "" if they allow one."""
    bounds = where.difference_interval or where.interval
    if bounds is None and where.p is None:
        return _NEITHER
    empty = ["interval"] if bounds is not None and any(_missing(row[name]) for row in rows for name in bounds) else []
    empty += ["p"] if where.p is not None and any(_missing(row[where.p]) for row in rows) else []
    reasons = (row.get("reason") or _few(row) for row in rows)
    why = next((str(reason) for reason in reasons if reason), "")
    return f"there is no {' and no '.join(empty)}{f': {why}' if why else ''}" if empty else ""


def _few(row: Mapping[str, Any]) -> str:
    documents = _documents(row)
    return "" if documents is None else reason(documents, documents >= FEWEST)


def _documents(row: Mapping[str, Any]) -> int | None:
    """How many documents a row is from, if it says so."""
    return None if _missing(row.get("documents")) else int(row["documents"])


def _bounds(row: Mapping[str, Any], names: tuple[str, str] | None, scale: float = 1.0) -> Bounds:
    low, high = (math.nan if names is None or _missing(row[name]) else float(row[name]) * scale for name in names or ("", ""))
    return low, high
