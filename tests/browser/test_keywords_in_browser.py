"""The page of shaded texts in a real browser: no script runs, nothing is fetched, and the page is readable, light and
dark, wide and narrow.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headscope.studies.keywords.finder import KeywordResult, TrainedFinder, plain
from headscope.studies.keywords.phrases import phrases
from headscope.views.shaded import page
from helpers.browsing import Visitor, violations

TEXT = "The cat <script>document.title = 'gone'</script> sat on <img src=https://example.org/x.png> the mat.\n\nA dog came " + "x" * 200


def result_of(text: str) -> KeywordResult:
    """The keywords of a text whose word weights fall evenly from 1 to 0, so that every shade occurs."""
    document = plain(text)
    weights = np.linspace(0, 1, len(document.words))[::-1]
    return KeywordResult(
        document, weights, tuple(phrases(document, weights, 0.2)), 0.2, TrainedFinder("mini", "", "some <b>corpus</b>", 3, 0.5, "3 folds")
    )


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (390, True)])
def test_texts_are_shaded_and_their_markup_is_not_executed(visitor: Visitor, tmp_path: Path, width: int, dark: bool) -> None:
    path = tmp_path / "page.html"
    path.write_text(page([result_of(TEXT), result_of("One more text.")], 5, "headscope:0|text:x"), encoding="utf-8")
    opened = visitor.open(path.as_uri(), width, dark, offline=True, drawn=False)
    assert opened.title() == "Keywords of 2 texts"
    assert opened.locator("script").count() == opened.locator("img").count() == opened.locator("b").count() == 0
    assert "<script>document.title = 'gone'</script>" in opened.locator(".text").first.inner_text()
    assert opened.evaluate("document.documentElement.scrollWidth") <= width
    assert opened.locator("u").count() > 2
    shades = {opened.locator(".text span").nth(place).evaluate("one => getComputedStyle(one).backgroundColor") for place in (0, 5, 10)}
    assert len(shades) == 3
    opened.locator("section a").first.click()
    assert opened.locator("u:target").count() == 1
    assert violations(opened) == []
