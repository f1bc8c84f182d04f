"""All heads of a model on one text as thumbnails, one row per layer: bertviz's model view (Vig 2019)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.heads import HeadId
from headscope.drawing.look import SEQUENTIAL, colour_map, grey, pt, style, wide
from headscope.drawing.theme import new_figure, sign, theme
from headscope.drawing.words import label
from headscope.figures.lines import check_drawable, colours_of
from headscope.gallery.grids import Grid
from headscope.gallery.highlight import Highlight

if TYPE_CHECKING:
    from jaxtyping import Float
    from matplotlib.axes import Axes

    from headscope.drawing.figure import Drawing

LEAST = 0.05  # a fainter line cannot be seen in a thumbnail
_SIDE, _GAP = 0.52, 0.09  # inches of a thumbnail, and between two
_LEFT, _TOP, _BETWEEN = 0.42, 0.62, 0.5  # inches left of the thumbnails, above them, and between kinds of attention
LONG = 40  # most positions of a text whose lines can be distinguished; longer ones are drawn as heatmaps
_MOST = 1.2  # inches from one thumbnail to the next
_LONGEST = 110  # letters of the title


def draw(grids: Mapping[HeadId, Grid], title: str, n: str, signature: str, highlights: Mapping[HeadId, Highlight] | None = None) -> Drawing:
    """A figure with one thumbnail per head: on the left the attending words, on the right those attended to, and lines
    as dark as the weights.

    For a text of more than 40 words, thumbnails are heatmaps: rows attend to columns, and colour is the square root of
    the weight.
    """
    check_drawable(grids.values())
    kinds = list(dict.fromkeys(head.kind for head in grids))
    across = max(head.head for head in grids) + 1
    step = min(_MOST, (wide(_LEFT + across * (_SIDE + _GAP) + 0.1) - _LEFT - 0.1) / across)
    side = step * _SIDE / (_SIDE + _GAP)
    layers = {kind: sorted({head.layer for head in grids if head.kind == kind}) for kind in kinds}
    tops = np.cumsum([0, *(len(layers[kind]) * step + _BETWEEN for kind in kinds)]) + _TOP
    width, height = wide(max(_LEFT + across * step + 0.1, 3.4)), float(tops[-1]) - _BETWEEN + 0.1
    with theme():
        figure = new_figure(width, height, layout=None)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        room = min(_LONGEST, int(width * 72 / 4.6))
        axes.text(_LEFT, 0.16, label(title, room), fontsize=pt(8), color=style().ink, va="center", parse_math=False)
        for kind, top in zip(kinds, tops, strict=False):
            name = f"{kind} head" if len(kinds) > 1 else "head"
            axes.text(_LEFT, top - 0.24, name, fontsize=pt(7), color=grey(0.4), va="center")
            axes.text(_LEFT - 0.08, top - 0.08, "layer", fontsize=pt(7), color=grey(0.4), ha="right", va="center")
            for head in range(max(head_id.head for head_id in grids if head_id.kind == kind) + 1):
                middle = _LEFT + head * step + side / 2
                axes.text(middle, top - 0.08, str(head + 1), fontsize=pt(7), color=style().ink, ha="center", va="center")
            for row, layer in enumerate(layers[kind]):
                middle = top + row * step + side / 2
                axes.text(_LEFT - 0.08, middle, str(layer + 1), fontsize=pt(7), color=style().ink, ha="right", va="center")
        places = {
            head: (_LEFT + head.head * step, float(tops[kinds.index(head.kind)]) + layers[head.kind].index(head.layer) * step)
            for head in grids
        }
        if max(max(grid.weights.shape) for grid in grids.values()) > LONG:
            _maps(axes, grids, places, side)
        else:
            _lines(axes, grids, places, side, highlights or {})
        axes.set_xlim(0, width)
        axes.set_ylim(height, 0)
        sign(figure, n, signature)
    return figure


def _maps(axes: Axes, grids: Mapping[HeadId, Grid], places: Mapping[HeadId, tuple[float, float]], side: float) -> None:
    for head, grid in grids.items():
        x, y = places[head]
        extent = (x, x + side, y + side, y)
        weights = np.sqrt(shrunk(grid.weights))
        axes.imshow(weights, cmap=colour_map(SEQUENTIAL), vmin=0, vmax=1, extent=extent, aspect="auto", interpolation="nearest")


def shrunk(weights: Float[np.ndarray, "row column"], most: int = 64) -> Float[np.ndarray, "row column"]:
    """A map reduced to at most `most` rows and columns, each cell the largest weight of a block, as in the browser."""
    step = -(-max(weights.shape) // most)
    for axis, size in enumerate(weights.shape):
        weights = np.maximum.reduceat(weights, range(0, size, step), axis)
    return weights


def _lines(
    axes: Axes,
    grids: Mapping[HeadId, Grid],
    places: Mapping[HeadId, tuple[float, float]],
    side: float,
    highlights: Mapping[HeadId, Highlight],
) -> None:
    """Draw the frames and lines of all heads, in inches from the upper left corner."""
    from matplotlib.collections import LineCollection, PatchCollection
    from matplotlib.patches import Rectangle

    frames = [Rectangle(place, side, side) for place in places.values()]
    axes.add_collection(PatchCollection(frames, facecolors="none", edgecolors=grey(0.8), linewidths=0.5), autolim=False)
    ends, weights, red = [], [], []
    for head, grid in grids.items():
        x, y = places[head]
        heights = [y + side * (np.arange(size) + 0.5) / size for size in grid.weights.shape]
        marked = highlights.get(head, Highlight()).links(grid)
        for row, column in zip(*np.nonzero(grid.weights >= LEAST), strict=True):
            ends.append(((x + 0.02, heights[0][row]), (x + side - 0.02, heights[1][column])))
            weights.append(round(float(grid.weights[row, column]), 1) or LEAST)
            red.append(bool(marked[row, column]))
    colours = colours_of(np.array(weights), np.array(red, dtype=bool))
    order = np.lexsort((weights, red))
    lines = LineCollection([ends[at] for at in order], colors=colours[order], linewidths=0.7)
    axes.add_collection(lines, autolim=False)
