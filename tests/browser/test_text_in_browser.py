"""The page of one text in a real browser, offline: all heads, influence between words, and red words."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

import pytest
from numpy.testing import assert_allclose

import headscope as hs
from headscope.models.model import Model
from helpers.browsing import Visitor, downloaded, expect, violations

PAIR = ("the rabbit quickly hopped", "the turtle slowly crawled")
RED = "rgb(200, 50, 30)"


def opened(visitor: Visitor, folder: Path, view: Any, **how: Any) -> Any:
    page = visitor.open(f"file://{view.save(folder / 'page.html')}", offline=True, **how)
    page.wait_for_selector("figure svg text")
    return page


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_a_thumbnail_opens_its_head(mini: Model, visitor: Visitor, tmp_path: Path, width: int, dark: bool) -> None:
    page = opened(visitor, tmp_path, hs.view(mini, *PAIR, heads="all", layer=[1, 2]), width=width, dark=dark)
    assert page.locator("h1").inner_text() == "mini reads “the rabbit quickly hopped / the turtle slowly crawled”"
    assert page.locator(".hs-sample").inner_text() == "“the rabbit quickly hopped / the turtle slowly crawled”"
    expect(page.locator(".hs-cell image")).to_have_count(24)  # of two layers
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    lines = page.locator(".hs-cell image").first.get_attribute("href")
    page.get_by_role("button", name="maps").click()
    assert page.locator(".hs-cell image").first.get_attribute("href") != lines
    page.get_by_role("button", name=re.compile("^head 2-5,")).click()
    page.locator("figcaption", has_text="Attention of head 2-5").wait_for()
    assert page.locator("svg text", has_text="rabbit").count() == 2
    tabs = page.get_by_role("group", name="view", exact=True)
    tabs.get_by_role("button", name="all heads").click()
    assert page.evaluate("document.activeElement.textContent") == "all heads", "the focus stays on the tab"
    expect(page.locator(".hs-cell image")).to_have_count(24)


def test_influence_equals_that_of_python(mini: Model, visitor: Visitor, tmp_path: Path) -> None:
    view = hs.view(mini, *PAIR, measure="A", layer=3, specials="hide", highlight="hopped→rabbit")
    page = opened(visitor, tmp_path, view)
    for measure, layer in (("A", "3"), ("rollout", "mean")):
        page.get_by_label("measure").select_option(measure)
        page.get_by_label("layer", exact=True).select_option(layer)
        which = "layer 3" if layer == "3" else "mean over 12 layers"
        page.locator("figcaption", has_text=re.compile(rf"^Influence by {measure} .*, {which}, between 8 words; ")).wait_for()
        rows = list(csv.DictReader(downloaded(page, page.get_by_role("button", name="as CSV")).decode().splitlines()))
        expected = view.influence(measure, 3 if layer == "3" else "mean")
        assert_allclose([float(row["value"]) for row in rows], expected.weights.ravel(), atol=1e-4)
        assert [(row["from"], row["to"]) for row in rows] == [(source, target) for target in expected.rows for source in expected.columns]
    assert "G* (takes longer to compute: make the page with --measure G*" in page.locator(".hs-text").inner_text()
    svg = downloaded(page, page.get_by_role("button", name="as SVG")).decode()
    assert "influence of →" in svg
    assert "|measure:rollout" in svg
    red = page.locator("svg text").evaluate_all(f"texts => texts.filter(t => getComputedStyle(t).fill == '{RED}').map(t => t.textContent)")
    assert red == ["hopped", "rabbit"], "one word in the rows, one in the columns"
    assert violations(page) == []


def test_highlighted_words_and_their_links_are_red(mini: Model, visitor: Visitor, tmp_path: Path) -> None:
    page = opened(visitor, tmp_path, hs.view(mini, *PAIR, heads="8-4", highlight=["hopped->rabbit", "slowly"]))
    red = page.locator(".hs-word").evaluate_all(f"words => words.filter(w => getComputedStyle(w).fill == '{RED}').map(w => w.textContent)")
    assert red == ["hopped", "slowly", "rabbit", "slowly"], "on the left, then on the right"
    red_lines = page.locator(".hs-links line[stroke='var(--hs-red)']").count()
    assert red_lines == 1 + 11 + 10, "the link of the pair, and all links from and to slowly"
    assert "in red: hopped->rabbit, slowly" in page.locator("figcaption").inner_text()
    page.get_by_label("in red").select_option("")
    expect(page.locator(".hs-links line[stroke='var(--hs-red)']")).to_have_count(0)


def test_heads_of_a_decoder_can_be_named_with_or_without_their_kind(mini_decoder: Model, visitor: Visitor, tmp_path: Path) -> None:
    page = opened(visitor, tmp_path, hs.view(mini_decoder, "The keys to the cabinet are here.", heads="7-5", highlight="are->keys"))
    assert page.locator(".hs-links line[stroke='var(--hs-red)']").count() == 1
    for name in ("4-3", "decoder/8-5"):
        page.get_by_label("add heads").fill(name)
        page.get_by_role("button", name="add", exact=True).click()
    expect(page.locator("figcaption")).to_contain_text("heads 7-5, 4-3, 8-5")
    page.get_by_label("add heads").fill("encoder/1-1")
    page.get_by_role("button", name="add", exact=True).click()
    expect(page.locator(".hs-text")).to_contain_text("No head is called “encoder/1-1”: the heads are 1-1 to 8-8.")
