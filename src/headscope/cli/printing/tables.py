"""Tables in the terminal, and as Markdown."""

from __future__ import annotations

import re
import sys
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from headscope.errors import RunError
from headscope.results.formats import BINARY, FORMATS, display, encode, format_of
from headscope.results.notes import counted, note
from headscope.results.table import Table

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table as RichTable

_NUMBER = re.compile(r"[-+]?[0-9]")


def print_table(table: Table, title: str, caption: str = "") -> None:
    """Print a table with aligned columns; where no terminal sets the width, as wide as it is.

    In a terminal that is too narrow no number is cut off: what is the same in all rows is told once, and what then
    does not fit follows below, with the first column again.
    """
    from rich.console import Console
    from rich.text import Text

    rows = list(table)
    cells = {name: [counted(row[name]) if name == "documents" else display(row[name]) for row in rows] for name in table.columns}
    left = {name for name in cells if any(_is_text(row[name]) for row in rows)}
    console = Console(highlight=False)
    parts, same = [list(cells)], ""
    if console.is_terminal and _width(cells, list(cells)) > console.width:
        alike = [name for name in cells if len(rows) > 1 and len(set(cells[name])) == 1]
        same = ", ".join(f"{name} {cells[name][0]}" for name in alike)
        parts = _fitting(cells, [name for name in cells if name not in alike] or list(cells), console.width)
    console.print(title, style="italic", soft_wrap=True, markup=False)  # as the table's own title it would be folded to its width
    if same:
        console.print(f"in all rows: {same}", style="dim", soft_wrap=True, markup=False)
    for names in parts:
        rich = _rich({name: [Text(cell) for cell in cells[name]] for name in names}, left)  # as text: "[the]" is no markup
        if not console.is_terminal:
            console.width = max(console.width, Console(width=10_000).measure(rich).maximum)
        console.print(rich)
    few = note(row["documents"] for row in rows) if "documents" in cells else ""
    if caption := "\n".join(filter(None, (few, caption))):
        console.print(caption, style="dim", soft_wrap=True, markup=False)


def _rich(cells: Mapping[str, Sequence[RenderableType]], left: Container[str]) -> RichTable:
    from rich import box
    from rich.table import Table as RichTable

    rich = RichTable(header_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in cells:
        rich.add_column(name, justify="left" if name in left else "right", no_wrap=True)
    for row in zip(*cells.values(), strict=True):
        rich.add_row(*row)
    return rich


def _width(cells: Mapping[str, Sequence[str]], names: Sequence[str]) -> int:
    """How wide a table of some columns is: three characters between two columns, and one at each side."""
    return sum(max(map(len, [name, *cells[name]])) for name in names) + 3 * (len(names) - 1) + 2


def _fitting(cells: Mapping[str, Sequence[str]], names: Sequence[str], width: int) -> list[list[str]]:
    """The columns in parts of at most this width, each with the first column; a wider one has its own part."""
    first, *rest = names
    parts = [[first]]
    for name in rest:
        if len(parts[-1]) > 1 and _width(cells, [*parts[-1], name]) > width:
            parts.append([first])
        parts[-1].append(name)
    return parts


def table_format(format: str | None, out: Path | None) -> str | None:
    """The format of a table that is to be written: the one named, or that of the file's ending; None for neither."""
    if format is None:
        return None if out is None else format_of(out)
    if format not in FORMATS:
        raise RunError(f"format {format!r} is unknown", f"Use one of {', '.join(FORMATS)}")
    if out is None and format in BINARY and sys.stdout.isatty():
        raise RunError(f"{format} is no text to be shown in a terminal", "Name a file with -o")
    return format


def write_table(table: Table, format: str, out: Path | None) -> None:
    """Write a table to a file, whose path is printed, or else to standard output."""
    if out is not None:
        typer.echo(table.save(out, format))
    else:
        typer.echo(encode(table.arrow, format) if format in BINARY else table.to_text(format), nl=False)


def print_markdown(table: Table, title: str) -> None:
    """Print a table of numbers as Markdown: a heading, labels to the left, numbers to the right."""
    head, _, *rows = table.to_text("markdown").splitlines()
    rule = "| :-- |" + " --: |" * (len(table.columns) - 1)
    typer.echo("\n".join([f"**{title}**", "", head, rule, *rows, ""]))


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not _NUMBER.match(value) and value != display(None)
