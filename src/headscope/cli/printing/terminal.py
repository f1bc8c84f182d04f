"""Texts in the terminal: for each word the words it attends to most, and words shaded by weight with phrases
underlined. Without a terminal, the text has no colours.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headscope.drawing.words import label

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from headscope.gallery.grids import Grid
    from headscope.studies.keywords.finder import KeywordResult
    from headscope.widget.keywords import KeywordView

TOP = 5  # words that a word attends to, if the terminal is wide enough
LEAST = 0.02  # the lowest weight that is listed
_BAR, _WORD = 6, 16  # characters of a bar, and of a word at most
_EIGHTHS = " ▏▎▍▌▋▊▉"
_LIGHT, _DARK = (176, 205, 224), (0, 114, 178)  # from faint to the figures' blue
SHADED = 0.2  # fainter words keep the colours of the terminal
_FAINT, _STRONG = (150, 158, 166), (64, 170, 235)  # from grey to blue, so that strong ones stand out on light and on dark backgrounds


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
            if row == grid.generated_from:
                table.add_row(Text("generated:", style="dim"))
            links = grid.strongest(row, columns, LEAST)
            table.add_row(Text(_word(word, console)), *(_link(to, weight, weight / most, console) for to, weight in links))
        console.print(table)
        console.print()
    console.print(Text(signature, style="dim"), soft_wrap=True)


def _link(word: str, weight: float, share: float, console: Console) -> Text:
    """A word with its weight; the bar and the colour show its share of the highest."""
    from rich.text import Text

    return Text.assemble(
        (_bar(share, console), _mixed(_LIGHT, _DARK, share)), f" {weight:.2f} ", (_word(word, console), "bold" if share >= 0.3 else "")
    )


def _bar(share: float, console: Console) -> str:
    eighths = round(min(max(share, 0), 1) * _BAR * 8)
    if not console.encoding.lower().startswith("utf"):
        return ("#" * round(eighths / 8)).ljust(_BAR)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()).ljust(_BAR)


def _word(word: str, console: Console) -> str:
    """A word as the terminal can print it, cut where it is long."""
    shown = label(word)
    return _encodable(shown if len(shown) <= _WORD else shown[: _WORD - 1] + "…", console)


def _widest(grid: Grid, console: Console) -> int:
    from rich.text import Text

    return max((Text(_word(word, console)).cell_len for word in grid.columns), default=0)


def print_keywords(view: KeywordView) -> None:
    """Print every text and the list of its phrases, then what the weights were learnt from."""
    from rich.console import Console

    from headscope.cli.printing.tables import print_table
    from headscope.results.table import Table

    console = Console(highlight=False)
    for result in view.texts:
        for paragraph in _paragraphs(result, view.top, console):
            console.print(paragraph, soft_wrap=not console.is_terminal)
            console.print()
        best = result.phrases[: view.top]
        title = f"{result.document.id}: {f'the best {len(best)} of {len(result.phrases)} phrases' if best else 'no phrase was found'}"
        if best:
            columns = {
                "phrase": [_printable(phrase.text, console) for phrase in best],
                "score": [f"{phrase.score:.2f}" for phrase in best],
                "places": [len(phrase.places) for phrase in best],
            }
            print_table(Table.of(columns), _printable(title, console))
        else:
            console.print(_printable(title, console), markup=False)
        for note in result.notes:
            console.print(note, style="dim", soft_wrap=True, markup=False)
    console.print(f"{view.trained}.", soft_wrap=True, markup=False)
    console.print(view.signature, style="dim", soft_wrap=True, markup=False)


def _paragraphs(result: KeywordResult, top: int, console: Console) -> list[Text]:
    from rich.text import Text

    under = {place for phrase in result.phrases[:top] for start, end in phrase.places for place in range(start, end)}
    last = {end - 1 for phrase in result.phrases[:top] for _, end in phrase.places}
    paragraphs = []
    at = 0
    for sentences in result.document.paragraphs():
        text = Text()
        for word in (word for sentence in sentences for word in sentence.words):
            text.append(_printable(word.form, console), _style(float(result.weights[at]), at in under))
            text.append(" " * word.space_after, "underline" if at in under and at not in last else "")
            at += 1
        text.rstrip()
        paragraphs.append(text)
    return paragraphs


def _style(weight: float, underlined: bool) -> str:
    shade = f"#000000 on {_mixed(_FAINT, _STRONG, weight)}" if weight >= SHADED else ""
    return f"{shade} underline".strip() if underlined else shade


def _printable(text: str, console: Console) -> str:
    return _encodable(label(text, len(text)), console)


def _encodable(text: str, console: Console) -> str:
    return text.encode(console.encoding, "replace").decode(console.encoding)


def _mixed(faint: tuple[int, int, int], strong: tuple[int, int, int], share: float) -> str:
    """A colour between two, as rich writes it."""
    mix = [round(light + (dark - light) * min(share, 1)) for light, dark in zip(faint, strong, strict=True)]
    return f"rgb({','.join(map(str, mix))})"
