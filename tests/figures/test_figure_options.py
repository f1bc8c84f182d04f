"""Options of all figures: width, font size, style and signature; captions in the metadata and in a separate file."""

from __future__ import annotations

import itertools
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from matplotlib.colors import to_rgb
from PIL import Image

import headscope as hs
from headscope.core.heads import HeadId
from headscope.drawing.cells import luminance
from headscope.drawing.look import STYLES, WIDTHS
from headscope.drawing.theme import COLOURS, render, save
from headscope.errors import RunError
from headscope.figures import draw, influence, lines, model_view
from headscope.gallery.grids import Grid
from helpers.layout import unreadable

MEASURES = ["positions", "tokens", "entropy", "relations", "coreference", "distances"]
FIGURES = ("clark2", "clark4", "clark5", "clark6", "table1", "table2", "matrix", "heatmap", "distances")


@pytest.fixture(scope="module")
def run() -> hs.Run:
    options = {**{key: {} for key in MEASURES}, "relations": {"least": 5}}
    return hs.run("mini", "sampler", options, limit=25, replicates=5)


def drawn(run: hs.Run, name: str, **options: Any) -> Any:
    return draw(name, run.results, quantity="to_sep" if name == "heatmap" else None, **options)


def test_a_figure_has_the_chosen_width(run: hs.Run) -> None:
    for width, millimetres in (("column", 77), ("page", 160), (100, 100), ("62.5", 62.5)):
        figure = run["entropy"].plot(width=width)
        assert figure.get_figwidth() * 25.4 == pytest.approx(millimetres)
    with Image.open(BytesIO(render(run["entropy"].plot(width="column"), "png"))) as picture:
        assert picture.width == pytest.approx(77 / 25.4 * 200, abs=1)


@pytest.mark.parametrize("name", FIGURES)
def test_no_text_overlaps_or_is_clipped(run: hs.Run, name: str) -> None:
    assert unreadable(drawn(run, name)) == []
    assert unreadable(drawn(run, name, width="column")) == []


def test_the_check_of_the_layout_finds_overlapping_and_clipped_texts() -> None:
    figure = lines.draw({HeadId("encoder", 0, 0): grid()}, "2 words", "signed")
    assert unreadable(figure) == []
    figure.text(0.99, 0.5, "clipped at the edge")
    figure.text(0.1, 0.5, "one")
    figure.text(0.11, 0.5, "other")
    assert len(unreadable(figure)) >= 2


def grid() -> Grid:
    import numpy as np

    return Grid(np.full((2, 2), 0.5), ("a", "b"), ("a", "b"), (0, 1), (0, 1))


@pytest.mark.parametrize("look", [{"width": "column"}, {"style": "grey"}, {"font_size": 12}])
def test_figures_of_a_text_accept_the_options(look: dict[str, Any]) -> None:
    from headscope.drawing.look import Look, using

    heads = {HeadId("encoder", layer, head): grid() for layer in range(2) for head in range(4)}
    with using(Look(**look)):
        figures = [
            lines.draw(heads, "2 words", "s"),
            model_view.draw(heads, "a b", "2 words", "s"),
            influence.draw({"A": grid()}, "2 words", "s"),
        ]
    for figure in figures:
        assert unreadable(figure) == []
        assert "width" not in look or figure.get_figwidth() * 25.4 == pytest.approx(WIDTHS["column"])


def test_axis_labels_have_the_chosen_or_default_font_size(run: hs.Run) -> None:
    figure = run["entropy"].plot(font_size=12)
    assert figure.axes[0].yaxis.label.get_fontsize() == 12
    assert figure.axes[0].get_title(loc="left")
    assert run["entropy"].plot().axes[0].yaxis.label.get_fontsize() == 9
    assert run["entropy"].plot(width="column").axes[0].yaxis.label.get_fontsize() == 7.5


def test_styles_set_the_colours_and_the_background(run: hs.Run) -> None:
    grey = run["tokens"].plot(style="grey")
    used = [line.get_color() for axes in grey.axes for line in axes.lines]
    assert all(len(set(to_rgb(colour))) == 1 for colour in used), "every colour is grey"
    assert next(line.get_color() for line in run["tokens"].plot().axes[0].lines) == COLOURS[0]
    dark = run["tokens"].plot(style="dark")
    assert luminance(to_rgb(dark.axes[0].yaxis.label.get_color())) > 0.7
    with Image.open(BytesIO(render(dark, "png"))) as picture:
        assert picture.getchannel("A").getpixel((0, 0)) == 0, "the background is transparent"
    for style in STYLES.values():
        assert len(style.colours) == len(COLOURS)


