"""Typed texts in a real browser: examples, known heads, all heads, two texts compared, generation, and the address."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import parse_qs, quote, urlsplit

import pytest

import headscope as hs
from headscope.app.create import create_app
from headscope.app.limits import Limits
from headscope.core.document import Document
from headscope.corpora import Corpus, read
from helpers.browsing import Visitor, downloaded, expect, violations
from helpers.serving import listening

OPENED = "figure[data-figure^=attention]"  # the view of the open heads
ARE, IS = "The keys to the cabinet are here.", "The keys to the cabinet is here."
PAIR = f"#mode=compare&text={quote(ARE)}&second={quote(IS)}"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server with a run that has known heads of `mini`, and none of `mini-decoder`."""
    corpus = Corpus.of([Document(document.id, document.sentences[1:2]) for document in read("sampler")])
    run = hs.run("mini", corpus, ["positions"], tmp_path_factory.mktemp("served") / "one", replicates=50)
    limits = Limits(generate_tokens=8)
    with listening(create_app({"one": run.results}, {"mini": "mini", "mini-decoder": "mini-decoder"}, limits), limits) as port:
        yield f"http://127.0.0.1:{port}/live"


def state(address: str) -> dict[str, str]:
    """The parameters after the # of an address."""
    return {name: values[0] for name, values in parse_qs(urlsplit(address).fragment).items()}


def test_an_example_opens_the_first_known_head_of_the_run(server: str, visitor: Visitor) -> None:
    page = visitor.open(server)
    page.get_by_role("button", name="She opened the old door").click()
    caption = page.locator(f"{OPENED} figcaption")
    expect(caption).to_contain_text("head 1-5, between 10 words")  # words are the default level
    assert page.locator(".hs-live textarea").input_value() == "She opened the old door with a rusty key."
    known = page.get_by_role("group", name="heads that a run knows")
    assert known.get_by_role("button", pressed=True).inner_text() == "1-5 · next token"
    assert "gives more than half of its attention to the next token: 94%" in page.locator(".hs-known").inner_text()
    assert page.locator(".hs-known a").get_attribute("href") == "/runs/one/heads/1-5"
    known.get_by_role("button", name="2-1 · previous token").click()
    expect(caption).to_contain_text("head 2-1,")
    assert state(page.url) == {"text": "She opened the old door with a rusty key.", "model": "mini", "head": "2-1"}


def test_an_example_of_the_gallery_opens_its_head(server: str, visitor: Visitor) -> None:
    page = visitor.open(server)
    page.get_by_role("button", name="2-1 · previous token, from one").click()
    expect(page.locator(f"{OPENED} figcaption")).to_contain_text("head 2-1,")


def test_a_click_in_the_grid_of_all_heads_opens_a_head(server: str, visitor: Visitor) -> None:
    page = visitor.open(f"{server}#text=A+cat+sat.", 390)
    expect(page.locator(".hs-cell image")).to_have_count(144)
    cell = page.get_by_role("button", name=re.compile("^head 8-4,"))
    cell.click()
    expect(page.locator(f"{OPENED} figcaption")).to_contain_text("head 8-4,")
    assert cell.get_attribute("aria-pressed") == "true"
    expect(page.locator(f"{OPENED} .hs-title")).to_be_in_viewport()  # although it is below the grid
    assert page.get_by_role("button", name=re.compile("^head 1-5, known for: next token")).count() == 1


def test_a_link_opens_the_same_view(server: str, visitor: Visitor) -> None:
    page = visitor.open(f"{server}#text=A+cat+sat.&head=8-4,2-1")
    expect(page.locator(f"{OPENED} figcaption")).to_contain_text("heads 8-4, 2-1")
    page.locator(OPENED).get_by_label("level").select_option("token")
    page.locator(OPENED).get_by_label("special tokens").select_option("hide")
    page.get_by_role("button", name="influence").click()
    page.get_by_label("measure").select_option("norms")
    page.get_by_label("layer").select_option("3")
    expected = {"text": "A cat sat.", "model": "mini", "head": "8-4,2-1", "view": "influence", "level": "token", "specials": "hide"}
    assert state(page.url) == {**expected, "measure": "norms", "layer": "3"}
    again = visitor.open(page.url)
    expect(again.locator("figure[data-figure^=influence] figcaption")).to_contain_text("layer 3, between 4 tokens; special tokens hidden")
    again.get_by_role("group", name="view").get_by_role("button", name="lines").click()
    expect(again.locator(f"{OPENED} figcaption")).to_contain_text("heads 8-4, 2-1, between 4 tokens")


def test_back_returns_to_the_previous_text(server: str, visitor: Visitor) -> None:
    page = visitor.open(f"{server}#text=A+cat+sat.")
    page.wait_for_selector(f"{OPENED} svg text")
    page.locator(".hs-live textarea").fill("A dog ran.")
    page.get_by_role("button", name="Look").click()
    expect(page.locator(f"{OPENED} svg text", has_text="dog").first).to_be_visible()
    page.go_back()
    expect(page.locator(f"{OPENED} svg text", has_text="cat").first).to_be_visible()
    assert page.locator(".hs-live textarea").input_value() == "A cat sat."


def test_another_model_reads_the_same_text(server: str, visitor: Visitor) -> None:
    page = visitor.open(f"{server}#text=A+cat+sat.")
    page.wait_for_selector(f"{OPENED} svg text")
    page.get_by_label("model").select_option("mini-decoder")
    expect(page.locator(f"{OPENED} svg text", has_text="<|endoftext|>").first).to_be_visible()
    assert state(page.url)["model"] == "mini-decoder"
    assert "No run of mini-decoder with labels of heads is served" in page.locator(".hs-live").inner_text()


