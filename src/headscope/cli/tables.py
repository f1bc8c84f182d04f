"""Tables in the terminal, and as Markdown."""

from __future__ import annotations

import re

import typer

from headscope.runs.few import counted, note
from headscope.runs.table import Table, display

_NUMBER = re.compile(r"[-+]?[0-9]")


def print_table(table: Table, title: str, caption: str = "") -> None:
    """Print a table with aligned columns; where no terminal sets the width, as wide as it is."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    rich = RichTable(header_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    rows = list(table)
    for name in table.columns:
        rich.add_column(name, justify="left" if any(map(_is_text, (row[name] for row in rows))) else "right", no_wrap=True)
    for row in rows:
        rich.add_row(
            *(Text(counted(value) if name == "documents" else display(value)) for name, value in row.items())
        )  # "[the]" is no markup
    few = note(row["documents"] for row in rows) if "documents" in table.columns else ""
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, Console(width=10_000).measure(rich).maximum)
    console.print(title, style="italic", soft_wrap=True, markup=False)  # as the table's own title it would be folded to its width
    console.print(rich)
    if caption := "\n".join(filter(None, (few, caption))):
        console.print(caption, style="dim", soft_wrap=True, markup=False)


def print_markdown(table: Table, title: str) -> None:
    """Print a table of numbers as Markdown: a heading, labels to the left, numbers to the right."""
    head, _, *rows = table.to_text("markdown").splitlines()
    rule = "| :-- |" + " --: |" * (len(table.columns) - 1)
    typer.echo("\n".join([f"**{title}**", "", head, rule, *rows, ""]))


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not _NUMBER.match(value) and value != display(None)
