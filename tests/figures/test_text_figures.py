"""Figures of one text: heatmaps of influence, thumbnails of all heads, and highlighted words in red."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.colors import to_hex, to_rgba
from numpy.testing import assert_allclose

from headscope.core.heads import HeadId
from headscope.drawing import look
from headscope.drawing.theme import render
from headscope.errors import RunError
from headscope.figures import influence, lines, model_view
from headscope.gallery.grids import Grid
from headscope.gallery.highlight import Highlight

WEIGHTS = np.array([[12.0, 0.0, 0.5], [2.0, 9.0, 1.25], [0.25, 0.034, 11.5]])
WORDS = ("The", "cat", "$x$")
GRID = Grid(WEIGHTS, WORDS, WORDS, (0, 1, -1), (0, 1, -1))
RED = Highlight(frozenset({(1, 0)}))


def test_a_heatmap_shows_numbers_words_and_the_highlight() -> None:
    figure = influence.draw({"G, layer 3": GRID}, "3 words", "signed", RED)
    axes = figure.axes[0]
    assert [text.get_text() for text in axes.texts] == ["12", ".00", ".50", "2.0", "9.0", "1.2", ".25", ".03", "12"]
    assert [label.get_text() for label in axes.get_xticklabels()] == list(WORDS)
    assert axes.get_xlabel() == "G, layer 3\ninfluence of"
    assert [to_hex(label.get_color()) for label in axes.get_yticklabels()] == [look.INK, look.RED, look.INK]
    assert [to_hex(label.get_color()) for label in axes.get_xticklabels()] == [look.RED, look.INK, look.INK]
    (frames,) = axes.collections
    assert_allclose(frames.get_paths()[0].get_extents().bounds, (-0.5, 0.5, 1, 1), err_msg="the cell of row 2, column 1")
    assert figure.caption.text == "n = 3 words.\nsigned"
    assert axes.images[0].get_clim() == (0, 2), "the diagonal does not set the scale"
    assert len(render(figure, "pdf")) > 1000


def test_the_scale_leaves_out_a_large_diagonal_and_the_ink_has_contrast() -> None:
    assert influence.scale_of(WEIGHTS) == (2.0, True)
    assert influence.scale_of(np.array([[0.4, 0.3], [0.2, 0.1]])) == (0.4, False), "the diagonal is not far above the other numbers"
    assert influence.scale_of(np.array([[3.0]])) == (3.0, False)
    assert influence.scale_of(np.zeros((2, 2))) == (1.0, False)
    assert [influence.ink_on(to_rgba(colour)) for colour in ("#00224e", "#7d7c78", "#fee838")] == ["white", "black", "black"]


def test_panels_of_many_words_have_no_numbers() -> None:
    words = tuple(f"w{n}" for n in range(40))
    grid = Grid(np.full((40, 40), 0.5), words, words)
    figure = influence.draw({f"A, layer {n}": grid for n in range(1, 6)}, "40 words", "signed")
    assert not any(axes.texts for axes in figure.axes)
    assert len([axes for axes in figure.axes if axes.images]) == 5
    with pytest.raises(RunError, match="nothing to draw"):
        influence.draw({"A": Grid(np.zeros((0, 0)), (), ())}, "0 words", "signed")


def test_thumbnails_have_one_line_per_weight_in_the_frame_of_the_head() -> None:
    weights = np.array([[0.9, 0.04], [0.5, 0.3]])
    grids = {HeadId("encoder", layer, head): Grid(weights, ("a", "b"), ("a", "b"), (0, 1), (0, 1)) for layer in (0, 2) for head in (0, 1)}
    highlights = dict.fromkeys(grids, RED)
    figure = model_view.draw(grids, "a b / c", "2 words", "signed", highlights)
    (axes,) = figure.axes
    frames, drawn = axes.collections
    boxes = [path.get_extents() for path in frames.get_paths()]
    assert len(boxes) == 4
    segments = [np.asarray(path.vertices) for path in drawn.get_paths()]
    assert len(segments) == 4 * 3, "a weight of 0.04 is too small to be drawn"
    for box in boxes:
        inside = [segment for segment in segments if box.contains(*segment.mean(0))]
        assert len(inside) == 3
        assert sum(segment[0, 1] == segment[1, 1] for segment in inside) == 2, "two lines join a word with itself"
    colours = [to_hex(colour) for colour in np.asarray(drawn.get_edgecolor())]
    assert colours == [look.COLOURS[0].lower()] * 8 + [look.RED] * 4, "the line from b to a is red and drawn last"
    texts = [text.get_text() for text in axes.texts]
    assert texts == ["a b / c", "head", "layer", "1", "2", "1", "3"]


def test_lines_of_highlighted_words_are_red_and_drawn_last() -> None:
    grid = Grid(np.array([[0.6, 0.4], [0.3, 0.7]]), ("a", "b"), ("a", "b"), (0, 1), (0, 1))
    head = HeadId("encoder", 0, 0)
    figure = lines.draw({head: grid}, "2 words", "signed", {head: RED})
    (axes,) = figure.axes
    (collection,) = axes.collections
    colours = np.asarray(collection.get_edgecolor())
    assert [to_hex(colour) for colour in colours] == [look.COLOURS[0].lower()] * 3 + [look.RED]
    assert_allclose(colours[:, 3], [0.4, 0.6, 0.7, 0.3])
    shown = [(text.get_text(), to_hex(text.get_color())) for text in axes.texts[3:]]
    assert [text.get_text() for text in axes.texts[1:3]] == ["attending", "attended to"]
    assert shown == [("a", look.INK), ("b", look.RED), ("a", look.RED), ("b", look.INK)]


def test_thumbnails_of_a_long_text_are_maps() -> None:
    words = tuple(map(str, range(41)))
    weights = np.eye(41)
    weights[0, 1] = 0.25
    figure = model_view.draw({HeadId("encoder", 0, head): Grid(weights, words, words) for head in (0, 2)}, "0 1 2", "41 words", "signed")
    (axes,) = figure.axes
    assert len(axes.images) == 2
    assert not axes.collections
    assert_allclose(np.asarray(axes.images[0].get_array())[0, :3], [1, 0.5, 0], err_msg="square roots")
    first, second = (image.get_extent() for image in axes.images)
    assert_allclose([second[0] - first[0], second[2] - first[2]], [2 * 0.61, 0], err_msg="two heads to the right, in the same row")
    assert axes.get_xlim() == (0, figure.get_figwidth())
    assert model_view.shrunk(np.arange(20.0).reshape(4, 5), 3).tolist() == [[6, 8, 9], [16, 18, 19]]
