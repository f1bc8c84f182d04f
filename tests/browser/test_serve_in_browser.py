"""The served pages in a real browser: addresses of heads, and typed texts."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

import headscope as hs
from headscope.app.create import create_app
from headscope.app.limits import Limits
from headscope.results.results import Results
from helpers.browsing import Visitor, downloaded, expect, violations
from helpers.serving import listening

TEXT = "The old clock on the wall <b>stopped</b>."
OPENED = "figure[data-figure^=attention]"  # the view of the open heads


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that keeps one text."""
    folder = tmp_path_factory.mktemp("served")
    hs.run("mini", "sampler", ["tokens"], folder / "one", limit=6, replicates=10)
    hs.run("mini", "sampler", ["tokens"], folder / "two", limit=6, replicates=10, weights="random", gallery=0)
    limits = Limits(texts=1)
    app = create_app({name: Results.open(folder / name) for name in ("one", "two")}, {"mini": "mini"}, limits)
    with listening(app, limits) as port:
        yield f"http://127.0.0.1:{port}"


def test_the_address_of_the_page_names_the_chosen_head(server: str, visitor: Visitor) -> None:
    page = visitor.open(f"{server}/runs/one/heads/8-10")
    assert page.locator(".hs-card[aria-label='head 8-10']").is_visible()
    page.get_by_role("button", name=re.compile(r"^(head )?3-2\b")).first.click()
    page.wait_for_selector(".hs-card[aria-label='head 3-2']")
    assert page.url == f"{server}/runs/one/heads/3-2"


def test_a_typed_text_is_drawn_and_kept_in_the_address(server: str, visitor: Visitor) -> None:
    page = visitor.open(server)
    page.locator(".hs-live textarea").fill(TEXT)
    page.locator(".hs-live textarea").press("Control+Enter")
    page.wait_for_selector(f"{OPENED} svg text", timeout=60_000)
    words = page.locator(f"{OPENED} svg").first.inner_html()
    assert "clock" in words
    assert "&lt;" in words  # markup of the text is shown as text
    assert page.url.startswith(f"{server}/live#text=The+old+clock+on+the+wall+%3Cb%3Estopped")
    again = visitor.open(page.url)
    again.wait_for_selector(f"{OPENED} svg text", timeout=60_000)
    assert again.locator(".hs-live textarea").input_value() == TEXT


def test_a_text_that_the_server_has_removed_is_sent_again(server: str, visitor: Visitor) -> None:
    pages = []
    for text in ("A cat sat.", "A dog ran."):
        pages.append(visitor.open(f"{server}/live#text={text.replace(' ', '+')}"))
        expect(pages[-1].locator(".hs-cell image")).to_have_count(144)
    page = pages[0]
    page.get_by_label("add heads").fill("1-7")
    page.get_by_label("add heads").press("Enter")
    page.locator(f"{OPENED} figcaption", has_text="1-7").wait_for()
    assert page.locator(".hs-trouble").count() == 0
    visitor.problems[:] = [
        problem for problem in visitor.problems if "404" not in problem
    ]  # the status that the server returns for a removed text


def test_an_empty_text_is_reported(server: str, visitor: Visitor) -> None:
    page = visitor.open(f"{server}/live")
    page.get_by_role("button", name="Look").click()
    assert "type a sentence" in page.get_by_role("alert").inner_text()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('<script>alert(1)</script> & "done"', ["<", "script", ">", "alert"]),
        ("I \N{SMILING FACE WITH SUNGLASSES} it \N{FAMILY}", ["I", "it"]),
        ("שלום עולם, this is mixed", ["this", "is", "mixed"]),
        (" ".join(f"word{number}" for number in range(2000)), ["word0", "word9"]),
    ],
    ids=["script", "emoji", "right-to-left", "2000 words"],
)
def test_any_text_is_shown_as_text(server: str, visitor: Visitor, text: str, words: list[str]) -> None:
    page = visitor.open(f"{server}/live")
    alerts: list[str] = []
    page.on("dialog", lambda dialog: alerts.append(dialog.message))
    page.locator(".hs-live textarea").fill(text)
    page.get_by_role("button", name="Look").click()
    page.wait_for_selector(f"{OPENED} svg text", timeout=60_000)
    figure = page.locator(OPENED)
    drawn = figure.locator("svg text").all_text_contents()
    assert all(word in drawn for word in words), drawn[:40]
    if len(text) > 1000:
        assert "cut off" in page.locator(".hs-live").inner_text()
    svg = downloaded(page, figure.get_by_role("button", name="as SVG")).decode()
    assert all(word.replace("<", "&lt;").replace(">", "&gt;") in svg for word in words)
    assert "<script" not in svg
    assert not alerts
    assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_rows_of_a_pair_sum_to_one_without_special_tokens(server: str, visitor: Visitor) -> None:
    page = visitor.open(f"{server}/live?text=She+called.&second=He+did+not+answer.")
    page.wait_for_selector(f"{OPENED} svg text", timeout=60_000)
    figure = page.locator(OPENED)
    assert figure.locator("svg text").all_text_contents().count("[SEP]") == 4  # two per side
    figure.get_by_label("special tokens").select_option("renormalise")
    expect(figure.locator("svg text", has_text="[SEP]")).to_have_count(0, timeout=60_000)
    rows = [line.split(",") for line in downloaded(page, figure.get_by_role("button", name="as CSV")).decode().splitlines()[1:]]
    sums: dict[str, float] = {}
    for _, row, *_, weight in rows:
        sums[row] = sums.get(row, 0) + float(weight)
    assert all(abs(total - 1) < 1e-3 for total in sums.values())


def test_two_runs_are_compared(server: str, visitor: Visitor) -> None:
    page = visitor.open(f"{server}/compare?a=one&b=two")
    text = page.locator(".hs-compare").inner_text()
    assert "one" in text
    assert "two" in text
    assert page.locator(".hs-frame").count() >= 2
    assert violations(page) == []


@pytest.mark.parametrize("place", ["/", "/runs/one/heads/8-10", "/live?text=A+cat+sat.", "/docs"])
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_served_pages_are_accessible_and_fit_the_window(server: str, visitor: Visitor, place: str, width: int, dark: bool) -> None:
    page = visitor.open(server + place, width, dark, drawn=not place.startswith("/docs"))
    if "live" in place:
        page.wait_for_selector(f"{OPENED} svg text", timeout=60_000)
    page.wait_for_load_state("networkidle", timeout=60_000)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
