"""Words in figures: shortened, measured, and checked against the letters of the font."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import cache

from headscope.drawing.look import COLOURS, INK, RED

__all__ = ["INK", "LINE", "RED", "label", "lacking", "width_of"]

LINE = COLOURS[0]
_LONGEST = 28  # letters of a word


def label(word: str, longest: int = _LONGEST) -> str:
    """A word as it is drawn: shortened to `longest`, and without characters that a picture cannot hold."""
    shown = "".join("\N{REPLACEMENT CHARACTER}" if unicodedata.category(mark) in ("Cc", "Cs") else mark for mark in word)
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def lacking(words: Iterable[str]) -> str:
    """The letters that the figures' font lacks: a PNG or PDF shows boxes for them."""
    return "".join(sorted({mark for word in words for mark in label(word)} - _letters()))


def width_of(word: str, size: float) -> float:
    """The width in inches of a word in letters of `size` points."""
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    width, _, _ = text_to_path.get_text_width_height_descent(word, FontProperties(size=size), ismath=False)
    return float(width) / 72


@cache
def _letters() -> frozenset[str]:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    return frozenset(map(chr, get_font(findfont(FontProperties())).get_charmap()))
