"""The look of figures: their width, the size of letters, and one of three styles. All drawing code reads it here."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headscope.errors import RunError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's palette, which colour-blind readers can distinguish, without its yellow, which is invisible on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
SEQUENTIAL = "cividis"
DIVERGING = "RdBu_r"  # blue below the centre, red above
INK, RED = "#1b1f24", "#c8321e"  # as in the browser
SHADE = "#dcf1eb"  # behind text that a model generated

WIDTHS = {"column": 77.0, "page": 160.0}  # millimetres: a column and both columns of a page of the ACL
FONT_SIZE, NARROW_SIZE = 9.0, 7.5  # points of the letters that sizes are relative to; of narrow figures
_NARROW = 4.4  # inches: in a narrower figure, panels and legend entries are below each other
_HALF, _TITLE = 18, 42  # letters of half a line of a legend, and of a line of a title, in a narrow figure
_LEAST = 4.5  # points of the smallest letters


@dataclass(frozen=True)
class Style:
    """The colours of a figure. `maps` replaces colour maps by others."""

    colours: tuple[str, ...] = COLOURS
    ink: str = INK
    paper: str = "white"
    ground: str = "white"  # of the whole figure: `none` is transparent
    red: str = RED
    line: str = COLOURS[0]
    shade: str = SHADE
    greys: tuple[float, float] = (0.0, 1.0)  # the greys of ink and paper
    maps: Mapping[str, str] = field(default_factory=dict)


STYLES = {
    "colour": Style(),
    # Prints without colour: series differ by lightness and by marker, links by lightness.
    "grey": Style(
        colours=("#000000", "#8a8a8a", "#4d4d4d", "#b0b0b0", "#6b6b6b", "#9d9d9d", "#2b2b2b"),
        ink="#000000", red="#000000", line="#9a9a9a", shade="#e6e6e6",
        maps={SEQUENTIAL: "Greys", DIVERGING: "Greys", "RdBu": "Greys_r", "PuOr_r": "Greys", "Blues": "Greys"},
    ),
    # For dark pages, with their colours and a transparent background.
    "dark": Style(
        colours=("#4aa3df", "#f08a45", "#2fc79a", "#e0a3c6", "#8fd0f7", "#f2bd4d", "#e6e9ee"),
        ink="#e6e9ee", paper="#14171b", ground="none", red="#ff7a66", line="#4aa3df", shade="#20413a",
        greys=(0.92, 0.12),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Look:
    """The options of every figure: `width` is `column`, `page` or millimetres, `font_size` points, `style` colour, grey
    or dark; with `signature` the signature is written into the picture.
    """

    width: str | float | None = None
    font_size: float | None = None
    style: str = "colour"
    signature: bool = False

    def __post_init__(self) -> None:
        if self.style not in STYLES:
            raise RunError(f"there is no style {self.style!r}", f"Use {', '.join(STYLES)}")
        if self.font_size is not None and not 4 <= self.font_size <= 24:
            raise RunError(f"a font size of {self.font_size:g} points is too small or too large", "Use 4 to 24")
        if (inches := self.inches) is not None and not 1.5 <= inches <= 40:
            raise RunError(f"a figure cannot be {self.width} mm wide", "Use 40 to 1000, column or page")

    @property
    def inches(self) -> float | None:
        """The requested width; None for the natural width."""
        if self.width is None:
            return None
        try:
            return WIDTHS.get(str(self.width), 0.0) / 25.4 or float(self.width) / 25.4
        except ValueError:
            raise RunError(f"there is no width {self.width!r}", f"Use {', '.join(WIDTHS)} or a number of millimetres") from None

    @property
    def size(self) -> float:
        """The base size of letters in points, to which other sizes are relative."""
        return self.font_size or (NARROW_SIZE if (self.inches or _NARROW) < _NARROW else FONT_SIZE)


OPTIONS = ("width", "font_size", "style", "signature")
_LOOK: ContextVar[Look] = ContextVar("look", default=Look())  # noqa: B039 - it is frozen


def look() -> Look:
    """The look of figures that are drawn now."""
    return _LOOK.get()


@contextmanager
def using(chosen: Look) -> Iterator[None]:
    """Draw figures with a look."""
    token = _LOOK.set(chosen)
    try:
        yield
    finally:
        _LOOK.reset(token)


def split_look(choices: Mapping[str, Any]) -> tuple[Look, dict[str, Any]]:
    """The look that the choices of a figure set, else the current one, and the other choices."""
    chosen = {name: choices[name] for name in OPTIONS if choices.get(name) is not None}
    others = {name: value for name, value in choices.items() if name not in OPTIONS}
    return (Look(**chosen) if chosen else look()), others


def find_look(options: Mapping[str, Any]) -> Look:
    """The look that options set; an error for an option that is not one of all figures."""
    chosen, others = split_look(options)
    if others:
        raise RunError(f"figures have no option {next(iter(others))!r}", f"Use {', '.join(OPTIONS)}")
    return chosen


def style() -> Style:
    """The colours of figures that are drawn now."""
    return STYLES[look().style]


def wide(natural: float) -> float:
    """The width of a figure in inches: the requested one, or else `natural`."""
    return look().inches or natural


def narrow() -> bool:
    """Whether the figure is too narrow for panels beside each other."""
    return wide(2 * _NARROW) < _NARROW


def across(number: int) -> int:
    """How many panels, or entries of a legend, are in a row: `number`, or 1 in a narrow figure."""
    return 1 if narrow() else number


def pt(size: float) -> float:
    """A size of letters in points, scaled from the default font size to the current one."""
    return max(size * look().size / FONT_SIZE, min(size, _LEAST))


def hue(number: int) -> str:
    """The colour of a series, counted from 0."""
    colours = style().colours
    return colours[number % len(colours)]


def grey(level: float) -> str:
    """A grey between ink (0) and paper (1)."""
    black, white = style().greys
    return f"{black + (white - black) * level:.3f}"


def legend_beside(axes: Axes, size: float = 8) -> None:
    """Put a legend beside the axes, where it covers no data; in a narrow figure between title and axes."""
    if not narrow():
        axes.legend(fontsize=pt(size), loc="center left", bbox_to_anchor=(1.0, 0.5))
        return
    labels = axes.get_legend_handles_labels()[1]
    side = 2 if max(map(len, labels)) <= _HALF else 1
    axes.legend(fontsize=pt(size), loc="lower left", bbox_to_anchor=(-0.02, 0.99), ncols=side, borderpad=0.2, columnspacing=1.2)
    pad = 6 + 1.62 * pt(size) * -(-len(labels) // side)
    axes.set_title(fitted(axes.get_title(loc="left")), loc="left", fontsize=pt(9), pad=pad)


def fitted(title: str) -> str:
    """A title in lines that fit into a narrow figure."""
    return textwrap.fill(title, _TITLE) if narrow() else title


def colour_map(name: str) -> str:
    """The colour map that replaces another one in this style."""
    return style().maps.get(name, name)
