"""A real browser, cut off from the network, that notices what a person would not: errors in its console, and calls to other hosts."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib.resources import files
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update")


class Visitor:
    """Opens pages and keeps account of what goes wrong in them."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[Any] = []
        self.problems: list[str] = []

    def open(self, address: str, width: int = 1280, dark: bool = False, offline: bool = False) -> Page:
        """A page in a window of its own, drawn."""
        context = self._browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", accept_downloads=True
        )
        self._contexts.append(context)
        context.set_offline(offline)
        page = context.new_page()
        page.on("console", lambda message: self._note(message.type == "error", f"console: {message.text}"))
        page.on("pageerror", lambda error: self._note(True, f"error: {error}"))
        page.on("request", lambda request: self._note(_leaves(request.url, address), f"request: {request.url}"))
        page.goto(address)
        page.wait_for_selector(".hs")
        return page

    def _note(self, wrong: bool, what: str) -> None:
        if wrong:
            self.problems.append(what)

    def close(self) -> None:
        for context in self._contexts:
            context.close()


def _leaves(url: str, address: str) -> bool:
    asked = urlparse(url)
    return asked.scheme not in ("file", "data", "blob") and asked.netloc != urlparse(address).netloc


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: tests in a browser skipped")
    path = os.environ.get("HEADSCOPE_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.skip("no Chromium is installed: tests in a browser skipped")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=list(FLAGS))
        yield browser
        browser.close()


@pytest.fixture
def visitor(browser: Browser) -> Iterator[Visitor]:
    """What opens pages; the test fails if one of them had an error or called another host."""
    visitor = Visitor(browser)
    yield visitor
    visitor.close()
    assert visitor.problems == []


def violations(page: Page) -> list[str]:
    """What axe-core finds that keeps people out: its serious and critical rules, with the first place each."""
    page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    serious = [rule for rule in found["violations"] if rule["impact"] in ("serious", "critical")]
    return [f"{rule['id']}: {rule['nodes'][0]['html'][:200]} {rule['nodes'][0].get('failureSummary', '')[:300]}" for rule in serious]
