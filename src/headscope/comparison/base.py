"""The comparison of several runs, or of studies of one kind: their common numbers and the differences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.core.maps import WEIGHTS
from headscope.core.paths import printable
from headscope.core.wording import number_of
from headscope.corpora.files import base_name
from headscope.errors import RunError
from headscope.results.notes import documents_range
from headscope.results.results import Results
from headscope.results.specification import Role
from headscope.results.table import Table
from headscope.stats.inference import Support, p_value
from headscope.stats.significance import holm
from headscope.studies.registry import REGISTRY

if TYPE_CHECKING:
    from jaxtyping import Float64

LEVEL = 0.05  # of a whole table, after Holm's correction
# The settings that distinguish runs in their names, the most important first. All other settings that can change a
# number follow.
_DISTINGUISHING = ("slice", "model", "corpus", "weights", "map", "preset", "score", "dev")
_ROUNDING = 1e-6
_SHORT = 20  # most characters of a name that is also used in the names of differences
_LONG = 30  # most characters of a setting that is used as a name
# The name of a run by a setting: if it is not set, and with its value.
_WORDS = {
    "generate": ("given text", "{} generated tokens"),
    "prompt_tokens": ("whole prompts", "prompts of {} tokens"),
    "temperature": ("temperature 0", "temperature {}"),
    "limit": ("all texts", "{} texts"),
    "limit_dev": ("all dev texts", "{} dev texts"),
    "layers": ("all layers", "layers {}"),
    "by": ("no slices", "by {}"),
}
# Settings that are never used in names, in addition to the neutral settings of studies.
_PASSING = {"batch_tokens", "shard_tokens", "allow_unknown", "own", "replicates", "measures", "format", "on_error"}


@dataclass(frozen=True)
class Comparison:
    """Tables by name. `values` has one row per run, `differences` one row per pair: second minus first.

    `keys` are the columns that identify a number; `names` are the names of the runs in the tables.
    """

    results: tuple[Results, ...]
    names: tuple[str, ...]
    pairs: tuple[tuple[int, int], ...]
    how: str  # how the intervals of differences were made
    unlike: tuple[str, ...]  # differences in settings other than model and corpus
    left_out: tuple[str, ...]  # what could not be compared, and why
    keys: Mapping[str, tuple[str, ...]]
    titles: Mapping[str, str]
    values: Mapping[str, Table]
    differences: Mapping[str, Table]

    @property
    def headings(self) -> tuple[list[str], list[str]]:
        """The names of the columns of runs and of differences; if names are long, with the numbers of the runs."""
        if max(map(len, self.names)) <= _SHORT:
            return [*self.names], [f"{self.names[second]} − {self.names[first]}" for first, second in self.pairs]
        differences = [f"{other + 1} − {base + 1}" for base, other in self.pairs]
        return [f"{number}: {name}" for number, name in enumerate(self.names, 1)], differences

    def wide(self, name: str, rows: Sequence[tuple[Any, ...]] | None = None) -> Table:
        """One row per key, or for some keys; one column per run and then per pair, with intervals.

        A star marks differences that are significant after Holm's correction for the whole table, or whose intervals do
        not overlap.
        """
        keys = self.keys[name]
        runs, pairs = (
            dict(zip(known, heading, strict=True)) for known, heading in zip((self.names, self._pairs), self.headings, strict=True)
        )
        cells: dict[tuple[Any, ...], dict[str, str]] = {}
        for row in self.values[name]:
            cell = _number(row["value"], row["low"], row["high"]) + (f" ({row['heads']})" if "heads" in row else "")
            cells.setdefault(tuple(row[key] for key in keys), {})[runs[row["run"]]] = cell
        for row in self.differences[name]:
            cell = _number(row["difference"], row["low"], row["high"], "+") + (" *" if holds(row) else "")
            cells.setdefault(tuple(row[key] for key in keys), {})[pairs[row["first"], row["second"]]] = cell
        shown = list(cells) if rows is None else [key for key in rows if key in cells]
        several = [place for place, key in enumerate(keys) if len({cell[place] for cell in cells}) > 1 or key == keys[-1]]
        return Table.of(
            {
                **{keys[place]: [key[place] for key in shown] for place in several},
                **{column: [cells[key].get(column, "–") for key in shown] for column in (*runs.values(), *pairs.values())},
            }
        )

    def furthest(self, name: str, within: Sequence[str] = ()) -> list[tuple[Any, ...]]:
        """The keys of a table by the size of the difference, the largest first; with `within` only the first of each
        group.
        """
        apart: dict[tuple[Any, ...], float] = {}
        for row in self.differences[name]:
            key = tuple(row[part] for part in self.keys[name])
            apart[key] = max(apart.get(key, 0.0), abs(row["difference"]))
        order = sorted(apart, key=lambda key: -apart[key])
        if not within:
            return order
        places = [self.keys[name].index(part) for part in within]
        firsts: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        for key in order:
            firsts.setdefault(tuple(key[place] for place in places), key)
        return list(firsts.values())

    @property
    def _pairs(self) -> list[tuple[str, str]]:
        return [(self.names[first], self.names[second]) for first, second in self.pairs]

    def counted(self, name: str) -> str:
        """The number of differences in a table, the meaning and the number of stars, and the number of documents."""
        rows = list(self.differences[name])
        return self._stars(rows) + documents_range(row.get("documents") for row in rows)

    def _stars(self, rows: Sequence[Mapping[str, Any]]) -> str:
        stars = sum(map(holds, rows))
        tested = sum("p" in row and not np.isnan(row["p"]) for row in rows)
        count = number_of(len(rows), "difference")
        if tested:
            return f"{count}; * {stars} with p < {LEVEL} after Holm's correction for {tested} comparisons"
        alone = any(row["apart"] is not None for row in rows if "apart" in row)
        return count + (f"; * {stars} where the intervals, each for one study alone, do not overlap" if alone else "")


def holds(row: Mapping[str, Any]) -> bool:
    """Whether a difference is significant after correction for its table, or its intervals do not overlap."""
    return bool(row.get("apart")) or bool(row.get("p", np.nan) < LEVEL)


def chosen_pairs(number: int, to: int = 1, pairs: bool = False) -> tuple[tuple[int, int], ...]:
    """The pairs of runs to compare, counted from 0: each run with run `to`, counted from 1, or all pairs."""
    if number < 2:
        raise RunError(
            "only one run was named, and a comparison needs two", "Name two folders or more, or two slices of a run that was made with --by"
        )
    if not 1 <= to <= number:
        raise RunError(f"there is no run {to} among {number}", f"Name one from 1 to {number} with --to")
    if pairs:
        return tuple(combinations(range(number), 2))
    return tuple((to - 1, other) for other in range(number) if other != to - 1)


def names_of(results: Sequence[Results]) -> tuple[str, ...]:
    """Short names, by what differs between runs: models, corpora, weights, presets, settings, or folders."""
    settings = [_distinguishing(result) for result in results]
    keys = [
        key
        for key in settings[0]
        if len({run.get(key) for run in settings}) > 1 and (key == "slice" or all(len(run.get(key, "")) <= _LONG for run in settings))
    ]
    used: list[str] = []
    for key in keys:
        apart, more = (len({tuple(run.get(name) for name in some) for run in settings}) for some in (used, [*used, key]))
        if (key in _DISTINGUISHING and key != "score") or more > apart:
            used.append(key)
    names = [", ".join(filter(None, (run.get(key, "") for key in used))) for run in settings]
    if len(set(names)) < len(names) or not all(names):
        folders = [result.path.resolve().name if result.path is not None else "run" for result in results]
        names = [", ".join(filter(None, (name, folder))) for name, folder in zip(names, folders, strict=True)]
    return tuple(name if names.count(name) == 1 else f"{name} ({number})" for number, name in enumerate(names, 1))


def unlike(results: Sequence[Results], names: Sequence[str], settings: Sequence[str]) -> list[str]:
    """The settings that differ, and a line if the annotation has different origins."""
    lines = []
    for setting in settings:
        values = [result.map if setting == "map" else result.manifest["settings"].get(setting) for result in results]
        if any(value != values[0] for value in values):
            lines.append(f"{setting} is {_each(values, names)}")
    annotations = [result.annotation for result in results]
    if len(set(annotations)) > 1:
        made = [parser.replace("; ", ", ") if parser else "not marked as automatic" for parser in annotations]
        lines.append(f"annotation is {_each(made, names)}: parser errors are part of the difference")
    return lines


def same_draws(a: Results, b: Results) -> bool:
    """Whether both gave the same documents the same weights; weights depend only on the seed and the document."""
    drawn = []
    for results in (a, b):
        identity = results.manifest["identity"]
        drawn.append((identity.get("corpus") or identity.get("documents"), results.manifest["settings"]["seed"]))
    return drawn[0] == drawn[1] and drawn[0][0] is not None


def adjusted(
    differences: Float64[np.ndarray, "item"], replicates: Float64[np.ndarray, "replicate item"], support: Support
) -> Float64[np.ndarray, "item"]:
    """P values of differences; NaN with too few documents, and for differences that are rounding errors."""
    return p_value(differences, replicates, support.where(np.abs(differences) > _ROUNDING))


def corrected(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows of a table of differences, with `p` after Holm's correction for all of them."""
    return [{**row, "p": float(p)} for row, p in zip(rows, holm(np.array([row["p"] for row in rows])), strict=True)]


