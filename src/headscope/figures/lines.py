"""Clark et al. 2019, Figures 1 and 5: two columns of words joined by lines as dark as their weight."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headscope.core.heads import HeadId
from headscope.drawing.look import grey, look, pt, style, wide
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
_WIDTH, _CLOSEST = 10.0, 0.5  # inches of a row of panels, and between columns at least
SIDES = ("attending", "attended to")


def draw(
    grids: Mapping[HeadId, Grid],
    n: str,
    signature: str,
    highlights: Mapping[HeadId, Highlight] | None = None,
    notes: Mapping[HeadId, str] | None = None,
) -> Drawing:
    """A figure with one panel per head; `n` is the amount of text: "12 words". Words and links of `highlights` are red;
    `notes` are below the names of heads.
    """
    if len(grids) > MOST:
        raise RunError(f"a figure has room for {MOST} heads, not {len(grids)}", "Name fewer with --heads, or draw thumbnails: --heads all")
    check_drawable(grids.values())
    with theme():
        step = _STEP * pt(_SIZE) / _SIZE
        panels = {head: [[label(word) for word in words] for words in (grid.rows, grid.columns)] for head, grid in grids.items()}
        above = 2.6 + bool(notes)  # lines of the title
        names = [f"Head {head}" for head in grids] + list((notes or {}).values())
        widths = [max(width_of(word, pt(_SIZE)) for labels in panels.values() for word in (*labels[side], SIDES[side])) for side in (0, 1)]
        gap = max(_CLOSEST, min(_GAP, wide(_WIDTH) - sum(widths) - _SPACE))
        panel = max(widths[0] + gap + widths[1], *(width_of(name, pt(_SIZE)) for name in names))
        tall = step * (max(len(side) for labels in panels.values() for side in labels) + above + 0.6)
        across = max(1, min(4, len(panels), int((wide(_WIDTH) + _SPACE) / (panel + _SPACE))))
        down = -(-len(panels) // across)
        figure = new_figure(max(across * (panel + _SPACE) + 0.1, 3.2), down * tall + 0.05, layout=None)
        width, height = figure.get_size_inches()
        between = max(_SPACE, (width - across * panel) / across) if look().width else _SPACE
        for number, (head, labels) in enumerate(panels.items()):
            left, top = between / 2 + number % across * (panel + between), 0.03 + number // across * tall
            axes = figure.add_axes((left / width, 1 - (top + tall) / height, panel / width, tall / height))
            frame = Frame(widths[0], gap, panel, tall, step, above)
            note = (notes or {}).get(head, "")
            _panel(axes, head, grids[head], labels, frame, (highlights or {}).get(head, Highlight()), note)
        sign(figure, n, signature)
    return figure


class Frame(NamedTuple):
    """The sizes of a panel in inches: the width of the first column, the gap between columns, the width and height of
    the panel, the height of a line; and the number of lines of its title.
    """

    first: float
    gap: float
    width: float
    height: float
    step: float
    above: float


def check_drawable(grids: Iterable[Grid]) -> None:
    """Raise an error for a grid without rows or columns."""
    if not all(grid.rows and grid.columns for grid in grids):
        raise RunError("without special tokens there is nothing to draw", "Use --specials show")


def shade(axes: Axes, x: float, y: float, width: float, height: float) -> None:
    """Draw a pale background behind text that a model generated."""
    from matplotlib.patches import Rectangle

    axes.add_patch(Rectangle((x, y), width, height, facecolor=style().shade, edgecolor="none", zorder=0))


def colours_of(weights: Float[np.ndarray, "line"], red: Bool[np.ndarray, "line"]) -> Float[np.ndarray, "line rgba"]:
    """The colour of each line: blue, or red if it is highlighted, and the more opaque the higher its weight."""
    from matplotlib.colors import to_rgb

    return np.column_stack([np.where(red[:, None], to_rgb(style().red), to_rgb(style().line)), np.clip(weights, 0, 1)])


def _panel(axes: Axes, head: HeadId, grid: Grid, labels: list[list[str]], frame: Frame, highlight: Highlight, note: str) -> None:
    """Draw one head, in inches from the upper left corner."""
    from matplotlib.collections import LineCollection

    step, start, end = frame.step, frame.first, frame.first + frame.gap
    axes.set_axis_off()
    axes.set_xlim(0, frame.width)
    axes.set_ylim(frame.height, 0)
    axes.text(0, 0.6 * step, f"Head {head}", fontsize=pt(9), fontweight="bold", color=style().ink, va="center")
    if note:
        axes.text(0, 1.7 * step, note, fontsize=pt(7.5), color=grey(0.35), va="center")
    for x, side, name in zip((start, end), ("right", "left"), SIDES, strict=True):
        axes.text(x, (frame.above - 0.55) * step, name, fontsize=pt(7), color=grey(0.4), ha=side, va="center", fontstyle="italic")
    most = max(map(len, labels))
    heights = [step * (frame.above + 0.5 + (most - len(side)) / 2 + np.arange(len(side))) for side in labels]
    if grid.generated_from is not None:
        for ys, x in zip(heights, (0.0, end), strict=True):
            shade(axes, x, ys[grid.generated_from] - step / 2, start if x == 0 else frame.width - x, step * (len(ys) - grid.generated_from))
    columns_of_words = zip(labels, heights, (start, end), ("right", "left"), highlight.words(grid), strict=True)
    for words, ys, x, side, named in columns_of_words:
        for word, y, red in zip(words, ys, named, strict=True):
            colour, weight = (style().red, "bold") if red else (style().ink, "normal")
            axes.text(x, y, word, fontsize=pt(_SIZE), color=colour, fontweight=weight, ha=side, va="center", parse_math=False)
    rows, columns = np.nonzero(grid.weights >= LEAST)
    weights, red = grid.weights[rows, columns], highlight.links(grid)[rows, columns]
    order = np.lexsort((weights, red))  # the darkest on top, and red above blue
    rows, columns = rows[order], columns[order]
    ends = [((start + 0.06, heights[0][row]), (end - 0.06, heights[1][column])) for row, column in zip(rows, columns, strict=True)]
    colours = colours_of(weights[order], red[order])
    axes.add_collection(LineCollection(ends, colors=colours, linewidths=1.4, capstyle="round"), autolim=False)
