"""Figures and pages that are made at two different times have the same bytes."""

from __future__ import annotations

import datetime
import re
import time
from pathlib import Path

import pytest
from matplotlib.figure import Figure

import headscope as hs
from headscope.drawing.theme import SUFFIXES, render
from headscope.figures import draw
from headscope.report import page


@pytest.fixture(scope="module")
def results() -> hs.Run:
    return hs.run("mini", "sampler", ["positions", "tokens", "entropy"], limit=4, replicates=5, gallery=2)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_figure_does_not_depend_on_the_date(results: hs.Run, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = render(draw("clark2", results.results), suffix)
    set_clock_ahead(monkeypatch)
    assert render(draw("clark2", results.results), suffix) == first


def test_a_report_does_not_depend_on_the_date(results: hs.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    first = page(results.results)
    set_clock_ahead(monkeypatch)
    assert page(results.results) == first


def set_clock_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the clock about three years ahead."""
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + 1e8)

    class Later(datetime.datetime):
        @classmethod
        def now(cls, tz: datetime.tzinfo | None = None) -> Later:
            return cls.fromtimestamp(now() + 1e8, tz)

        @classmethod
        def today(cls) -> Later:
            return cls.now()

    monkeypatch.setattr(datetime, "datetime", Later)


def test_states_galleries_and_tables_of_two_equal_runs_have_the_same_bytes(tmp_path: Path) -> None:
    """safetensors writes the entries of its metadata in any order, so there must be only one entry."""
    for name in ("a", "b"):
        hs.run("mini", "sampler", ["entropy"], tmp_path / name, limit=4, replicates=5, gallery=2)
    for file in ("states.safetensors", "gallery.safetensors", "tables/entropy.parquet"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_names_in_an_svg_do_not_depend_on_the_last_bits_of_a_position() -> None:
    """matplotlib names a clip path after its exact position, whose last bits can differ between two layouts."""
    drawn = []
    for place in (0.1, 0.1 + 1e-15):
        figure = Figure()
        figure.add_axes((place, 0.1, 0.5, 0.5)).plot([0, 1])
        drawn.append(render(figure, "svg"))
    assert drawn[0] == drawn[1]
    assert b"clip-path" in drawn[0]
    (name,) = set(re.findall(rb'clipPath id="(\w+)"', drawn[0]))
    assert b"url(#" + name + b")" in drawn[0]
