"""Figures and pages made twice, at another time, are the same bytes."""

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
def test_a_figure_has_no_date(results: hs.Run, suffix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = render(draw("clark2", results.results), suffix)
    later(monkeypatch)
    assert render(draw("clark2", results.results), suffix) == first


def test_a_report_has_no_date(results: hs.Run, monkeypatch: pytest.MonkeyPatch) -> None:
    first = page(results.results)
    later(monkeypatch)
    assert page(results.results) == first


def later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some years from now."""
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


def test_states_and_galleries_are_the_same_bytes(tmp_path: Path) -> None:
    """safetensors writes several entries of metadata in any order, so there must be one."""
    for name in ("a", "b"):
        hs.run("mini", "sampler", ["entropy"], tmp_path / name, limit=4, replicates=5, gallery=2)
    for file in ("states.safetensors", "gallery.safetensors", "tables/entropy.parquet"):
        assert (tmp_path / "a" / file).read_bytes() == (tmp_path / "b" / file).read_bytes()


def test_names_in_a_drawing_do_not_hang_on_last_bits() -> None:
    """matplotlib names a clipping frame after its place to the last bit, which the layout does not always reach in
    the same way.
    """
    drawn = []
    for place in (0.1, 0.1 + 1e-15):
        figure = Figure()
        figure.add_axes((place, 0.1, 0.5, 0.5)).plot([0, 1])
        drawn.append(render(figure, "svg"))
    assert drawn[0] == drawn[1]
    assert b"clip-path" in drawn[0]
    (name,) = set(re.findall(rb'clipPath id="(\w+)"', drawn[0]))
    assert b"url(#" + name + b")" in drawn[0]
