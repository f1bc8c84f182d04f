"""Numbers in columns beside a panel, so that none is read as the place of a mark: ours, and what was published."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headscope.drawing.theme import COLOURS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OURS, PAPER = COLOURS[0], COLOURS[1]
_SIZE, _FIRST, _SECOND = 8.0, 30.0, 58.0  # points: of the letters, and from the axes to the right end of each column


def columns(axes: Axes, ours: Sequence[str], published: Sequence[str], top: float = -0.75) -> None:
    """Write two columns right of the axes, under the headings `ours` and `paper`, one line per row."""
    for x, heading, texts, colour in ((_FIRST, "ours", ours, OURS), (_SECOND, "paper", published, PAPER)):
        for y, text in ((top, heading), *enumerate(texts)):
            place: dict[str, Any] = {"xy": (1, y), "xycoords": axes.get_yaxis_transform(), "xytext": (x, 0), "textcoords": "offset points"}
            axes.annotate(text, ha="right", va="center", fontsize=_SIZE, color=colour, annotation_clip=False, **place)


def mark(axes: Axes, y: float, value: float, low: float, high: float, published: float | None, colour: str = OURS) -> None:
    """Our value as a dot with its interval, and what was published as an open diamond below it."""
    if low == low and high == high:
        axes.plot([low, high], [y - 0.12] * 2, color=colour, linewidth=1.6, alpha=0.6, solid_capstyle="butt", zorder=2)
    if value == value:
        axes.plot([value], [y - 0.12], "o", color=colour, markersize=5, linestyle="none", zorder=3)
    if published is not None:
        axes.plot([published], [y + 0.16], "D", color=PAPER, markerfacecolor="none", markersize=4.5, linestyle="none", zorder=3)


def percent(value: float | None, places: int = 0) -> str:
    """A number of percent, or a dash."""
    return "–" if value is None or value != value else f"{value:.{places}f}"