def test_a_minimal_pair_shows_the_differences_of_all_heads(server: str, visitor: Visitor) -> None:
    page = visitor.open(server)
    page.get_by_role("button", name=re.compile(r"a minimal pair")).click()
    grid = page.locator("figure[data-figure^=differences-]")
    expect(grid.locator(".hs-cell")).to_have_count(144)
    assert "(“are” → “is”)" in grid.locator("figcaption").inner_text()
    rows = [line.split(",") for line in downloaded(page, grid.get_by_role("button", name="as CSV")).decode().splitlines()[1:]]
    means = {head: float(mean) for head, mean, *_ in rows}
    most = max(means, key=lambda head: means[head])
    assert state(page.url) == {"mode": "compare", "text": ARE, "second": IS, "model": "mini", "head": most}
    page.get_by_role("button", name=re.compile("^head 8-4,")).click()
    opened = page.locator(OPENED)
    expect(opened).to_have_count(2)
    expect(opened.nth(1).locator("svg text", has_text=re.compile("^is$")).first).to_be_visible()
    difference = page.locator("figure[data-figure^=difference-8-4]")
    assert f"Mean difference over words {means['8-4']:.3f}" in difference.locator("figcaption").inner_text()
    cells = [line.split(",") for line in downloaded(page, difference.get_by_role("button", name="as CSV")).decode().splitlines()[1:]]
    words = [cell for cell in cells if "[" not in cell[1]]
    assert sum(abs(float(cell[-1])) for cell in words) / 2 / 8 == pytest.approx(
        means["8-4"], abs=1e-3
    )  # the definition of the mean difference
    assert state(page.url)["head"] == "8-4"


def test_texts_that_cannot_be_compared_are_still_shown(server: str, visitor: Visitor) -> None:
    page = visitor.open(f"{server}#mode=compare&text=A+cat+sat.&second=The+dogs+of+the+town+ran+after+it+all+day.")
    alert = page.get_by_role("alert")
    expect(alert).to_contain_text("the texts have 4 and 11 words, and only")
    expect(page.locator(OPENED)).to_have_count(2)
    visitor.problems[:] = [problem for problem in visitor.problems if "422" not in problem]  # the status that the server must return here


def test_a_decoder_generates_tokens_and_shows_the_steps(server: str, visitor: Visitor) -> None:
    page = visitor.open(f"{server}#model=mini-decoder&text={quote('The keys to the cabinet are on the')}")
    page.wait_for_selector(f"{OPENED} svg text")
    page.get_by_label("tokens, 1 to 8").fill("4")
    page.get_by_role("button", name="Generate").click()
    expect(page.locator(".hs-steps output")).to_have_text("step 1 of 4: “right”")
    slider = page.get_by_role("slider", name="generation")
    slider.press("ArrowRight")
    expect(page.locator(".hs-steps output")).to_have_text("step 2 of 4: “hand”")
    assert "mini-decoder wrote the last 4 tokens" in page.get_by_role("status").first.inner_text()
    assert state(page.url)["generate"] == "4"
    again = visitor.open(page.url)
    expect(again.locator(".hs-steps output")).to_have_text("step 1 of 4: “right”")
    again.get_by_label("tokens, 1 to 8").fill("99")
    assert again.get_by_role("button", name="Generate").get_attribute("aria-disabled") == "true"


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ("#text=A+cat+sat.&model=nobody", "No model “nobody” is served here: choose mini or mini-decoder."),
        ("#text=A+cat+sat.&head=99-1", "The model has no head 99-1: the address names it."),
        ("#mode=compare&text=A+cat+sat.", "There is no second text yet"),
        ("#text=%20&model=mini", "There is no text yet"),
    ],
)
def test_invalid_addresses_are_reported(server: str, visitor: Visitor, place: str, said: str) -> None:
    page = visitor.open(server + place)
    expect(page.get_by_role("alert")).to_contain_text(said)


def test_second_texts_that_cannot_be_compared_are_reported(server: str, visitor: Visitor) -> None:
    page = visitor.open(f"{server}{PAIR}")
    page.wait_for_selector("figure[data-figure^=differences-]")
    alert = page.get_by_role("alert")
    for second, said in [
        ("", "There is no second text yet"),
        ("שלום cats, 🐈‍⬛ and more", "the texts have 8 and 6 words"),
        ("is " * 3000, "the texts have 8 and 254 words, and only 0 correspond, too few to compare heads"),
    ]:
        page.get_by_role("textbox", name="second text").fill(second)
        page.get_by_role("button", name="Compare", exact=True).click()
        expect(alert).to_contain_text(said)
    assert "Not all of the second text was read: 2,746 words cut off" in page.locator(".hs-live").inner_text()
    visitor.problems[:] = [problem for problem in visitor.problems if "422" not in problem]


@pytest.mark.parametrize(
    ("place", "width", "dark"),
    [
        (PAIR, 1440, False),
        (PAIR, 390, True),
        ("#model=mini-decoder&generate=3&text=The+keys", 390, False),
        ("#text=A+cat+sat.", 1440, True),
        ("", 390, True),
    ],
    ids=["pair", "pair on a phone", "generated", "one text", "start"],
)
def test_pages_of_typed_texts_are_accessible_and_fit_the_window(server: str, visitor: Visitor, place: str, width: int, dark: bool) -> None:
    page = visitor.open(server + place, width, dark)
    page.wait_for_selector(f"{OPENED} svg text" if place else ".hs-starts li")
    page.wait_for_load_state("networkidle")
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
