"""Tables in the terminal."""

from __future__ import annotations

from headscope.runs.table import Table, display


def print_table(table: Table, title: str, caption: str = "") -> None:
    """Print a table with aligned columns."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable

    rich = RichTable(title=title, title_justify="left", header_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    rows = list(table)
    for name in table.columns:
        text = any(isinstance(row[name], str) for row in rows)
        rich.add_column(name, justify="left" if text else "right", no_wrap=True)
    for row in rows:
        rich.add_row(*(display(value) for value in row.values()))
    console = Console(highlight=False)
    console.print(rich)
    if caption:
        console.print(caption, style="dim", soft_wrap=True, markup=False)
