"""The page that contains its data and code: no text can add elements to it, and it loads nothing."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from typing import Any

import pytest

from headscope.core.paths import printable
from headscope.views.page import bundle, encode, shell

HOSTILE_TEXTS = [
    "</script><script>alert(1)</script>",
    "<!-- <script>",
    "]]>",
    "a & b",
    "\u2028\u2029",
    "שלום עולם",
    "👩‍👩‍👧 naïve",
    "\ud800",
    "\x00\x1f\"'\\",
]


class Elements(HTMLParser):
    """The elements that a parser finds, in order, with their attributes and the text after each start tag."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self.texts.append("")

    def handle_data(self, data: str) -> None:
        if self.texts:
            self.texts[-1] += data


def parsed(page: str) -> Elements:
    elements = Elements()
    elements.feed(page)
    return elements


def embedded_data(page: str) -> Any:
    elements = parsed(page)
    return next(
        json.loads(text)
        for (_, attributes), text in zip(elements.found, elements.texts, strict=True)
        if attributes.get("id") == "headscope-data"
    )


@pytest.mark.parametrize("text", HOSTILE_TEXTS)
def test_any_text_is_read_back_unchanged_from_the_page(text: str) -> None:
    page = shell(text, "<main></main>", {"text": {"forms": [text], text: 1}})
    assert embedded_data(page) == {"text": {"forms": [text], text: 1}}
    assert [tag for tag, _ in parsed(page).found].count("script") == 2
    elements = parsed(page)
    title = next(text for (tag, _), text in zip(elements.found, elements.texts, strict=True) if tag == "title")
    assert title.strip() == printable(text).strip()
    page.encode("utf-8")


def test_data_are_strict_json_without_special_characters_of_html() -> None:
    import numpy as np

    data = {
        "values": [float("nan"), 1.5, float("inf")],
        "array": np.array([1.0, np.nan]),
        "one": np.float32(0.5),
        "n": np.int64(3),
        "no": None,
    }
    text = encode(data | {"texts": HOSTILE_TEXTS})
    assert not set("<>&\u2028\u2029") & set(text)
    back = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    assert back == {"values": [None, 1.5, None], "array": [1.0, None], "one": 0.5, "n": 3, "no": None, "texts": HOSTILE_TEXTS}


def test_the_policy_of_the_page_forbids_loading_and_no_host_is_named() -> None:
    page = shell("title", "<main></main>", {"text": {}}, style="p{color:red}")
    elements = parsed(page)
    policy = next(attributes["content"] for tag, attributes in elements.found if attributes.get("http-equiv") == "Content-Security-Policy")
    assert policy is not None
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == "'unsafe-inline'"
    assert rules["img-src"] == "data: blob:"
    assert not [attributes for _, attributes in elements.found if {"src", "href"} & set(attributes)]
    assert all(place.startswith("http://www.w3.org/") for place in re.findall(r"https?://[^\s\"'`)]*", page))  # XML namespaces
    assert "noscript" in [tag for tag, _ in elements.found]
    assert "p{color:red}" in page


def test_the_page_ends_with_a_call_of_the_start_function_of_the_bundle() -> None:
    local = re.search(r"([\w$]+) as start\b", bundle())
    assert local is not None
    assert shell("t", "", {}).rstrip().endswith(f"{local.group(1)}();\n</script>\n</body>\n</html>")
