"""The figure of lines between words: darker lines have larger weights, and words remain text."""

from __future__ import annotations

import re
from html import unescape

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from numpy.testing import assert_allclose

import headscope as hs
from headscope.core.heads import HeadId
from headscope.drawing.theme import COLOURS, render
from headscope.drawing.words import label, lacking
from headscope.errors import RunError
from headscope.figures import lines
from headscope.gallery.grids import Grid

WORDS = ("The", "cat", "sat", "$x$ & <b>")
WEIGHTS = np.array([[0.5, 0.25, 0.25, 0.0], [0.005, 0.995, 0.0, 0.0], [0.1, 0.2, 0.3, 0.4], [0.0, 0.0, 0.0, 1.0]])


def grid(words: tuple[str, ...] = WORDS, weights: np.ndarray = WEIGHTS) -> Grid:
    return Grid(weights, words, words)


def test_the_opacity_of_a_line_is_its_weight_and_lines_join_the_right_words() -> None:
    figure = lines.draw({HeadId("encoder", 7, 9): grid()}, "4 words", "signed")
    (axes,) = figure.axes
    (collection,) = axes.collections
    places = {
        text.get_text(): text.get_position()[1]
        for text in axes.texts
        if text.get_horizontalalignment() == "left" and text.get_text() in WORDS
    }
    found = np.zeros_like(WEIGHTS)
    row_of = {round(y, 6): WORDS.index(word) for word, y in places.items()}
    for line, colour in zip(collection.get_paths(), np.asarray(collection.get_edgecolor()), strict=True):
        start, end = np.asarray(line.vertices)[:, 1]
        found[row_of[round(start, 6)], row_of[round(end, 6)]] = colour[3]
        assert_allclose(colour[:3], to_rgb(COLOURS[0]))
    assert_allclose(found, np.where(WEIGHTS >= 0.01, WEIGHTS, 0))
    assert axes.texts[0].get_text() == "Head 8-10"
    assert figure.caption.text == "n = 4 words.\nsigned"
    assert not figure.texts, "the caption is not in the picture"


def test_words_are_text_in_the_svg_even_if_they_look_like_formulas() -> None:
    svg = render(lines.draw({HeadId("cross", 0, 0): grid()}, "4 words", "signed"), "svg").decode()
    texts = [unescape(text) for text in re.findall(r"<text[^>]*>([^<]*)</text>", svg)]
    for word in WORDS:
        assert texts.count(word) == 2
    assert "Head cross/1-1" in texts


@pytest.mark.parametrize("suffix", ["svg", "pdf", "png"])
def test_any_script_is_drawn_without_a_warning(suffix: str) -> None:
    written = ("它", "שלום", "👩‍👩‍👧", "\x07\ud800", "a" * 200)
    figure = lines.draw({HeadId("encoder", 0, 0): grid(written, np.full((5, 5), 0.2))}, "5 words", "signed")
    assert len(render(figure, suffix)) > 1000
    assert lacking(written) == "它👧👩"
    assert label("a" * 200) == "a" * 27 + "…"


def test_eight_heads_fit_without_overlap_and_nine_are_refused() -> None:
    heads = {HeadId("encoder", 0, n): grid() for n in range(9)}
    with pytest.raises(RunError, match="room for 8 heads, not 9"):
        lines.draw(heads, "4 words", "signed")
    del heads[HeadId("encoder", 0, 8)]
    figure = lines.draw(heads, "4 words", "signed")
    assert len(figure.axes) == 8
    boxes = [axes.get_position().bounds for axes in figure.axes]
    for number, (x, y, width, height) in enumerate(boxes):
        assert x >= 0
        assert y >= 0
        assert x + width <= 1 + 1e-9
        assert y + height <= 1 + 1e-9
        for other_x, other_y, _, _ in boxes[:number]:
            assert abs(other_x - x) > width - 1e-9 or abs(other_y - y) > height - 1e-9


def test_a_view_drawn_twice_has_the_same_bytes_and_an_empty_grid_is_refused() -> None:
    view = hs.view("mini", "The cat sat on the mat.", heads=["8-11", "3-1"], specials="hide")
    assert render(view.figure(), "svg") == render(view.figure(), "svg")
    with pytest.raises(RunError, match="nothing to draw"):
        lines.draw({HeadId("encoder", 0, 0): Grid(np.zeros((0, 0)), (), ())}, "0 words", "signed")
