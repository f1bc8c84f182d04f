"""Clark et al.'s Figure 5 from a run: the choice of heads and sentences, and the words in red."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex
from numpy.testing import assert_allclose

import headscope as hs
from headscope.core.heads import HeadId
from headscope.drawing.look import RED
from headscope.errors import RunError
from headscope.figures import clark5, draw


@pytest.fixture(scope="module")
def run() -> hs.Run:
    return hs.run("mini", "sampler", {"relations": {"least": 20}}, limit=120, replicates=5)


def titles(figure: Any) -> list[tuple[str, str]]:
    return [(axes.texts[0].get_text(), axes.texts[1].get_text()) for axes in figure.axes]


def test_the_best_heads_are_shown_each_for_a_different_label(run: hs.Run) -> None:
    best = [row for row in run.results["relations_best"] if row["label"] != "all"]
    shown = titles(draw("clark5", run.results))
    assert 2 <= len(shown) <= 6
    labels = [note.split(",")[0] for _, note in shown]
    assert len(set(labels)) == len(labels)
    assert len({head for head, _ in shown}) == len(shown)
    rows = {row["label"]: row for row in best}
    assert all(rows[label]["lift"] > 0 and rows[label]["value"] >= 0.5 for label in labels)
    lifts = [rows[label]["lift"] for label in labels]
    assert lifts == sorted(lifts, reverse=True)
    for (head, note), label in zip(shown, labels, strict=True):
        assert head.removeprefix("Head ") in rows[label]["heads"]
        assert f"{100 * rows[label]['value']:.0f}% (rule {100 * rows[label]['baseline']:.0f}%)" in note


def test_the_words_of_the_relation_are_red(run: hs.Run) -> None:
    figure = draw("clark5", run.results, quantity="obj")
    (axes,) = figure.axes
    _head, note = titles(figure)[0]
    assert note.startswith("obj, dep → head")
    assert run.results.gallery is not None
    red = {text.get_text() for text in axes.texts if to_hex(text.get_color()) == RED}
    sides = [text["source"] for text in run.results.gallery.texts]
    pairs = [{(side["forms"][a], side["forms"][b]) for a, b, name in side.get("relations", []) if name == "obj"} for side in sides]
    assert any(found and red == {word for pair in found for word in pair} for found in pairs)


def test_the_word_map_of_a_gallery_text_equals_that_of_a_view(run: hs.Run) -> None:
    document = next(iter(hs.read("sampler")))
    view = hs.view("mini", document.part(2, 3), heads=["8-4"])
    from headscope.gallery.texts import describe_text

    expected = view.grid("8-4")
    found = clark5.grid_of(describe_text(view.text), HeadId("encoder", 7, 3), view.map("8-4"))
    assert (found.rows, found.columns, found.row_words) == (expected.rows, expected.columns, expected.row_words)
    assert_allclose(found.weights, expected.weights, atol=1e-6)
    assert_allclose(found.weights.sum(1), np.ones(len(found.rows)), atol=1e-5)


def test_a_relation_without_a_text_and_a_run_without_a_gallery_are_refused(run: hs.Run) -> None:
    with pytest.raises(RunError, match="has no text that shows vocative"):
        draw("clark5", run.results, quantity="vocative")
    without = hs.run("mini", "sampler", ["relations"], limit=3, replicates=0, gallery=0)
    with pytest.raises(RunError, match=r"relation|heads"):
        draw("clark5", without.results)
