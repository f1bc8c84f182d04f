"""The layout of a table for the width of a terminal: its columns, its headings, intervals in the cells of values."""

from __future__ import annotations

import math
import re
import sys
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headscope.results.formats import display
from headscope.results.notes import counted
from headscope.results.table import Table

Cells = dict[str, list[str]]

GAP = 2  # spaces between two columns
# Columns that are omitted in a narrow terminal, the last ones first.
MINOR = (
    *("n", "p", "lift", "direction", "documents", "n (documents)", "p_documents", "neighbour", "chance", "in-sample", "in_sample"),
    *("in_sample_head", "survives", "p_holm", "p_bh", "df", "t", "d", "n_same", "n_different", "n_first", "n_second", "mean_same"),
    *("mean_different", "mean_first", "mean_second", "error", "chance_error", "crossfit", "sentences", "reason"),
)
_NARROWEST = 20  # the smallest width, in letters, to which a phrase is wrapped
_PHRASE = re.compile(r"[^\W\d]{2} +[^\W\d]{2}")
_WITH_INTERVAL = re.compile(r"(\S+) (\[[^\[\]]+\])(.*)")


@dataclass(frozen=True)
class TableLayout:
    """How a table is printed: its cells, its columns in one part or more, and what is printed outside of the parts."""

    cells: Cells
    parts: tuple[tuple[str, ...], ...]
    same: str = ""  # what is the same in all rows
    hidden: tuple[str, ...] = ()  # omitted columns


def plain_cells(table: Table) -> Cells:
    """All columns as text."""
    return {name: [counted(value) if name == "documents" else display(value) for value in table[name]] for name in table.columns}


def fit(table: Table, width: int) -> TableLayout:
    """The table for a terminal of this width.

    Intervals are printed beside their values. If the table is too wide, columns with one value in all rows are printed
    once, minor columns are omitted, phrases are wrapped, and intervals are put below their values. Columns that still
    do not fit follow in further parts, each of which repeats the first column.
    """
    cells = with_intervals(table)
    if total_width(cells, [*cells]) <= width:
        return TableLayout(cells, (tuple(cells),))
    alike = [name for name in cells if len(table) > 1 and len(set(cells[name])) == 1]
    if len(alike) == len(cells):
        alike = []
    same = ", ".join(f"{name} {cells[name][0]}" for name in alike if cells[name][0])
    names = [name for name in cells if name not in alike]
    major = [name for name in names if name not in MINOR or name == names[0]]
    cells = _narrowed(cells, major, width)
    shown = set(major)
    for name in sorted(set(names) - shown, key=MINOR.index):
        if total_width(cells, [each for each in names if each in {*shown, name}]) <= width:
            shown.add(name)
    parts = _parts(cells, [name for name in names if name in shown], width)
    return TableLayout(cells, parts, same, tuple(name for name in names if name not in shown))


def with_intervals(table: Table) -> Cells:
    """All columns as text, with the bounds of an interval in the cell of its value: `0.46 [0.44 0.47]`."""
    cells = plain_cells(table)
    for name, (low, high) in _bounds(table).items():
        cells[name] = [_spelled(*row) for row in zip(table[name], table[low], table[high], strict=True)]
        del cells[low], cells[high]
    return cells


def stacked(cell: str) -> str:
    """A cell whose interval is on a line below its value."""
    match = _WITH_INTERVAL.fullmatch(cell)
    return cell if match is None else f"{match[1]}{match[3]}\n{match[2]}"


def headings(cells: Mapping[str, Sequence[str]], width: int) -> dict[str, str]:
    """The names of columns as a table of this width shows them: long names in several lines."""
    for least in (sys.maxsize, 24, 16, 12, 0):
        if total_width(cells, [*cells], least) <= width:
            break
    return {name: _heading(name, cells[name], least) for name in cells}


def total_width(cells: Mapping[str, Sequence[str]], names: Sequence[str], least: int = 0) -> int:
    """The width of a table of these columns, with names wrapped at `least` letters or at the width of the cells."""
    return sum(_width([_heading(name, cells[name], least), *cells[name]]) for name in names) + GAP * (len(names) - 1)


def _heading(name: str, column: Sequence[str], least: int) -> str:
    room = max(least, _width(column), *map(len, name.split()))
    if len(name) <= room:
        return name
    parts = name.replace(" − ", "\n− ").split("\n")
    return "\n".join(textwrap.fill(part, room, break_on_hyphens=False) for part in parts)


def _narrowed(cells: Cells, names: Sequence[str], width: int) -> Cells:
    """The cells as narrow as these columns need them to be: phrases in several lines, then intervals below values."""
    for narrower in (cells, {name: [stacked(cell) for cell in column] for name, column in cells.items()}):
        phrases = [name for name in names if any(_PHRASE.search(cell) for cell in cells[name])]
        room = width - total_width(narrower, names)
        if room >= 0:
            return narrower
        if phrases:
            widest = max(phrases, key=lambda name: _width(narrower[name]))
            room += _width(narrower[widest])
            if room >= _NARROWEST:
                return {**narrower, widest: [textwrap.fill(cell, room, break_long_words=False) for cell in narrower[widest]]}
    return narrower


def _width(texts: Sequence[str]) -> int:
    from rich.cells import cell_len

    return max((cell_len(line) for text in texts for line in text.split("\n")), default=0)


def _parts(cells: Cells, names: Sequence[str], width: int) -> tuple[tuple[str, ...], ...]:
    """The columns in parts of at most this width, each with the first column; a wider one has its own part."""
    first, *rest = names
    parts = [[first]]
    for name in rest:
        if len(parts[-1]) > 1 and total_width(cells, [*parts[-1], name]) > width:
            parts.append([first])
        parts[-1].append(name)
    return tuple(map(tuple, parts))


def _bounds(table: Table) -> dict[str, tuple[str, str]]:
    """The columns that have an interval, each with the columns of its bounds: `low` belongs to the column before it,
    `lift_low` to `lift`.
    """
    bounds = {}
    for place, low in enumerate(table.columns):
        name, mark, high = low.removesuffix("_low"), low.endswith("_low"), f"{low.removesuffix('low')}high"
        if low == "low" and place:
            name = table.columns[place - 1]
        if (mark or low == "low") and name in table.columns and high in table.columns:
            bounds[name] = (low, high)
    return bounds


def _spelled(value: Any, low: Any, high: Any) -> str:
    """A number, with its interval if it has one; with 2 to 4 decimals, as many as show the width of the interval."""
    if not isinstance(value, float) or not _is_number(value):
        return display(value)
    if not (_is_number(low) and _is_number(high)):
        return f"{value:z.2f}" if abs(value) >= 0.1 else display(value)
    if max(map(abs, (value, low, high))) < 0.0005:
        return f"{value:.1e} [{low:.1e} {high:.1e}]"
    places = next((places for places in (2, 3) if low == high == round(value, places) or high - low >= 1.5 * 10**-places), 4)
    return f"{value:z.{places}f} [{low:z.{places}f} {high:z.{places}f}]"


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)
