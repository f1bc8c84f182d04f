"""Whether the texts of a figure can be read: no text is clipped by the edge, and no two texts overlap."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.text import Text
    from matplotlib.transforms import Bbox

_SLACK = 1.5  # pixels by which boxes may overlap: a box is larger than its letters


def unreadable(figure: Figure) -> list[str]:
    """The texts that the edge of the figure clips, and the pairs of texts that overlap."""
    boxes = text_boxes(figure)
    width, height = figure.bbox.size
    clipped = [
        f"clipped: {name!r}"
        for name, box in boxes
        if box.x0 < -_SLACK or box.y0 < -_SLACK or box.x1 > width + _SLACK or box.y1 > height + _SLACK
    ]
    overlapping = [f"{one!r} on {other!r}" for (one, a), (other, b) in combinations(boxes, 2) if _overlap(a, b)]
    return clipped + overlapping


def text_boxes(figure: Figure) -> list[tuple[str, Bbox]]:
    """Each drawn text with its box in pixels."""
    from matplotlib.axis import Axis
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.text import Text

    renderer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(renderer)
    undrawn = {text for axis in figure.findobj(Axis) for text in _undrawn(axis)}
    shown = [text for text in figure.findobj(Text) if text.get_text().strip() and text.get_visible() and text not in undrawn]
    boxes = [(text.get_text(), Text.get_window_extent(text, renderer)) for text in shown]  # without arrows
    return [(text, box) for text, box in boxes if np.isfinite(box.extents).all()]


def _undrawn(axis: Axis) -> list[Text]:
    """The labels of an axis that are not drawn: all if the axis is hidden, else those of ticks outside its limits."""
    hidden = not (axis.axes.get_visible() and axis.axes.axison and axis.get_visible())
    drawn = [] if hidden else getattr(axis, "_update_ticks")()  # noqa: B009 - which ticks are drawn is not public
    ticks = [tick for tick in (*axis.majorTicks, *axis.minorTicks) if tick not in drawn]
    return [label for tick in ticks for label in (tick.label1, tick.label2)] + ([axis.label, axis.offsetText] if hidden else [])


def _overlap(one: Bbox, other: Bbox) -> bool:
    wide = min(one.x1, other.x1) - max(one.x0, other.x0)
    tall = min(one.y1, other.y1) - max(one.y0, other.y0)
    return bool(wide > _SLACK and tall > _SLACK)