def test_series_of_the_grey_style_differ_in_lightness() -> None:
    shades = sorted(luminance(to_rgb(colour)) for colour in STYLES["grey"].colours[:4])
    assert min(b - a for a, b in itertools.pairwise(shades)) > 0.06


def test_a_legend_shows_markers(run: hs.Run) -> None:
    legend = run["tokens"].plot().axes[0].get_legend()
    assert legend is not None
    assert [line.get_marker() for line in legend.get_lines()] == ["o", "s", "^", "None"]


def test_colour_bars_are_labelled(run: hs.Run) -> None:
    for name in ("heatmap", "matrix", "distances"):
        figure = drawn(run, name)
        assert any("colorbar" in axes.get_label() and (axes.get_ylabel() or axes.get_xlabel()) for axes in figure.axes), name


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"style": "red"}, "there is no style 'red'. Use colour, grey, dark"),
        ({"width": "wide"}, "there is no width 'wide'. Use column, page or a number of millimetres"),
        ({"width": 5}, "a figure cannot be 5 mm wide"),
        ({"font_size": 100}, "a font size of 100 points"),
    ],
)
def test_invalid_options_are_refused(run: hs.Run, options: dict[str, Any], says: str) -> None:
    with pytest.raises(RunError, match=re.escape(says)):
        run["entropy"].plot(**options)


def test_captions_are_in_the_metadata_and_a_text_file_but_not_in_the_picture(run: hs.Run, tmp_path: Path) -> None:
    figure = run["entropy"].plot()
    about = "Clark et al. 2019, Figure 4: entropy by layer (entropy)"
    svg = ET.fromstring(render(figure, "svg"))
    texts = "".join(text for element in svg.iter("{http://www.w3.org/2000/svg}text") for text in element.itertext())
    assert "n = " not in texts
    assert run.signature not in texts
    dublin = "{http://purl.org/dc/elements/1.1/}"
    assert [svg.findtext(f".//{dublin}{name}") for name in ("title", "description", "source")] == [about, "n = 25 texts", run.signature]
    pdf = render(figure, "pdf")
    assert b"/Subject (n = 25 texts)" in pdf
    assert f"/Keywords ({run.signature})".encode() in pdf
    with Image.open(BytesIO(render(figure, "png"))) as picture:
        assert picture.text["Source"] == run.signature  # type: ignore[attr-defined]
    assert save(figure, tmp_path / "figure4.pdf") == tmp_path / "figure4.pdf"
    assert (tmp_path / "figure4.caption.txt").read_text() == f"{about}.\nn = 25 texts.\n{run.signature}\n"


def test_savefig_writes_the_same_metadata_in_the_style_of_the_figure(run: hs.Run, tmp_path: Path) -> None:
    run["entropy"].plot(style="dark").savefig(tmp_path / "a.svg")
    svg = (tmp_path / "a.svg").read_text()
    assert run.signature in svg
    assert STYLES["dark"].ink in svg
    assert "<text" in svg, "text is saved as text, not as paths"


def test_the_option_signature_draws_the_caption_in_the_picture(run: hs.Run) -> None:
    for figure in (drawn(run, "clark4", signature=True), drawn(run, "clark6", signature=True, width="column")):
        (text,) = figure.texts
        assert text.get_text().replace("\n", "").startswith("n = ")
        assert unreadable(figure) == []


def test_the_command_line_has_the_options_and_refuses_invalid_ones(
    run: hs.Run, tmp_path: Path, headscope: Callable[..., tuple[int, str, str]]
) -> None:
    folder = tmp_path / "run"
    hs.run("mini", "sampler", ["entropy"], folder, limit=2, replicates=0, gallery=0)
    path = tmp_path / "figure.svg"
    options = ("--width", "column", "--font-size", "8", "--style", "grey", "--signature")
    assert headscope("plot", folder, "clark4", "-o", path, *options)[0] == 0
    svg = ET.fromstring(path.read_bytes())
    assert float(svg.get("width", "").removesuffix("pt")) == pytest.approx(77 / 25.4 * 72)
    assert "n = 2 texts" in "".join(svg.itertext())
    assert (tmp_path / "figure.caption.txt").exists()
    code, _, error = headscope("plot", folder, "clark4", "-o", path, "--style", "red")
    assert (code, "there is no style 'red'" in error) == (2, True)
    code, _, error = headscope("view", "The cat sat.", "-o", tmp_path / "a.html", "--width", "column")
    assert (code, "width is only for figures" in error) == (2, True)
