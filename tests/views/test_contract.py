"""The data that Python writes have the types that the views read, and both kinds of figures have the same captions."""

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
pytestmark = pytest.mark.skipif(
    not SOURCES.is_dir(), reason="the sources of the front end are missing: the contract with them is not checked"
)


@pytest.fixture(scope="module")
def run() -> hs.Run:
    return hs.run("mini", "sampler", ["positions", "tokens", "entropy", "relations"], limit=40, replicates=20)


def fields(interface: str) -> tuple[set[str], set[str]]:
    """The required and the optional fields of an interface in types.ts."""
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


def check_fields(value: dict[str, Any], interface: str) -> None:
    needed, optional = fields(interface)
    assert needed <= set(value) <= needed | optional, interface


def test_the_data_of_a_run_match_the_types_of_the_views(run: hs.Run) -> None:
    data = run_data(run.results)
    check_fields(data, "Run")
    check_fields(data["map"], "HeadMap")
    parts = {"sites": "Site", "quantities": "Quantity", "layers": "LayerCurve", "curves": "CurvesFigure", "contests": "Contest"}
    for part, interface in {**parts, "texts": "Text", "examples": "Example"}.items():
        assert data[part]
        check_fields(data[part][0], interface)
    check_fields(data["texts"][0]["source"], "Side")
    labels = run.results.head_labels
    assert len(data["types"]["labels"]) == len(labels.sure)
    for label in data["types"]["labels"]:
        check_fields(label, "HeadLabel")
    assert data["slices"] is None
    needed, _ = fields("Best")
    assert needed <= set(data["contests"][0]["rows"][0])
    heads = sum(site["heads"] for site in data["sites"])
    for quantity in data["quantities"]:
        assert {len(quantity[name]) for name in ("value", "low", "high", "baseline", "n")} == {heads}


def test_the_data_of_slices_match_the_types_of_the_views() -> None:
    run = hs.run("mini", "sampler", ["entropy"], by="length", limit=40, replicates=0, gallery=0)
    slices = run_data(run.results)["slices"]
    assert {part["name"]: part["documents"] for part in slices["values"]} == run.slices
    for part in slices["values"]:
        check_fields(part, "Slice")
        check_fields(part["quantities"][0], "Quantity")
        assert part["signature"] == f"{run.signature}|length={part['name']}"
        shown = next(quantity for quantity in part["quantities"] if quantity["name"] == "entropy")
        table = run.slice(length=part["name"])["entropy"].table.where(quantity="entropy")
        assert shown["value"] == pytest.approx(table["value"], abs=1e-4)


def test_the_data_of_a_text_match_the_types_of_the_views() -> None:
    view = hs.view("mini", "The cat sat.", measure="A", highlight="cat→sat")
    page = re.search(r'id="headscope-data">(.*?)</script>', view.page(), re.DOTALL)
    assert page is not None
    for text in (view.data()["text"], json.loads(page[1])["text"]):
        check_fields(text, "TextData")
        check_fields(text["influence"], "InfluenceData")
        check_fields(text["highlight"], "NamedPairs")
    check_fields(text["influence"]["held"]["A"], "PackedInfluence")
    check_fields(hs.view("mini", "The cat sat.", heads="all", layer=[1]).data()["text"], "TextData")


def test_the_data_of_a_tree_of_heads_match_the_types_of_the_views(run: hs.Run) -> None:
    assert run_data(run.results)["tree"] is None
    data = run_data(hs.run("mini", "sampler", ["distances"], limit=4, replicates=0, gallery=0).results)
    check_fields(data["tree"], "HeadTree")
    check_fields(data["map"], "HeadMap")


def test_the_data_of_a_comparison_match_the_types_of_the_views(run: hs.Run) -> None:
    check_fields(comparison(run.results, run.results), "Comparison")


def test_static_and_interactive_figures_have_the_same_captions_and_titles(run: hs.Run) -> None:
    data = run_data(run.results)
    assert {figure["name"]: figure["caption"] for figure in data["curves"]} == {name: RUN_FIGURES[name] for name in ("clark2", "clark4")}
    figure = run["entropy"].plot()
    assert [axes.get_title(loc="left") for axes in figure.axes] == [panel["title"] for panel in data["curves"][1]["panels"]]
