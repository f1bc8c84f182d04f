"""The page of a generated text in a real browser: the slider of its steps, and what each step shows."""

from __future__ import annotations

from pathlib import Path

import pytest

import headscope as hs
from headscope.models.model import Model
from helpers.browsing import Visitor, downloaded, expect, violations

PROMPT = "The keys to the cabinet are on the"


@pytest.fixture(scope="module")
def view(writer: Model) -> hs.api.running.View:  # type: ignore[name-defined]
    return hs.view(writer, PROMPT, heads=["5-3"], generate=6)


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_the_keyboard_moves_through_the_steps(view, visitor: Visitor, tmp_path: Path, width: int, dark: bool) -> None:  # type: ignore[no-untyped-def]
    page = visitor.open(f"file://{view.save(tmp_path / 'page.html')}", offline=True, width=width, dark=dark)
    page.wait_for_selector("figure svg text")
    assert page.locator("h1").inner_text() == f"mini-decoder continues “{PROMPT}”"
    tokens, start = view.text.pieces, view.text.generated_from
    slider = page.get_by_role("slider", name="generation")
    chosen, row = page.locator("[data-side=row] [style*=underline]"), page.locator("[data-side=row] [aria-selected=true]")
    for number in (1, 2, 3):
        step_label = f"step {number} of 6: “{tokens[start + number - 1]}”"
        expect(page.locator(".hs-steps output")).to_have_text(step_label)
        assert slider.get_attribute("aria-valuetext") == step_label
        expect(row).to_have_text(tokens[start + number - 2])
        assert row.get_attribute("data-at") == str(start + number - 2), "the selected row is the one whose output chose the token"
        expect(chosen).to_have_text(tokens[start + number - 1])
        weights = [float(weight) for weight in page.locator(".hs-weights text").all_text_contents()]
        expected = sorted((round(float(weight), 2) for weight in view.step(number, "5-3") if weight >= 0.005), reverse=True)
        assert sorted(weights, reverse=True) == pytest.approx(expected, abs=0.011)
        slider.press("ArrowRight")
    slider.press("End")
    expect(page.locator(".hs-steps output")).to_have_text(f"step 6 of 6: “{tokens[-1]}”")
    assert f"Shown is the row of “{tokens[-2]}”: its output chose “{tokens[-1]}”." in page.locator(".hs-steps").inner_text()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert violations(page) == []
    slider.press("Home")
    expect(page.locator(".hs-steps output")).to_have_text("all 6 steps")
    expect(row).to_have_count(0)
    assert page.locator(".hs-generated rect").count() == 2


def test_steps_are_shown_in_other_views_except_between_words(view, visitor: Visitor, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    page = visitor.open(f"file://{view.save(tmp_path / 'page.html')}", offline=True)
    page.wait_for_selector("figure svg text")
    caption = page.locator("figcaption")
    expect(caption).to_contain_text("shaded: 6 tokens that the model wrote; step 1 of 6: “right”, by the row of the token before it")
    assert b"hs-generated" in downloaded(page, page.get_by_role("button", name="as SVG"))
    page.get_by_role("button", name="heatmap").click()
    expect(page.locator(".hs-step-row")).to_have_count(1)
    page.get_by_label("special tokens").select_option("hide")
    expect(page.locator(".hs-steps output")).to_have_text("step 1 of 6: “right”")
    expect(page.locator(".hs-steps .hs-note")).to_contain_text("the row of “the”")
    page.get_by_label("level").select_option("word")
    assert "choose the level “tokens” to go through its steps" in page.locator(".hs-text").inner_text()
    assert page.get_by_role("slider", name="generation").count() == 0
