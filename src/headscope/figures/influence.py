"""Influence between the words of one text as heatmaps, one panel per measure and layer (Westera §4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from headscope.drawing.look import SEQUENTIAL, colour_map, pt, style, wide
from headscope.drawing.theme import new_figure, sign, theme
from headscope.drawing.words import label, width_of
from headscope.figures.lines import check_drawable
from headscope.gallery.grids import Grid
from headscope.gallery.highlight import Highlight

if TYPE_CHECKING:
    from jaxtyping import Float
    from matplotlib.axes import Axes

    from headscope.drawing.figure import Drawing

_ACROSS, _WIDTH = 4, 11.5  # panels per row, and inches
_LONGEST = 16  # letters of a word
FAR = 1.5  # times the rest: a diagonal as high as that does not set the scale, as in the browser
_DIGITS = 0.24  # inches of a cell that has room for a number


def draw(panels: Mapping[str, Grid], n: str, signature: str, highlight: Highlight | None = None) -> Drawing:
    """A figure with one heatmap per title; rows are influenced by columns. `n` is the amount of text: "12 words"."""
    check_drawable(panels.values())
    with theme():
        positions = max(len(grid.rows) for grid in panels.values())
        room = min(2.2 if len(panels) > 1 else 5.5, wide(_WIDTH) - 2.0)
        cell = float(np.clip(room / positions, 0.11, 0.32))
        words = max(width_of(label(word, _LONGEST), 8) for grid in panels.values() for word in grid.rows)
        broad, tall = cell * positions + words + 0.95, cell * positions + words + 0.85
        across = max(1, min(_ACROSS, len(panels), int(wide(_WIDTH) / broad)))
        down = -(-len(panels) // across)
        figure = new_figure(max(across * broad, 3.4), down * tall + 0.25)
        axes = figure.subplots(down, across, squeeze=False).ravel()
        for place, (title, grid) in zip(axes, panels.items(), strict=False):
            _panel(figure, place, title, grid, cell, highlight or Highlight())
        for place in axes[len(panels) :]:
            place.set_axis_off()
        sign(figure, n, signature)
    return figure


def scale_of(weights: Float[np.ndarray, "row column"]) -> tuple[float, bool]:
    """The value of the last colour, and whether values exceed it, because a large diagonal does not set the scale."""
    most = float(weights.max())
    apart = float(weights[~np.eye(weights.shape[0], weights.shape[1], dtype=bool)].max(initial=0))
    return (apart, True) if most > FAR * apart > 0 else (most or 1.0, False)


def _panel(figure: Drawing, axes: Axes, title: str, grid: Grid, cell: float, highlight: Highlight) -> None:
    from matplotlib.colors import to_rgb

    most, over = scale_of(grid.weights)
    image = axes.imshow(grid.weights, cmap=colour_map(SEQUENTIAL), vmin=0, vmax=most, interpolation="nearest")
    axes.grid(False)
    axes.spines[:].set_visible(False)
    size = float(np.clip(cell * 72 * 0.8, 5, 8))
    axes.set_xticks(range(len(grid.columns)), [label(word, _LONGEST) for word in grid.columns], rotation=90, fontsize=size)
    axes.set_yticks(range(len(grid.rows)), [label(word, _LONGEST) for word in grid.rows], fontsize=size)
    axes.tick_params(length=0, top=False, labeltop=True, labelbottom=False)
    axes.xaxis.set_label_position("top")
    axes.set_xlabel(f"{title}\ninfluence of", fontsize=pt(8), loc="left")
    axes.set_ylabel("on", fontsize=pt(8), loc="top", rotation=0)
    for ticks, named in zip((axes.get_yticklabels(), axes.get_xticklabels()), highlight.words(grid), strict=True):
        for tick, red in zip(ticks, named, strict=True):
            tick.set(color=style().red if red else style().ink, fontweight="bold" if red else "normal")
    _outline(axes, grid, highlight)
    if grid.generated_from is not None:
        for tick in (*axes.get_yticklabels()[grid.generated_from :], *axes.get_xticklabels()[grid.generated_from :]):
            tick.set_bbox({"facecolor": style().shade, "edgecolor": "none", "pad": 1.2})
    if cell >= _DIGITS:
        for (row, column), value in np.ndenumerate(grid.weights):
            ink = ink_on(to_rgb(image.cmap(image.norm(value))))
            axes.text(column, row, _number(value), ha="center", va="center", fontsize=pt(5.5), color=ink)
    bar = figure.colorbar(image, ax=axes, shrink=0.7, pad=0.02, extend="max" if over else "neither")
    bar.ax.tick_params(labelsize=pt(7))
    bar.set_label("influence", fontsize=pt(7))


def _outline(axes: Axes, grid: Grid, highlight: Highlight) -> None:
    """Draw a red frame around each highlighted cell."""
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    cells = [Rectangle((column - 0.5, row - 0.5), 1, 1) for row, column in zip(*np.nonzero(highlight.links(grid)), strict=True)]
    if cells:
        axes.add_collection(PatchCollection(cells, facecolors="none", edgecolors=style().red, linewidths=1.4), autolim=False)


def _number(value: float) -> str:
    """A number of at most three characters: .34, 1.2, 12."""
    if value >= 9.95:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 0.995 else f"{value:.2f}".removeprefix("0")


def ink_on(colour: tuple[float, ...]) -> str:
    """Black or white, whichever can be read on a colour."""
    light = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]]
    return "black" if 0.2126 * light[0] + 0.7152 * light[1] + 0.0722 * light[2] > 0.18 else "white"
