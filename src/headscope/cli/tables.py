"""Tables in the terminal."""

from __future__ import annotations

from headscope.runs.table import Table, display


def print_table(table: Table, title: str, caption: str = "") -> None:
    """Print a table with aligned columns."""
    from rich.console import Console
    from rich.table import Table as RichTable

    rich = RichTable(title=title, caption=caption, caption_style="dim", title_justify="left", caption_justify="left", header_style="bold")
    rows = list(table)
    for name in table.columns:
        text = any(isinstance(row[name], str) for row in rows)
        rich.add_column(name, justify="left" if text else "right", no_wrap=True)
    for row in rows:
        rich.add_row(*(display(value) for value in row.values()))
    Console(highlight=False).print(rich)
