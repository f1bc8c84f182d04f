"""A text shaded by the weight of its words, the found phrases underlined, and beside their scores: a figure of one
text.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.document import Word
from headscope.drawing.theme import COLOURS, sign, theme
from headscope.drawing.words import INK, label, width_of
from headscope.errors import RunError
from headscope.studies.keywords.finder import KeywordResult

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST = 1500  # words of a figure
DEPTH = 0.75  # how dark a word of weight 1 is, so that its letters can be read; as in the browser
_SIZE, _STEP, _PARAGRAPH = 9.0, 0.225, 0.09  # points of a word; inches between lines, and more between paragraphs
_WIDTH, _EDGE, _LIST = 5.6, 0.15, 2.6  # inches of the text, around it, and of the list of phrases


def draw(found: KeywordResult, top: int, signature: str) -> Figure:
    """The text to the left, its best phrases to the right."""
    from matplotlib.figure import Figure

    words = found.document.words
    if len(words) > MOST:
        raise RunError(f"a figure has room for {MOST:,} words, not {len(words):,}", "Write a page: -o page.html")
    with theme():
        places, lowest = _places(found)
        shown = found.phrases[:top]
        tall = max(lowest + 0.2, _STEP * (len(shown) + 2)) + 0.3
        wide_all = _WIDTH + _LIST + 3 * _EDGE
        figure = Figure(figsize=(wide_all, tall))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_axis_off()
        axes.set_xlim(0, wide_all)
        axes.set_ylim(tall, 0)
        _shade(axes, found, places, top)
        _list(axes, found, top)
        f1 = found.trained
        learnt = f"learnt from {f1.texts:,} documents of {f1.corpus}, F1 of words {f1.f1:.2f}"
        sign(figure, f"{len(words):,} words; {learnt}", signature)
    return figure


def _places(found: KeywordResult) -> tuple[list[tuple[float, float, float]], float]:
    """Where each word stands, in inches from the upper left corner (left, middle, width), and how low the last line
    is.
    """
    space = width_of("n n", _SIZE) - width_of("nn", _SIZE)
    places: list[tuple[float, float, float]] = []
    x, y = _EDGE, _EDGE + _STEP / 2
    for number, sentences in enumerate(found.document.paragraphs()):
        if number:
            x, y = _EDGE, y + _STEP + _PARAGRAPH
        for together in _together(word for sentence in sentences for word in sentence.words):
            widths = [width_of(label(word.form), _SIZE) for word in together]
            if x + sum(widths) > _EDGE + _WIDTH and x > _EDGE:
                x, y = _EDGE, y + _STEP
            for width in widths:
                places.append((x, y, width))
                x += width
            x += space
    return places, y


def _together(words: Iterable[Word]) -> Iterator[list[Word]]:
    """Words with no space between them, which stay on one line."""
    group: list[Word] = []
    for word in words:
        group.append(word)
        if word.space_after:
            yield group
            group = []
    if group:
        yield group


def _shade(axes: Axes, found: KeywordResult, places: list[tuple[float, float, float]], top: int) -> None:
    from matplotlib.collections import LineCollection, PatchCollection
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Rectangle

    boxes = [Rectangle((x, y - 0.42 * _STEP), width, 0.78 * _STEP) for x, y, width in places]
    colours = np.column_stack([np.tile(to_rgb(COLOURS[0]), (len(boxes), 1)), np.clip(found.weights, 0, 1) * DEPTH])
    axes.add_collection(PatchCollection(boxes, facecolors=colours, linewidths=0), autolim=False)
    for word, (x, y, _) in zip(found.document.words, places, strict=True):
        axes.text(x, y, label(word.form), fontsize=_SIZE, color=INK, ha="left", va="center_baseline", parse_math=False)
    lines = []
    for start, end in (place for phrase in found.phrases[:top] for place in phrase.places):
        rows: dict[float, list[float]] = {}
        for x, y, width in places[start:end]:
            rows.setdefault(y, []).extend([x, x + width])
        lines += [((min(xs), y + 0.42 * _STEP), (max(xs), y + 0.42 * _STEP)) for y, xs in rows.items()]
    axes.add_collection(LineCollection(lines, colors=COLOURS[1], linewidths=1.6), autolim=False)


def _list(axes: Axes, found: KeywordResult, top: int) -> None:
    left, right = _WIDTH + 2 * _EDGE, _WIDTH + 2 * _EDGE + _LIST
    axes.plot([left - _EDGE / 2] * 2, [_EDGE, _EDGE + _STEP * (len(found.phrases[:top]) + 1)], color="0.8", linewidth=0.6)
    for x, text, side in ((left, "best phrases", "left"), (right - 0.42, "score", "right"), (right, "places", "right")):
        axes.text(x, _EDGE + _STEP / 2, text, fontsize=7, color="0.4", ha=side, va="center_baseline")
    for number, phrase in enumerate(found.phrases[:top], 1):
        y = _EDGE + _STEP * (number + 0.5)
        text = label(phrase.text)
        while width_of(text, 8) > _LIST - 0.85 and len(text) > 1:
            text = text[:-2] + "…"
        axes.text(left, y, text, fontsize=8, color=INK, va="center_baseline", parse_math=False)
        axes.text(right - 0.42, y, f"{phrase.score:.2f}", fontsize=8, color=INK, ha="right", va="center_baseline")
        axes.text(right, y, str(len(phrase.places)), fontsize=8, color=INK, ha="right", va="center_baseline")
