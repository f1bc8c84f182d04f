"""The report and the comparison, opened from disk without a network, and used with the keyboard and the mouse."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

import headscope as hs
from headscope.comparison.runs import compare
from headscope.core.tally import Tally
from headscope.corpora import Corpus
from headscope.encoding.texts import Encoder
from headscope.encoding.words import WordGroups, word_map
from headscope.gallery.texts import look
from headscope.models.model import Model
from headscope.report.comparison import write_comparison
from headscope.report.headlines import headlines
from headscope.views.page import bundle
from helpers.browsing import Visitor, downloaded, expect, violations
from helpers.excerpts import excerpt

if TYPE_CHECKING:
    from playwright.sync_api import Page

MEASURES = ["positions", "tokens", "entropy", "relations", "coreference"]


@pytest.fixture(scope="module")
def run() -> hs.Run:
    return hs.run("mini", excerpt(10), MEASURES, replicates=20)


@pytest.fixture(scope="module")
def report(run: hs.Run, tmp_path_factory: pytest.TempPathFactory) -> str:
    return run.report(tmp_path_factory.mktemp("page") / "report.html").as_uri()


def test_the_report_opens_with_the_strongest_finding(report: str, run: hs.Run, visitor: Visitor) -> None:
    """The file is small and works without a network. It shows a sentence with its lines, cards, and the grid with the
    head of the finding chosen.
    """
    size = Path(report.removeprefix("file://")).stat().st_size
    assert 500_000 < size < 3_000_000
    page = visitor.open(report, offline=True)
    assert page.locator("h1").inner_text() == "What the heads of mini look at"
    assert "An attention head is" in page.locator(".lead").inner_text()
    first, *others = headlines(run.results)
    sure = [row for row in run.results["relations_best"] if row["label"] != "all" and row["lift_low"] > 0 and " | " not in row["heads"]]
    assert_allclose(first.effect, max(row["lift"] for row in sure))
    assert page.locator(".first h2").inner_text() == f"{first.title}."
    assert page.locator(".first [data-view=sentence] path[stroke='var(--hs-red)']").count() >= 1
    assert page.locator(".first .words").count() == 0, "the text for pages without scripts is removed"
    cards = page.locator(".cards li")
    assert [card.strip(".") for card in cards.locator("h3").all_inner_texts()] == [other.title for other in others]
    assert cards.locator("svg").count() >= len(others)
    assert f"Head {first.head}" in page.locator(".hs-card h3").first.inner_text()
    assert "#" not in page.url, "a head that the page chose is not in the address"
    assert page.locator("#summary li").count() >= 5
    for view in ("explorer", "curves", "contest", "map"):
        assert page.locator(f"[data-view={view}] svg").count() >= 1, view
    cards.locator("a").first.click()
    assert f"Head {others[0].head}" in page.locator(".hs-card h3").first.inner_text()
    page.get_by_role("button", name="Copy").click()
    expect(page.locator("footer button")).to_have_text("Copied", timeout=60_000)
    assert page.locator("#signature").inner_text() == run.signature


def test_a_head_is_chosen_with_the_keyboard_and_with_the_mouse(report: str, run: hs.Run, visitor: Visitor) -> None:
    page = visitor.open(f"{report}#head=1-1", offline=True)
    page.locator("[data-view=explorer] svg [tabindex='0'][role=button]").first.focus()
    for key in ("ArrowRight", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    assert "Head 2-2" in page.locator(".hs-card h3").first.inner_text()
    grid = page.locator("[data-view=explorer] .hs-frame").first
    grid.get_by_role("button", name="8-4", exact=False).first.click()
    card = page.locator(".hs-card")
    assert "Head 8-4" in card.locator("h3").first.inner_text()
    assert page.url.endswith("#head=8-4")
    best = run["relations"].table.where(layer=8, head=4).sort("lift", descending=True)
    assert best["label"][0] in card.locator(".hs-said").inner_text()
    titles = card.locator("h4").all_inner_texts()
    assert titles.index("Seen at work") < titles.index("In numbers"), "examples come before numbers"
    assert card.locator(".hs-examples .hs-frame").count() >= 2
    card.get_by_role("button", name="next head").click()
    assert "Head 8-5" in card.locator("h3").first.inner_text()


def test_the_state_of_the_page_is_in_its_address(report: str, run: hs.Run, visitor: Visitor) -> None:
    page = visitor.open(report, offline=True)
    grid = page.locator("[data-view=explorer] .hs-frame").first
    _choose(grid.get_by_label("quantity"), "to_sep")
    grid.get_by_role("button", name="by value").click()
    grid.get_by_label("layers").fill("1-4")
    table = page.locator("table[data-table=relations]")
    lift = table.get_by_role("columnheader", name="lift")
    lift.get_by_role("button").press("Enter")
    assert lift.get_attribute("aria-sort") == "descending"
    lifts = [float(text.split()[0].replace("−", "-")) for text in table.locator("tbody tr td:nth-child(8)").all_inner_texts()]
    assert lifts == sorted(lifts, reverse=True)
    assert len(lifts) > 5
    page.locator("#find-relations").fill("obj")
    shown = table.locator("tbody tr:visible")
    assert 0 < shown.count() < len(lifts)
    assert all("obj" in text for text in shown.all_inner_texts())
    page.locator("[data-view=types]").get_by_label("find", exact=True).fill("sink")
    link = shown.first.locator("a").first
    head = link.inner_text()
    link.click()
    assert f"Head {head}" in page.locator(".hs-card h3").first.inner_text()
    page.locator("nav.side a", has_text="Surface patterns").click()
    expect(page.locator("nav.side [aria-current]")).to_have_text("Surface patterns", timeout=60_000)
    page.wait_for_function("() => location.hash.includes('find.types')")
    for part in (
        "#clark2-encoder&",
        f"head={head}",
        "quantity=tokens/to_sep",
        "order=value",
        "layers=1-4",
        "sort.relations=-8",
        "find.relations=obj",
    ):
        assert part in page.url
    page.reload()
    page.wait_for_selector(".hs-card")
    assert f"Head {head}" in page.locator(".hs-card h3").first.inner_text()
    assert grid.get_by_label("quantity").input_value() == "tokens/to_sep"
    assert grid.get_by_role("button", name="by value").get_attribute("aria-pressed") == "true"
    assert grid.get_by_label("layers").input_value() == "1-4"
    assert lift.get_attribute("aria-sort") == "descending"
    assert page.locator("#find-relations").input_value() == "obj"
    assert page.locator("[data-view=types]").get_by_label("find", exact=True).input_value() == "sink"
    assert page.evaluate("Math.abs(document.getElementById('clark2-encoder').getBoundingClientRect().top) < 200"), "the section is in view"
    page.evaluate("() => { location.hash = '#head=99-99'; }")
    missing = page.get_by_role("alert").filter(has_text="There is no head 99-99")
    expect(missing).to_be_in_viewport(timeout=60_000)
    assert "1-1 to 12-12" in missing.inner_text()
    assert page.locator(".hs-card").count() == 0


def test_types_of_heads_are_sorted_and_filtered_and_open_a_head(tmp_path: Path, visitor: Visitor) -> None:
    run = hs.run("mini-decoder", "repeats:20x8", ["sequences", "tokens"], replicates=100, gallery=0)
    labels = run.results.head_labels
    page = visitor.open(run.report(tmp_path / "report.html").as_uri(), offline=True)
    part = page.locator("#types")
    rows = part.locator("tbody tr")
    named = {str(label.head) for label in labels.sure}
    assert rows.count() == len(named) < len(labels.heads)
    assert "after Holm's correction" in part.inner_text()
    assert "Not measured: retrieval" in part.inner_text()
    assert "syntactic (--measures relations)" in part.inner_text()
    part.get_by_label("type", exact=True).select_option("induction")
    heads = list(map(str, labels.of_type("induction")))
    assert rows.locator("td:first-child").all_inner_texts() == heads
    part.get_by_role("button", name="value").click()
    values = {str(label.head): label.value for label in labels.sure if label.type.name == "induction"}
    assert rows.locator("td:first-child").all_inner_texts() == sorted(heads, key=lambda head: -round(values[head], 6))
    assert part.get_by_role("columnheader", name="value").get_attribute("aria-sort") == "descending"
    saved = downloaded(page, part.get_by_role("button", name="save the types of heads as CSV"))
    assert len(saved.decode().splitlines()) == 1 + len(labels.sure)
    rows.first.get_by_role("button").click()
    chips = page.locator(".hs-card .hs-labels li").all_inner_texts()
    assert chips[0].startswith("induction")
    assert any(chip.startswith("sink: first token") for chip in chips)
    assert violations(page) == []


def test_the_grid_shows_a_slice(tmp_path: Path, visitor: Visitor) -> None:
    """The choice of a slice recolours the grid, and the number of documents of each slice is shown."""
    documents = [replace(document, metadata={"genre": ("news", "diary")[number % 3 == 0]}) for number, document in enumerate(excerpt(7))]
    run = hs.run("mini", Corpus.of(documents), ["entropy"], by="genre", replicates=20, gallery=8)
    page = visitor.open(run.report(tmp_path / "report.html").as_uri(), offline=True)
    grid = page.locator("[data-view=explorer] .hs-frame").first
    assert grid.get_by_label("genre").locator("option").all_text_contents() == [
        "all (7 documents)",
        "diary (3 documents)",
        "news (4 documents)",
    ]
    grid.get_by_label("quantity").select_option(label="entropy")

    def shown() -> tuple[str, str]:
        head = grid.get_by_role("button", name="8-4", exact=False).first
        fills = grid.locator("svg rect").evaluate_all("cells => cells.map((cell) => getComputedStyle(cell).fill).join(' ')")
        return head.get_attribute("aria-label") or "", fills

    seen = {"": shown()}
    for genre, n in (("diary", 3), ("news", 4)):
        grid.get_by_label("genre").select_option(genre)
        expect(grid.locator(".hs-about").first).to_contain_text(f"genre {genre}, n = ", timeout=60_000)
        expect(grid.locator(".hs-about").first).to_contain_text(f"{n} documents", timeout=60_000)
        seen[genre] = shown()
        value = run.slice(genre=genre)["entropy"].table.where(quantity="entropy", layer=8, head=4)["value"][0]
        assert f"{value:.2f}" in seen[genre][0]
        rows = list(csv.DictReader(io.StringIO(downloaded(page, grid.get_by_role("button", name="as CSV")).decode())))
        assert {row["genre"] for row in rows} == {genre}
        assert_allclose(next(float(row["value"]) for row in rows if (row["layer"], row["head"]) == ("8", "4")), value, atol=1e-4)
    assert len({label for label, _ in seen.values()}) == 3
    assert len({fills for _, fills in seen.values()}) == 3
    assert violations(page) == []


def test_an_example_is_inspected_and_saved(report: str, run: hs.Run, visitor: Visitor) -> None:
    """A word can be isolated, only annotated links are red, special tokens can be hidden, and pictures are saved."""
    page = visitor.open(f"{report}#head=8-4", offline=True)
    example = page.locator(".hs-examples .hs-frame").first
    svg = downloaded(page, example.get_by_role("button", name="as SVG"))
    root = ElementTree.fromstring(svg)
    texts = {node.text for node in root.iter("{http://www.w3.org/2000/svg}text")} | {
        node.text for node in root.iter("{http://www.w3.org/2000/svg}tspan")
    }
    shown = set(example.locator("svg text").all_text_contents())
    assert {"[CLS]", "[SEP]"} <= shown
    assert shown <= {text or "" for text in texts}
    assert run.signature.split("|")[-1] in svg.decode()
    assert b"var(--" not in svg
    png = downloaded(page, example.get_by_role("button", name="as PNG"))
    assert png.startswith(b"\x89PNG")
    red = example.locator("svg line[stroke='var(--hs-red)']").count()
    assert red >= 1
    drawn = example.locator("svg .hs-links line")
    opacities = drawn.evaluate_all("lines => lines.map((line) => Number(line.getAttribute('stroke-opacity')))")
    assert min(opacities) > 0.2, "lines that are faded beside the red ones are still visible in dark mode"
    words = example.locator("svg [role=option]")
    word = words.nth(1)
    word.hover()
    announcement = example.locator("[aria-live]")
    expect(announcement).to_contain_text((word.text_content() or "?").strip()[:3], timeout=60_000)
    expect(announcement).to_contain_text(re.compile(r"[0-9]"), timeout=60_000)
    word.click()
    page.mouse.move(0, 0)
    assert example.locator("svg line[stroke='var(--hs-red)']").count() == red, "a pinned word is not an annotated link"
    marked = example.locator("svg [data-side=row] [role=option][style*='--hs-red']").first
    marked.hover()
    expect(example.locator(".hs-isolated path[stroke='var(--hs-red)']")).to_have_count(1, timeout=60_000)
    example.locator("summary").click()
    example.get_by_label("special tokens").select_option("hide")
    expect(example.locator("svg").first).not_to_contain_text("[SEP]", timeout=60_000)
    assert example.locator("svg").first.text_content()


def test_the_word_level_map_equals_that_of_python(tmp_path: Path, visitor: Visitor) -> None:
    """The word-level map that the browser computes equals the one that all measures use."""
    model = hs.load("mini")
    (document,) = [document for document in hs.read("sampler") if "news" in document.id][:1]
    encoded = max(Encoder(model.tokenizer, "sentence", 128).texts([document], Tally()), key=len)
    weights = look(model, encoded)
    head, map = next((head, map) for head, map in weights.items() if str(head) == "8-4")
    groups = WordGroups.build([encoded], torch.device("cpu"))
    expected = word_map(torch.from_numpy(map)[None, None], groups, groups)[0, 0].numpy()
    side = {"tokens": encoded.pieces, "roles": encoded.roles, "words": encoded.word_of, "forms": [word.form for word in encoded.words]}
    (tmp_path / "empty.html").write_text("<p class='hs'>ready</p>", encoding="utf-8")
    page = visitor.open((tmp_path / "empty.html").as_uri(), offline=True)
    found = page.evaluate(
        """async ([source, weights, side]) => {
          const module = await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
          return [...module.wordMap(Float32Array.from(weights), side, side)];
        }""",
        [bundle(), map.flatten().tolist(), side],
    )
    assert str(head) == "8-4"
    assert len(set(encoded.word_of)) < len(encoded)  # some words have several tokens
    assert_allclose(np.array(found).reshape(expected.shape), expected, atol=1e-6)


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_report_is_accessible_and_fits_the_window(report: str, visitor: Visitor, width: int, dark: bool) -> None:
    page = visitor.open(f"{report}#head=8-4", width, dark, offline=True)
    page.wait_for_selector(".hs-examples svg")
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_grid_is_ordered_filtered_saved_and_shown_as_maps(report: str, run: hs.Run, visitor: Visitor) -> None:
    page = visitor.open(report, offline=True)
    grid = page.locator("[data-view=explorer] .hs-frame").first
    _choose(grid.get_by_label("quantity"), "to_sep")
    grid.get_by_role("button", name="by value").click()
    top = run["tokens"].table.where(quantity="to_sep").sort("value", descending=True)
    first = grid.locator("svg [tabindex]").first
    assert f"{top['layer'][0]}-{top['head'][0]}" in (first.get_attribute("aria-label") or "")
    grid.get_by_label("only above even").check()
    grid.get_by_label("layers").fill("1-4, abc")
    expected = sum(row["layer"] <= 4 and row["value"] > row["baseline"] for row in run["tokens"].table.where(quantity="to_sep"))
    assert f"{expected} of 144 heads: above even, layers 1-4; in the order of to_sep." in grid.locator("figcaption").inner_text()
    assert "There is no layer abc" in grid.inner_text()
    table = list(csv.DictReader(io.StringIO(downloaded(page, grid.get_by_role("button", name="as CSV")).decode())))
    assert [row["passes"] for row in table].count("true") == expected
    assert {row["measure"] for row in table} == {"tokens"}
    values = {(row["layer"], row["head"]): float(row["value"]) for row in table if row["quantity"] == "to_sep"}
    for row in run["tokens"].table.where(quantity="to_sep"):
        assert_allclose(values[str(row["layer"]), str(row["head"])], row["value"], atol=1e-4)
    grid.get_by_label("only above even").uncheck()
    grid.get_by_label("layers").fill("")
    grid.get_by_role("button", name="map", exact=True).click()
    expect(grid.locator("svg image")).to_have_count(144, timeout=60_000)


def test_heads_are_opened_from_addresses_and_figures(report: str, run: hs.Run, visitor: Visitor) -> None:
    page = visitor.open(f"{report}#head=8-4", offline=True)
    page.wait_for_function("() => Math.abs(document.querySelector('.hs-card').getBoundingClientRect().top) < 100")
    page.evaluate("() => { location.hash = '#head=3-2'; }")
    page.locator(".hs-card[aria-label='head 3-2']").wait_for()
    contest = page.locator("[data-view=contest]").first
    assert contest.locator("svg [tabindex='0']").count() == 1
    contest.locator("svg [tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    best = run.results["relations_best"]["heads"][1].split(" | ")[0]
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == f"head {best}"


def _choose(select: Any, text: str) -> None:
    value = select.locator("option", has_text=text).first.get_attribute("value")
    select.select_option(value)


def test_heads_of_a_decoder_have_short_names(mini_decoder: Model, tmp_path: Path, visitor: Visitor) -> None:
    run = hs.run(mini_decoder, excerpt(10), ["positions", "tokens"], replicates=0)
    report = run.report(tmp_path / "report.html").as_uri()
    for name in ("4-3", "decoder/4-3"):
        page = visitor.open(f"{report}#head={name}", offline=True)
        card = page.locator(".hs-card")
        assert "Head 4-3" in card.locator("h3").first.inner_text()
        assert "to the previous token" in card.locator(".hs-said").inner_text()
        assert card.locator(".hs-examples .hs-frame").count() >= 1, "examples are found by the short name"
    assert "decoder/" not in page.locator("body").inner_text()


def test_two_runs_are_compared_side_by_side(run: hs.Run, tmp_path: Path, visitor: Visitor) -> None:
    other = hs.run("mini", excerpt(10), ["positions", "relations"], weights="random", replicates=20, gallery=0)
    path = write_comparison(compare([run.results, other.results]), tmp_path / "compare.html")
    page: Page = visitor.open(path.as_uri(), offline=True)
    text = page.locator(".hs-compare").inner_text()
    assert "paired by document" in text
    assert "tokens: only in trained weights" in text
    frames = page.locator(".hs-frame")
    assert frames.count() == 3
    table = list(csv.DictReader(io.StringIO(downloaded(page, frames.first.get_by_role("button", name="as CSV")).decode())))
    assert len(table) == 144
    ours = run["positions"].table.where(quantity=table[0].get("quantity", "previous"), layer=1, head=1)
    assert_allclose(float(table[0]["a"]), ours["value"][0], atol=1e-4)
    assert violations(page) == []
