"""Open pages in a real browser without a network, and record problems that a person would not notice."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlparse

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page


class Visitor:
    """Opens pages and records their problems: errors in the console, and requests to other hosts."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser
        self._contexts: list[Any] = []
        self.problems: list[str] = []

    def open(self, address: str, width: int = 1280, dark: bool = False, offline: bool = False, drawn: bool = True) -> Page:
        """Open a page in a new window. With `drawn`, wait until its views are drawn."""
        context = self._browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", accept_downloads=True
        )
        self._contexts.append(context)
        context.set_default_timeout(600_000)  # enough on a busy machine
        context.set_offline(offline)
        page = context.new_page()
        page.on("console", lambda message: self._note(message.type == "error", f"console: {message.text}"))
        page.on("pageerror", lambda error: self._note(True, f"error: {error}"))
        page.on("request", lambda request: self._note(_is_external(request.url, address), f"request: {request.url}"))
        page.goto(address)
        if drawn:
            page.wait_for_selector(".hs")
        return page

    def _note(self, wrong: bool, what: str) -> None:
        if wrong:
            self.problems.append(what)

    def close(self) -> None:
        for context in self._contexts:
            context.close()


def _is_external(url: str, address: str) -> bool:
    requested = urlparse(url)
    return requested.scheme not in ("file", "data", "blob", "about") and requested.netloc != urlparse(address).netloc


def violations(page: Page) -> list[str]:
    """The serious and critical accessibility rules of axe-core that the page violates, each with its first element."""
    page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    serious = [rule for rule in found["violations"] if rule["impact"] in ("serious", "critical")]
    return [f"{rule['id']}: {rule['nodes'][0]['html'][:200]} {rule['nodes'][0].get('failureSummary', '')[:300]}" for rule in serious]


def downloaded(page: Page, button: Locator) -> bytes:
    """The content of the file that a click on the button downloads."""
    with page.expect_download() as download:
        button.click()
    return Path(download.value.path()).read_bytes()


def expect(locator: Locator) -> Any:
    """Assertions about an element of the page. They wait until they hold."""
    from playwright.sync_api import expect

    expect.set_options(timeout=600_000)  # enough on a busy machine
    return expect(locator)
