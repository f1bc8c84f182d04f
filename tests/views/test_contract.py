"""What Python writes is what the views read: names in the contract, captions of both kinds of figures."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import headscope as hs
from headscope.figures import RUN_FIGURES
from headscope.views.compare import comparison
from headscope.views.run import run_data

SOURCES = Path(__file__).parents[2] / "frontend" / "src"
pytestmark = pytest.mark.skipif(not SOURCES.is_dir(), reason="the front end's sources are not here: contract with them not checked")


@pytest.fixture(scope="module")
def run() -> hs.Run:
    return hs.run("mini", "sampler", ["positions", "tokens", "entropy", "relations"], limit=40, replicates=20)


def fields(interface: str) -> tuple[set[str], set[str]]:
    """The fields that an interface of types.ts needs, and those that it may have."""
    text = (SOURCES / "types.ts").read_text(encoding="utf-8")
    body = text.split(f"export interface {interface} {{", 1)[1]
    depth, needed, optional = 1, set[str](), set[str]()
    for line in body.splitlines():
        if depth == 1 and (found := re.match(r"\s+(\w+)(\??):", line)):
            (optional if found[2] else needed).add(found[1])
        depth += line.count("{") - line.count("}")
        if depth == 0:
            return needed, optional
    raise AssertionError(interface)


def agrees(value: dict[str, Any], interface: str) -> None:
    needed, optional = fields(interface)
    assert needed <= set(value) <= needed | optional, interface


def test_a_run_is_as_the_views_read_it(run: hs.Run) -> None:
    data = run_data(run.results)
    agrees(data, "Run")
    agrees(data["map"], "HeadMap")
    parts = {"sites": "Site", "quantities": "Quantity", "layers": "LayerCurve", "curves": "CurvesFigure", "contests": "Contest"}
    for part, interface in {**parts, "texts": "Text", "examples": "Example"}.items():
        assert data[part]
        agrees(data[part][0], interface)
    agrees(data["texts"][0]["source"], "Side")
    labels = run.results.head_labels
    assert len(data["types"]["labels"]) == len(labels.sure)
    for label in data["types"]["labels"]:
        agrees(label, "HeadLabel")
    assert data["slices"] is None
    needed, _ = fields("Best")
    assert needed <= set(data["contests"][0]["rows"][0])
    heads = sum(site["heads"] for site in data["sites"])
    for quantity in data["quantities"]:
        assert {len(quantity[name]) for name in ("value", "low", "high", "baseline", "n")} == {heads}


def test_slices_are_as_the_views_read_them() -> None:
    run = hs.run("mini", "sampler", ["entropy"], by="length", limit=40, replicates=0, gallery=0)
    slices = run_data(run.results)["slices"]
    assert {part["name"]: part["documents"] for part in slices["values"]} == run.slices
    for part in slices["values"]:
        agrees(part, "Slice")
        agrees(part["quantities"][0], "Quantity")
        assert part["signature"] == f"{run.signature}|length={part['name']}"
        shown = next(quantity for quantity in part["quantities"] if quantity["name"] == "entropy")
        table = run.slice(length=part["name"])["entropy"].table.where(quantity="entropy")
        assert shown["value"] == pytest.approx(table["value"], abs=1e-4)


def test_a_text_is_as_the_views_read_it() -> None:
    view = hs.view("mini", "The cat sat.", measure="A", highlight="cat→sat")
    page = re.search(r'id="headscope-data">(.*?)</script>', view.page(), re.DOTALL)
    assert page is not None
    for text in (view.data()["text"], json.loads(page[1])["text"]):
        agrees(text, "TextData")
        agrees(text["influence"], "InfluenceData")
        agrees(text["highlight"], "NamedPairs")
    agrees(text["influence"]["held"]["A"], "PackedInfluence")
    agrees(hs.view("mini", "The cat sat.", heads="all", layer=[1]).data()["text"], "TextData")


def test_a_tree_of_heads_is_as_the_view_reads_it(run: hs.Run) -> None:
    assert run_data(run.results)["tree"] is None
    data = run_data(hs.run("mini", "sampler", ["distances"], limit=4, replicates=0, gallery=0).results)
    agrees(data["tree"], "HeadTree")
    agrees(data["map"], "HeadMap")


def test_a_comparison_is_as_the_view_reads_it(run: hs.Run) -> None:
    agrees(comparison(run.results, run.results), "Comparison")


def test_static_and_interactive_figures_share_captions(run: hs.Run) -> None:
    data = run_data(run.results)
    assert {figure["name"]: figure["caption"] for figure in data["curves"]} == {name: RUN_FIGURES[name] for name in ("clark2", "clark4")}
    figure = run["entropy"].plot()
    assert [axes.get_title(loc="left") for axes in figure.axes] == [panel["title"] for panel in data["curves"][1]["panels"]]
