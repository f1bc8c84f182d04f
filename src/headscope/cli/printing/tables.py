"""Tables in the terminal, and as Markdown."""

from __future__ import annotations

import re
import sys
from collections.abc import Container, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from headscope.cli.printing.columns import GAP, TableLayout, fit, headings, plain_cells
from headscope.cli.printing.text import print_text
from headscope.core.suggest import choose_from
from headscope.errors import RunError
from headscope.results.formats import BINARY, FORMATS, display, encode, format_of
from headscope.results.notes import note
from headscope.results.table import Table

if TYPE_CHECKING:
    from rich.console import Console

_NUMBER = re.compile(r"[-+]?[0-9]")


def print_table(table: Table, title: str, caption: str = "", all_columns: str = "piped output, as in | less -S") -> None:
    """Print a table with aligned columns.

    In a terminal it has the columns that fit (`columns.fit`). A further line names the others, and `all_columns`, the
    way to see all, such as `--format tsv`. Elsewhere it has all columns in full width.
    """
    from rich.console import Console

    console = Console(highlight=False)
    layout = fit(table, console.width) if console.is_terminal else TableLayout(plain_cells(table), (tuple(table.columns),))
    left = {name for name in layout.cells if any(_is_text(value) for value in table[name])}
    print_text(f"\n{title.lstrip()}" if console.is_terminal else title, "italic")
    if layout.same:
        print_text(f"in all rows: {layout.same}", "dim")
    for names in layout.parts:
        _print_part(console, {name: layout.cells[name] for name in names}, left)
    if layout.hidden:
        print_text(f"not shown, for lack of width: {', '.join(layout.hidden)}; all columns: {all_columns}", "dim")
    few = note(table["documents"]) if "documents" in table.columns else ""
    if caption := "\n".join(filter(None, (few, caption))):
        print_text(caption, "dim")


def _print_part(console: Console, cells: Mapping[str, Sequence[str]], left: Container[str]) -> None:
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    narrow = console.is_terminal
    rich = RichTable(
        header_style="bold", box=box.SIMPLE_HEAD, pad_edge=False, show_edge=not narrow, padding=(0, GAP - 1, 0, 0) if narrow else (0, 1)
    )
    for name, shown in headings(cells, console.width if narrow else sys.maxsize).items():
        rich.add_column(Text(shown), justify="left" if name in left else "right", no_wrap=True, overflow="fold", vertical="top")
    for row in zip(*cells.values(), strict=True):
        rich.add_row(*map(Text, row))  # as text: "[the]" is no markup
    if not narrow:
        from rich.console import Console as Measuring

        console.width = max(console.width, Measuring(width=10_000).measure(rich).maximum)
    console.print(rich)


def table_format(format: str | None, out: Path | None) -> str | None:
    """The format of a table that is to be written: the one named, or that of the file's ending; None for neither."""
    if format is None:
        return None if out is None else format_of(out)
    if format not in FORMATS:
        raise RunError(f"format {format!r} is unknown", choose_from(format, FORMATS))
    if out is None and format in BINARY and sys.stdout.isatty():
        raise RunError(f"{format} is not a text format, and cannot be shown in a terminal", "Name a file with -o")
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
