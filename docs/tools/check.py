"""Fail if a page of the built site would load anything from elsewhere: `python docs/tools/check.py site`. Links to
elsewhere are fine.
"""

from __future__ import annotations

import re
import sys
from html.parser import HTMLParser
from pathlib import Path

_LOADS = {"src", "srcset", "data", "poster"}
_STYLE = re.compile(r"(?:url\(\s*['\"]?|@import\s+['\"])(https?:)?//")


class Page(HTMLParser):
    """What a page loads: sources of any element, and what <link> names but for canonical and alternate pages."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what an element loads."""
        named = dict(attrs)
        self.loads += [value or "" for name, value in attrs if name in _LOADS]
        if tag == "link" and not {"canonical", "alternate"} & set((named.get("rel") or "").split()):
            self.loads.append(named.get("href") or "")


def remote(site: Path) -> list[str]:
    """What the site's pages and styles load from elsewhere, each with where."""
    found = []
    for path in sorted(site.rglob("*.html")):
        page = Page()
        page.feed(path.read_text(encoding="utf-8"))
        found += [f"{path}: {url}" for url in page.loads if re.match(r"(https?:)?//", url)]
    for path in sorted(site.rglob("*.css")):
        found += [f"{path}: {match.group()}" for match in _STYLE.finditer(path.read_text(encoding="utf-8"))]
    return found


if __name__ == "__main__":
    sys.exit("\n".join(remote(Path(sys.argv[1]))) or 0)
