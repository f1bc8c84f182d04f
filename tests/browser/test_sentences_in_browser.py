"""The page of example sentences to try without installing, opened from a file in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from headscope.models.model import Model
from headscope.views.known import KnownHead
from headscope.views.sentences import ExampleSentence, sentences_page
from helpers.browsing import Visitor, expect, violations

BODY = '<main><h1>Sentences</h1><div data-view="sentences"></div></main>'
SENTENCES = [
    ExampleSentence("objects", "She opened the door.", "An object."),
    ExampleSentence("pronouns", "Peter hurt himself.", "A reflexive."),
]
KNOWN = [KnownHead("8-4", "objects", "finds objects: 82%", "sampler"), KnownHead("2-1", "previous token", "attends back: 93%", "sampler")]


@pytest.fixture(scope="module")
def address(mini: Model, tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("sentences") / "sentences.html"
    path.write_text(sentences_page(mini, SENTENCES, KNOWN, "report.html", BODY), encoding="utf-8")
    return f"file://{path}"


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_a_sentence_and_a_head_can_be_chosen(address: str, visitor: Visitor, width: int, dark: bool) -> None:
    page = visitor.open(address, offline=True, width=width, dark=dark)
    expect(page.locator(".hs-cell image")).to_have_count(144)
    expect(page.locator(".hs-read")).to_have_text("She opened the door.")
    expect(page.locator("figcaption", has_text="Attention of head 8-4,")).to_have_count(1)
    assert page.get_by_role("link", name="sampler").get_attribute("href") == "report.html#head=8-4"
    assert violations(page) == []
    page.get_by_role("button", name="next", exact=True).click()
    page.get_by_role("button", name="2-1 · previous token").click()
    expect(page.locator(".hs-read")).to_have_text("Peter hurt himself.")
    expect(page.locator("figcaption", has_text="Attention of head 2-1,")).to_have_count(1)
    assert page.locator("figure svg text", has_text="himself").count() == 2
    page.get_by_role("button", name="influence", exact=True).click()
    expect(page.locator("figcaption", has_text="Influence by A")).to_have_count(1)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate("location.hash") == "#sentence=2&head=2-1"


def test_the_address_chooses_the_sentence_and_the_head(address: str, visitor: Visitor) -> None:
    page = visitor.open(f"{address}#sentence=2&head=5-5", offline=True)
    expect(page.locator(".hs-read")).to_have_text("Peter hurt himself.")
    expect(page.locator("figcaption", has_text="Attention of head 5-5,")).to_have_count(1)
    page.get_by_label("one of 2 sentences").select_option(label="She opened the door.")
    expect(page.locator("figure svg text", has_text="door")).to_have_count(2)
    page.evaluate("location.hash = '#sentence=9&head=99-1'")
    expect(page.locator(".hs-read")).to_have_text("She opened the door.")
    expect(page.locator("figcaption", has_text="Attention of head 5-5,")).to_have_count(1)