def _distinguishing(results: Results) -> dict[str, str]:
    settings, identity = {**results.manifest["settings"], "map": results.map}, results.manifest["identity"]
    found: dict[str, str] = {"slice": results.manifest.get("slice", "")}
    kind = results.study or ""
    passing = _PASSING | {*(REGISTRY[kind].spec.having(Role.NEUTRAL) if kind in REGISTRY else ())}
    for name, value in {
        key: settings[key] for key in (*_DISTINGUISHING, *sorted(settings)) if key in settings and key not in passing
    }.items():
        if name in ("model", "corpus", "dev"):
            files = [value] if isinstance(value, str) else list(value or ())
            found[name] = printable("+".join(Path(base_name(Path(file))).stem or file for file in files))
        elif name == "weights":
            found[name] = f"{value} weights"
        elif name == "map":
            found[name] = "attention weights" if value == WEIGHTS else f"{value} maps"
        else:
            found[name] = str(value) if name in _DISTINGUISHING else _setting(name, value)
    # Hashes of contents are used if nothing else distinguishes the runs.
    contents = {f"{name}'s content": str(identity.get(name, ""))[:8] for name in ("model", "corpus")}
    return {**found, **contents}


def _setting(name: str, value: Any) -> str:
    """A setting as a part of the name of a run: `40 generated tokens`, `given text`, `no control`."""
    missing, present = _WORDS.get(name, (f"default {name.replace('_', ' ')}", f"{name.replace('_', ' ')} {{}}"))
    if isinstance(value, bool):
        return name.replace("_", " ") if value else f"no {name.replace('_', ' ')}"
    if isinstance(value, (list, tuple)):
        value = ",".join(map(str, value)) or "none"
    return missing if value is None else present.format(value)


def _each(values: Sequence[object], names: Sequence[str]) -> str:
    """Every value with the runs that have it: by name, or by number if there are more than two runs."""
    known = names if len(names) == 2 else list(map(str, range(1, len(names) + 1)))
    groups: dict[str, list[str]] = {}
    for value, name in zip(("not set" if value is None else str(value) for value in values), known, strict=True):
        groups.setdefault(value, []).append(name)
    return "; ".join(f"{value} in {' and '.join(some)}" for value, some in groups.items())


def _number(value: float, low: float | None, high: float | None, sign: str = "") -> str:
    if value is None or np.isnan(value):
        return "–"
    size = max(abs(number) for number in (value, low, high) if number is not None and not np.isnan(number))
    places = 0 if size == 0 else 2 if size >= 1 else 3 if size >= 0.02 else 4
    if low is None or high is None or np.isnan(low):
        if float(value).is_integer():
            return f"{value:{sign if value else ''}.0f}"
        return f"{value:{sign}.{places}f}"
    return f"{value:{sign}.{places}f} [{low:{sign}.{places}f} {high:{sign}.{places}f}]"
