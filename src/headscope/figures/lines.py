"""Clark et al. 2019, Figures 1 and 5: two columns of words joined by lines as dark as their weight."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.heads import HeadId
from headscope.drawing.look import pt, style
from headscope.drawing.theme import new_figure, sign, theme
from headscope.drawing.words import label, width_of
from headscope.errors import RunError
from headscope.gallery.grids import Grid
from headscope.gallery.highlight import Highlight

if TYPE_CHECKING:
    from jaxtyping import Bool, Float
    from matplotlib.axes import Axes

    from headscope.drawing.figure import Drawing

MOST = 8  # panels of a figure
LEAST = 0.01  # a fainter line cannot be seen
_SIZE, _STEP, _GAP, _SPACE = 8.0, 0.165, 1.15, 0.3  # points of a word; inches between words, columns, panels
_WIDTH = 10.0  # inches of a row of panels


def draw(grids: Mapping[HeadId, Grid], n: str, signature: str, highlights: Mapping[HeadId, Highlight] | None = None) -> Drawing:
    """One panel per head; `n` says how much text that is: "12 words". Words and links of `highlights` are red."""
    if len(grids) > MOST:
        raise RunError(f"a figure has room for {MOST} heads, not {len(grids)}", "Name fewer with --heads, or draw thumbnails: --heads all")
    check_drawable(grids.values())
    with theme():
        panels = {head: [[label(word) for word in words] for words in (grid.rows, grid.columns)] for head, grid in grids.items()}
        widths = [max(width_of(word, _SIZE) for labels in panels.values() for word in labels[side]) for side in (0, 1)]
        wide = widths[0] + _GAP + widths[1]
        tall = _STEP * (max(len(side) for labels in panels.values() for side in labels) + 2)
        across = max(1, min(4, len(panels), int((_WIDTH + _SPACE) / (wide + _SPACE))))
        down = -(-len(panels) // across)
        width, height = across * (wide + _SPACE) + 0.1, down * tall + 0.3
        figure = new_figure(max(width, 3.2), height, layout=None)
        width = figure.get_figwidth()
        for number, (head, labels) in enumerate(panels.items()):
            left, top = 0.15 + number % across * (wide + _SPACE), 0.05 + number // across * tall
            axes = figure.add_axes((left / width, 1 - (top + tall) / height, wide / width, tall / height))
            _panel(axes, head, grids[head], labels, widths[0], wide, tall, (highlights or {}).get(head, Highlight()))
        sign(figure, n, signature)
    return figure


def check_drawable(grids: Iterable[Grid]) -> None:
    """An error for a grid without rows or columns."""
    if not all(grid.rows and grid.columns for grid in grids):
        raise RunError("without special tokens there is nothing to draw", "Use --specials show")


def shade(axes: Axes, x: float, y: float, width: float, height: float) -> None:
    """A soft ground behind what a model wrote."""
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((x, y), width, height, facecolor=style().shade, edgecolor="none", zorder=0))


def colours_of(weights: Float[np.ndarray, "line"], red: Bool[np.ndarray, "line"]) -> Float[np.ndarray, "line rgba"]:
    """The colour of each line: blue, or red if it is highlighted, and the more opaque the higher its weight."""
    from matplotlib.colors import to_rgb

    return np.column_stack([np.where(red[:, None], to_rgb(style().red), to_rgb(style().line)), np.clip(weights, 0, 1)])


def _panel(
    axes: Axes, head: HeadId, grid: Grid, labels: list[list[str]], start: float, wide: float, tall: float, highlight: Highlight
) -> None:
    """One head, in inches from the upper left corner."""
    from matplotlib.collections import LineCollection

    axes.set_axis_off()
    axes.set_xlim(0, wide)
    axes.set_ylim(tall, 0)
    axes.text(0, 0.5 * _STEP, f"Head {head}", fontsize=pt(9), fontweight="bold", color=style().ink, va="center")
    heights = [_STEP * (1.75 + (tall / _STEP - 2 - len(side)) / 2 + np.arange(len(side))) for side in labels]
    if grid.generated_from is not None:
        for ys, x in zip(heights, (0.0, start + _GAP), strict=True):
            shade(axes, x, ys[grid.generated_from] - _STEP / 2, start if x == 0 else wide - x, _STEP * (len(ys) - grid.generated_from))
    columns_of_words = zip(labels, heights, (start, start + _GAP), ("right", "left"), highlight.words(grid), strict=True)
    for words, ys, x, side, named in columns_of_words:
        for word, y, red in zip(words, ys, named, strict=True):
            colour, weight = (style().red, "bold") if red else (style().ink, "normal")
            axes.text(x, y, word, fontsize=_SIZE, color=colour, fontweight=weight, ha=side, va="center", parse_math=False)
    rows, columns = np.nonzero(grid.weights >= LEAST)
    weights, red = grid.weights[rows, columns], highlight.links(grid)[rows, columns]
    order = np.lexsort((weights, red))  # the darkest on top, and red above blue
    rows, columns = rows[order], columns[order]
    ends = [((start + 0.06, heights[0][row]), (start + _GAP - 0.06, heights[1][column])) for row, column in zip(rows, columns, strict=True)]
    colours = colours_of(weights[order], red[order])
    axes.add_collection(LineCollection(ends, colors=colours, linewidths=1.4, capstyle="round"), autolim=False)
