"""The similarity of heads in the report of a run with distances: map, tree and cards in a real browser."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

import headscope as hs
from headscope.comparison.alike import alike
from helpers.browsing import Visitor, downloaded, violations


@pytest.fixture(scope="module")
def run() -> hs.Run:
    return hs.run("mini", "sampler", ["distances", "positions", "tokens", "entropy"], limit=40, replicates=10, gallery=8)


@pytest.fixture(scope="module")
def report(run: hs.Run, tmp_path_factory: pytest.TempPathFactory) -> str:
    return run.report(tmp_path_factory.mktemp("alike") / "report.html").as_uri()


def test_the_caption_of_the_map_states_n_of_the_whole_corpus(report: str, run: hs.Run, visitor: Visitor) -> None:
    page = visitor.open(report, offline=True)
    rows = run.results["distances_pairs"]["n"][0]
    assert rows > 500
    caption = page.locator("[data-view=map] figcaption").inner_text()
    assert f"over {rows:,} rows of attention of the whole corpus" in caption
    assert f"stress {run.alike().embed().stress:.2f}; n = 144 heads" in caption
    assert page.locator("[data-view=map] .hs-point").count() == 144
    assert page.locator("#map li").count() == 4
    assert violations(page) == []


def test_a_head_is_chosen_in_the_tree_with_the_keyboard(report: str, run: hs.Run, visitor: Visitor) -> None:
    page = visitor.open(report, offline=True)
    tree = page.locator("[data-view=tree]")
    assert tree.locator(".hs-leaf").count() == 144
    assert tree.locator("polyline").count() == 143
    leaves = [
        label.split(",")[0].removeprefix("head ") for label in tree.locator(".hs-leaf").evaluate_all("all => all.map(one => one.ariaLabel)")
    ]
    found = alike(run.results)
    assert leaves == [str(found.heads[leaf]) for leaf in found.groups().tree.leaves]
    tree.locator(".hs-leaf").first.focus()
    for key in ("ArrowDown", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    assert f"Head {leaves[2]}" in page.locator(".hs-card h3").first.inner_text()
    assert page.url.endswith(f"#head={leaves[2]}")


def test_the_card_of_a_head_lists_its_nearest_heads(report: str, run: hs.Run, visitor: Visitor) -> None:
    found = alike(run.results)
    head = next(head for head, labels in zip(found.heads, found.behaviours, strict=True) if labels)
    page = visitor.open(f"{report}#head={head}", offline=True)
    card = page.locator(".hs-card")
    assert "No label of this head is significant." in card.inner_text(), "40 sentences come from few documents, so no label is significant"
    (near, distance), *_ = found.neighbours(head)
    assert f"{near} {distance:.3f}" in card.locator(".hs-near li").first.inner_text()


def test_the_tree_is_saved_as_csv_and_svg(report: str, run: hs.Run, visitor: Visitor) -> None:
    page = visitor.open(report, offline=True)
    frame = page.locator("[data-view=tree] .hs-frame")
    rows = list(csv.DictReader(io.StringIO(downloaded(page, frame.get_by_role("button", name="as CSV")).decode())))
    found = alike(run.results)
    expected = {str(head): int(group) + 1 for head, group in zip(found.heads, found.groups().groups, strict=True)}
    assert {row["head"]: int(row["group"]) for row in rows} == expected
    svg = downloaded(page, frame.get_by_role("button", name="as SVG")).decode()
    assert run.signature.split("|")[-1] in svg
    assert svg.count("<polyline") == 143


def test_heads_can_be_coloured_by_a_distance_without_a_baseline(report: str, visitor: Visitor) -> None:
    page = visitor.open(report, offline=True, dark=True, width=390)
    grid = page.locator("[data-view=explorer] .hs-frame").first
    select = grid.get_by_label("quantity")
    values = select.locator("option").evaluate_all("all => all.map(one => [one.textContent, one.value])")
    for name in ("nearest", "own_layer"):
        select.select_option(next(value for text, value in values if name in text))
        assert "NaN" not in grid.inner_text()
    assert violations(page) == []


def test_the_view_of_a_notebook_has_the_map_and_the_tree(run: hs.Run, tmp_path: Path, visitor: Visitor) -> None:
    page = visitor.open(run.show().save(tmp_path / "run.html").as_uri(), offline=True)
    assert page.locator("[data-view=map] .hs-point").count() == 144
    assert page.locator("[data-view=tree] .hs-leaf").count() == 144
