"""A real browser, if one is installed."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from helpers.browsing import Visitor

if TYPE_CHECKING:
    from playwright.sync_api import Browser

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-component-update")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A browser that is open for one module. While it is open, its event loop is running, so tests that start another
    loop would fail.
    """
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
    """A visitor that opens pages. The test fails if a page has an error or calls another host."""
    visitor = Visitor(browser)
    yield visitor
    visitor.close()
    assert visitor.problems == []
