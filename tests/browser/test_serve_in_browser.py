"""The served pages in a real browser: addresses of heads, and texts typed in."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

import headscope as hs
from headscope.app.create import create_app
from headscope.app.limits import Limits
from headscope.app.server import bind
from headscope.runs.results import Results

TEXT = "The old clock on the wall <b>stopped</b>."


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server that keeps one text."""
    import uvicorn

    path = tmp_path_factory.mktemp("served") / "one"
    hs.run("mini", "sampler", ["tokens"], path, limit=6, replicates=10)
    app = create_app({"one": Results.open(path)}, {"mini": "mini"}, Limits(texts=1))
    bound = bind("127.0.0.1", 0)
    running = uvicorn.Server(uvicorn.Config(app, log_level="critical", access_log=False, ws="none"))
    thread = threading.Thread(target=running.run, kwargs={"sockets": [bound]})
    thread.start()
    while not running.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    running.should_exit = True
    thread.join()
    bound.close()


def test_a_head_can_be_sent_as_an_address(server: str, visitor: Any) -> None:
    page = visitor.open(f"{server}/runs/one/heads/8-10")
    assert page.locator(".hs-card[aria-label='head 8-10']").is_visible()
    page.get_by_role("button", name=re.compile(r"^(head )?3-2\b")).first.click()
    page.wait_for_selector(".hs-card[aria-label='head 3-2']")
    assert page.url == f"{server}/runs/one/heads/3-2"


def test_a_text_is_typed_in(server: str, visitor: Any) -> None:
    page = visitor.open(server)
    page.locator(".hs-live textarea").fill(TEXT)
    page.locator(".hs-live textarea").press("Control+Enter")
    page.wait_for_selector("figure svg text", timeout=60_000)
    words = page.locator("figure svg").first.inner_html()
    assert "clock" in words
    assert "&lt;" in words  # the text's own marks, as text
    assert page.url.startswith(f"{server}/live?text=The+old+clock+on+the+wall+%3Cb%3Estopped")
    again = visitor.open(page.url)
    again.wait_for_selector("figure svg text", timeout=60_000)
    assert again.locator(".hs-live textarea").input_value() == TEXT


def test_a_forgotten_text_is_sent_again(server: str, visitor: Any) -> None:
    page = visitor.open(f"{server}/live?text=A+cat+sat.")
    page.wait_for_selector("figure svg text", timeout=60_000)
    other = visitor.open(f"{server}/live?text=A+dog+ran.")
    other.wait_for_selector("figure svg text", timeout=60_000)
    page.get_by_label("add heads").fill("1-7")
    page.get_by_label("add heads").press("Enter")
    page.locator("figcaption", has_text="1-7").wait_for(timeout=60_000)
    assert page.locator(".hs-trouble").count() == 0
    visitor.problems[:] = [problem for problem in visitor.problems if "404" not in problem]  # how the page learned that it was forgotten


def test_what_cannot_be_read_is_said(server: str, visitor: Any) -> None:
    page = visitor.open(f"{server}/live")
    page.get_by_role("button", name="Look").click()
    assert "type a sentence" in page.get_by_role("alert").inner_text()
