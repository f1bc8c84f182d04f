"""Grids of numbers: their colour scales, and digits that can be read on their cells."""

from __future__ import annotations

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

import headscope as hs
from headscope.drawing.cells import Scale, ink_on, luminance, short, write
from headscope.drawing.theme import DIVERGING, SEQUENTIAL
from headscope.figures import draw
from headscope.results.results import Results
from headscope.results.table import Table


def contrast(colour: tuple[float, ...], ink: str) -> float:
    """The contrast ratio as WCAG defines it."""
    light, dark = sorted((luminance(colour), 0.0 if ink == "black" else 1.0), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def test_luminance_and_ink_match_values_worked_out_by_hand() -> None:
    assert luminance((1, 1, 1)) == pytest.approx(1)
    assert luminance((0, 0, 0)) == 0
    assert luminance((1, 0, 0)) == pytest.approx(0.2126)
    assert luminance((0.5, 0.5, 0.5)) == pytest.approx(0.21404, abs=1e-5)
    assert ink_on((0.5, 0.5, 0.5)) == "black"  # contrast 5.3; white has 4.0
    assert ink_on((0, 0, 1)) == "white"


@pytest.mark.parametrize("name", [SEQUENTIAL, DIVERGING, "RdBu"])
def test_ink_has_enough_contrast_on_every_colour(name: str) -> None:
    for colour in matplotlib.colormaps[name](np.linspace(0, 1, 256)):
        ink = ink_on(colour)
        assert contrast(tuple(colour), ink) >= 4.5
        assert contrast(tuple(colour), ink) >= contrast(tuple(colour), "white" if ink == "black" else "black") - 0.01


def test_a_scale_starts_at_0_or_is_centred_on_the_baseline() -> None:
    assert Scale.of(np.array([[0.2, np.nan, 0.5]]), 0.1) == Scale(0.0, 0.5)
    signed = Scale.of(np.array([[-0.5, 0.1, np.nan]]), 0.25)
    assert signed == Scale(-0.5, 1.0, DIVERGING, 0.25)
    assert Scale.of(np.array([[-1.0, 3.0]])).centre == 0
    assert Scale.of(np.array([[np.nan]])) == Scale(0.0, 1.0)


def test_the_number_of_decimals_depends_on_the_largest_value() -> None:
    def texts_of(*values: float) -> list[str]:
        grid = np.array([values])
        return list(Scale.of(grid).digits(grid).values())

    assert texts_of(0.5, 0.25, float("nan")) == [".50", ".25"]
    assert texts_of(0.05, -0.004) == [".050", "−.004"]
    assert texts_of(12.34, 0.5) == ["12.3", "0.5"]
    assert texts_of(120.4) == ["120"]
    assert texts_of(0.0051, -0.0034, -1e-9) == ["5.1", "−3.4", "0.0"]
    assert "thousandths" in Scale.of(np.array([[0.005]])).note
    assert Scale.of(np.array([[0.5]])).note == ""
    assert short(-0.001, 2) == ".00"


def test_the_colour_of_a_text_contrasts_with_its_cell() -> None:
    axes = Figure().subplots()
    image = Scale(0.0, 1.0).draw(axes, np.array([[0.0, 1.0]]), [1])
    write(image, {(0, 0): "a", (0, 1): "b"}, 6)
    assert {text.get_text(): text.get_color() for text in axes.texts} == {"a": "white", "b": "black"}


def test_a_heatmap_with_negative_values_is_centred_on_the_baseline() -> None:
    table = {
        "kind": ["encoder"] * 4, "layer": [1, 1, 2, 2], "head": [1, 2, 1, 2], "quantity": ["relative"] * 4,
        "value": [-0.4, 0.1, 0.2, -0.1], "n": [5] * 4, "baseline": [0.1] * 4,
    }  # fmt: skip
    manifest = hs.run("mini", "sampler", ["entropy"], limit=1, replicates=0, gallery=0).results.manifest
    manifest = {**manifest, "measures": {"keywords": {}}}
    figure = draw("heatmap", Results(manifest, {"keywords": Table.of(table)}), quantity="relative")
    axes, bar = figure.axes
    image = axes.images[0]
    assert image.get_clim() == pytest.approx((-0.4, 0.6))
    assert image.cmap.name == DIVERGING
    assert "even attention" in bar.get_ylabel()
    low, near = ("".join(text.get_text() for text in axes.texts if text.get_position() == place) for place in ((0, 0), (1, 1)))
    assert (low, near) == ("−.40", "−.10"), "different values below 0 have different digits"
    assert axes.texts[0].get_color() == "white"
