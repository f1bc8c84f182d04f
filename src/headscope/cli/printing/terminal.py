"""Maps in the terminal: for each word the words it attends to most, or that influence it most."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headscope.drawing.words import label
from headscope.gallery.grids import Grid

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

TOP = 5  # words that a word attends to, if the terminal is wide enough
LEAST = 0.02
_BAR, _WORD = 6, 16  # signs of a bar, and of a word at most
_EIGHTHS = " ▏▎▍▌▋▊▉"
_LIGHT, _DARK = (176, 205, 224), (0, 114, 178)  # from faint to the figures' blue


def print_grids(grids: Mapping[str, Grid], signature: str) -> None:
    """Print a list for each title: one line per word, then the words with its highest weights, the highest first."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 100
    for title, grid in grids.items():
        console.print(Text(title, style="bold"))
        most = max(1.0, float(grid.weights.max(initial=0)))  # sizes of influence may be above 1
        wide = max((Text(_word(word, console)).cell_len for word in grid.rows), default=0)
        room = console.width - wide - 2
        columns = max(1, min(TOP, room // (_BAR + 5 + 1 + 2 + _widest(grid, console))))
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(justify="right", no_wrap=True)
        for _ in range(columns):
            table.add_column(no_wrap=True, overflow="ellipsis")
        for row, word in enumerate(grid.rows):
            links = grid.strongest(row, columns, LEAST)
            table.add_row(Text(_word(word, console)), *(_link(to, weight, weight / most, console) for to, weight in links))
        console.print(table)
        console.print()
    console.print(Text(signature, style="dim"), soft_wrap=True)


def _link(word: str, weight: float, share: float, console: Console) -> Text:
    """A word with its weight; the bar and the colour show its share of the highest."""
    from rich.text import Text

    mix = [round(light + (dark - light) * min(share, 1)) for light, dark in zip(_LIGHT, _DARK, strict=True)]
    style = f"rgb({','.join(map(str, mix))})"
    return Text.assemble((_bar(share, console), style), f" {weight:.2f} ", (_word(word, console), "bold" if share >= 0.3 else ""))


def _bar(share: float, console: Console) -> str:
    eighths = round(min(max(share, 0), 1) * _BAR * 8)
    if not console.encoding.lower().startswith("utf"):
        return ("#" * round(eighths / 8)).ljust(_BAR)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()).ljust(_BAR)


def _word(word: str, console: Console) -> str:
    """A word as the terminal can print it."""
    shown = label(word)
    shown = shown if len(shown) <= _WORD else shown[: _WORD - 1] + "…"
    return shown.encode(console.encoding, "replace").decode(console.encoding)


def _widest(grid: Grid, console: Console) -> int:
    from rich.text import Text

    return max((Text(_word(word, console)).cell_len for word in grid.columns), default=0)
