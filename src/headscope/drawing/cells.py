"""Numbers in figures: grids of coloured cells with readable digits, and columns of numbers beside a panel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.drawing.look import DIVERGING, SEQUENTIAL, colour_map, hue

if TYPE_CHECKING:
    from jaxtyping import Float
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

    Grid = Float[np.ndarray, "row column"]

_SMALL = 0.01  # numbers below this are written in thousandths
_BREAK = 0.1791  # the luminance on which black and white have the same contrast: sqrt(1.05 * 0.05) - 0.05
_SIZE, _FIRST, _SECOND = 8.0, 30.0, 58.0  # points: of the letters, and from the axes to the right end of each column


@dataclass(frozen=True)
class Scale:
    """How numbers become colours: symmetric around a `centre`, or from `low` without one."""

    low: float
    high: float
    colours: str = SEQUENTIAL
    centre: float | None = None

    @classmethod
    def of(cls, grid: Grid, centre: float | None = None, colours: str = DIVERGING) -> Scale:
        """The scale from 0 to the largest number if none is negative; otherwise around `centre`, by default 0."""
        values = grid[np.isfinite(grid)]
        if not len(values) or values.min() >= 0:
            return cls(0.0, float(values.max(initial=0.0)) or 1.0)
        return cls.around(grid, 0.0 if centre is None else centre, colours)

    @classmethod
    def around(cls, grid: Grid, centre: float = 0.0, colours: str = DIVERGING) -> Scale:
        """The scale around a centre, up to the number that is furthest from it."""
        reach = float(np.abs(grid[np.isfinite(grid)] - centre).max(initial=0.0)) or 1.0
        return cls(centre - reach, centre + reach, colours, centre)

    @property
    def _factor(self) -> int:
        return 1000 if max(abs(self.low), abs(self.high)) < _SMALL else 1

    @property
    def note(self) -> str:
        """The addition to a title that names the unit of the cells; "" if none is needed."""
        return " (in the cells: thousandths)" if self._factor > 1 else ""

    def digits(self, grid: Grid) -> dict[tuple[int, int], str]:
        """The text of each cell: about three characters, all with the same number of decimals."""
        largest = self._factor * max(abs(self.low), abs(self.high))
        places = 0 if largest >= 100 else 1 if largest >= 3 else 2 if largest >= 0.1 else 3
        return {place: short(self._factor * value, places) for place, value in np.ndenumerate(grid) if np.isfinite(value)}

    def draw(self, axes: Axes, grid: Grid, layers: Sequence[int]) -> AxesImage:
        """Draw one row per layer and one column per head, both counted from 1, and return the image."""
        image = axes.imshow(grid, cmap=colour_map(self.colours), aspect="auto", vmin=self.low, vmax=self.high)
        axes.grid(False)
        axes.set_xticks(range(grid.shape[1]), [str(head + 1) for head in range(grid.shape[1])])
        axes.set_yticks(range(len(layers)), [str(layer) for layer in layers])
        axes.set_xlabel("Head")
        axes.set_ylabel("Layer")
        return image


def write(image: AxesImage, texts: dict[tuple[int, int], str], size: float) -> None:
    """Write a text into cells, black or white, whichever has more contrast on the colour of the cell."""
    grid = np.ma.filled(np.ma.asarray(image.get_array()).astype(float), np.nan)
    for (row, column), text in texts.items():
        ink = ink_on(image.to_rgba(grid[row : row + 1, column : column + 1])[0, 0])
        image.axes.text(column, row, text, ha="center", va="center", fontsize=size, color=ink)


def ink_on(colour: Sequence[float]) -> str:
    """Black or white, whichever has the higher contrast on a colour: red, green, blue, from 0 to 1."""
    return "black" if luminance(colour) > _BREAK else "white"


def luminance(colour: Sequence[float]) -> float:
    """The relative luminance of a colour, from 0 (black) to 1 (white), as WCAG defines it."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]]
    return float(np.dot([0.2126, 0.7152, 0.0722], linear))


def short(value: float, places: int) -> str:
    """A number without the 0 before its point, with a true minus sign; a number that rounds to 0 has no sign."""
    text = f"{abs(value):.{places}f}"
    minus = "−" if value < 0 and float(text) else ""
    return minus + (text.removeprefix("0") if places > 1 else text)


def columns(axes: Axes, ours: Sequence[str], published: Sequence[str], top: float = -0.75) -> None:
    """Write two columns right of the axes, under the headings `ours` and `paper`, one line per row."""
    for x, heading, texts, colour in ((_FIRST, "ours", ours, hue(0)), (_SECOND, "paper", published, hue(1))):
        for y, text in ((top, heading), *enumerate(texts)):
            place: dict[str, Any] = {"xy": (1, y), "xycoords": axes.get_yaxis_transform(), "xytext": (x, 0), "textcoords": "offset points"}
            axes.annotate(text, ha="right", va="center", fontsize=_SIZE, color=colour or hue(0), annotation_clip=False, **place)


def mark(axes: Axes, y: float, value: float, low: float, high: float, published: float | None, colour: str | None = None) -> None:
    """Draw our value as a dot with its interval, and the published value as an open diamond below it."""
    if low == low and high == high:
        axes.plot([low, high], [y - 0.12] * 2, color=colour or hue(0), linewidth=1.6, alpha=0.6, solid_capstyle="butt", zorder=2)
    if value == value:
        axes.plot([value], [y - 0.12], "o", color=colour or hue(0), markersize=5, linestyle="none", zorder=3)
    if published is not None:
        axes.plot([published], [y + 0.16], "D", color=hue(1), markerfacecolor="none", markersize=4.5, linestyle="none", zorder=3)


def percent(value: float | None, places: int = 0) -> str:
    """A percentage without its sign, or a dash if there is none."""
    return "–" if value is None or value != value else f"{value:.{places}f}"
