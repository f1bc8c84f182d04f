"""Whether two results are the same to the last bit, and if not, how far apart they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.core.state import States
from headscope.errors import RunError
from headscope.results.folder import STATES, Folder, read_states
from headscope.results.results import GALLERY, Results
from headscope.results.table import Table

if TYPE_CHECKING:
    from jaxtyping import Shaped

RELATIVE, ABSOLUTE = 1e-4, 1e-6  # tolerances for floating-point numbers: other orders of addition, or other kernels


@dataclass(frozen=True)
class Difference:
    """A column of a table, or an array of a state, that differs; `largest` are absolute and relative."""

    where: str
    what: str
    cells: int
    differing: int
    largest: float
    relative: float
    noise: bool  # within floating-point noise


@dataclass(frozen=True)
class Sameness:
    """What was compared, and what differs."""

    tables: int
    numbers: int  # in tables
    states: int  # numbers in states
    differences: tuple[Difference, ...]
    only: tuple[str, ...]  # tables and states that only one of them has
    gallery: bool | None  # whether the galleries are the same; None if neither has one

    @property
    def identical(self) -> bool:
        """Whether they are the same to the last bit."""
        return not self.differences and not self.only and self.gallery is not False

    @property
    def noise(self) -> bool:
        """Whether all differences are floating-point noise."""
        return not self.only and all(difference.noise for difference in self.differences)

    def table(self) -> Table:
        """The differences as a table."""
        rows = self.differences
        return Table.of(
            {
                "where": [row.where for row in rows],
                "what": [row.what for row in rows],
                "cells": [row.cells for row in rows],
                "differing": [row.differing for row in rows],
                "absolute": [f"{row.largest:.2g}" for row in rows],
                "relative": [f"{row.relative:.2g}" for row in rows],
                "noise": ["yes" if row.noise else "no" for row in rows],
            }
        )


def compare(then: Results, now: Results) -> Sameness:
    """The comparison of every table and every state of two results."""
    tables, others = _tables(then), _tables(now)
    shared = [name for name in tables if name in others]
    only = [f"table {name}" for name in [*tables, *others] if name not in shared]
    differing: list[Difference] = []
    numbers = 0
    for name in shared:
        a, b = _columns(tables[name]), _columns(others[name])
        numbers += sum(column.size for column in a.values() if column.dtype.kind in "fiub")
        differing += _differences(f"table {name}", a, b)
        only += [f"column {column} of table {name}" for column in [*a, *b] if (column in a) != (column in b)]
    first, second = _states(then), _states(now)
    only += [f"state {name}" for name in [*first, *second] if (name in first) != (name in second)]
    for name in first.keys() & second.keys():
        differing += _differences(f"state {name}", first[name], second[name])
    states = sum(array.size for arrays in first.values() for array in arrays.values())
    differing.sort(key=lambda difference: difference.where)
    return Sameness(len(shared), numbers, states, tuple(differing), tuple(only), _galleries(then, now))


def _tables(results: Results) -> dict[str, Table]:
    """All tables, those of slices included."""
    of_slices = {f"{name} of slices": results.by_slice(name) for name in results.manifest.get("slices", {}).get("tables", ())}
    return {**results, **of_slices}


def _differences(where: str, a: Mapping[str, np.ndarray], b: Mapping[str, np.ndarray]) -> Iterator[Difference]:
    for name in [name for name in a if name in b]:
        x, y = a[name], b[name]
        if x.shape != y.shape or x.dtype.kind != y.dtype.kind:
            shapes = f"{name}: {x.dtype} {x.shape} and {y.dtype} {y.shape}"
            yield Difference(where, shapes, max(x.size, y.size), max(x.size, y.size), np.nan, np.nan, False)
        elif (difference := _difference(where, name, x, y)) is not None:
            yield difference


def _difference(where: str, name: str, x: Shaped[np.ndarray, "..."], y: Shaped[np.ndarray, "..."]) -> Difference | None:
    if x.dtype.kind != "f":
        differing = int((x != y).sum())
        apart = np.abs(x.astype(np.float64) - y.astype(np.float64)).max(initial=0) if x.dtype.kind in "iub" else np.nan
        return Difference(where, name, x.size, differing, float(apart), np.nan, False) if differing else None
    unlike = ~((x == y) | (np.isnan(x) & np.isnan(y)))
    if not unlike.any():
        return None
    with np.errstate(invalid="ignore"):
        apart = np.abs(x - y)[unlike]
        scale = np.maximum(np.abs(x), np.abs(y))[unlike]
        relative = apart / scale
    noise = bool(((apart <= RELATIVE * scale) | (apart <= ABSOLUTE)).all())  # never if one of them is NaN
    return Difference(where, name, x.size, int(unlike.sum()), float(np.max(apart)), float(np.max(relative)), noise)


def _columns(table: Table) -> dict[str, np.ndarray]:
    """Columns as arrays; values that are not numbers as text."""
    columns = {}
    for name in table.columns:
        values: list[Any] = table[name]
        number = all(value is None or isinstance(value, int | float) for value in values) and any(value is not None for value in values)
        whole = number and all(isinstance(value, int) for value in values)
        if number:
            columns[name] = np.array([np.nan if value is None else value for value in values], dtype=np.int64 if whole else np.float64)
        else:
            columns[name] = np.array([repr(value) for value in values], dtype=object)
    return columns


def _states(results: Results) -> dict[str, dict[str, np.ndarray]]:
    path = results.path
    if path is None:
        raise RunError("these results have no folder", "Compare results that are in folders")
    Folder(path).read(STATES, results.manifest)
    states: States = read_states(path / STATES)[0]
    parts = {f"{name} of slice {part}": state.part(part).arrays for name, state in states.items() for part in state.parts}
    return {**{name: dict(state.arrays) for name, state in states.items()}, **parts}


def _galleries(then: Results, now: Results) -> bool | None:
    paths = [results.path / GALLERY for results in (then, now) if results.path is not None and (results.path / GALLERY).is_file()]
    if not paths:
        return None
    return len(paths) == 2 and paths[0].read_bytes() == paths[1].read_bytes()
