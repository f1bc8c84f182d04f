"""One HTML page that holds its data and all its code: it works from a file and cannot fetch anything."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from headscope.core.paths import printable
from headscope.errors import HeadscopeError
from headscope.views.tokens import page_sheet

if TYPE_CHECKING:
    from jinja2 import Environment

# Only scripts in the page may run; saved pictures are made from data: and blob: images.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'; form-action 'none'"
)
_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
</body>
</html>
"""
_SCRIPTED = """<noscript><p><strong>This page draws its views with JavaScript, which is disabled here. Nothing is loaded from the network:
all it needs is in this file.</strong></p></noscript>
{body}
<script type="application/json" id="headscope-data">{data}</script>
<script type="module">
{script}
</script>"""
_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")
DIGITS = 5  # more than can be seen, and a third of the size


def shell(title: str, body: str, data: Mapping[str, Any], *, style: str = "") -> str:
    """A whole page. `body` and `style` are trusted HTML and CSS; `title` and `data` may hold any text.

    Elements of `body` with `data-view` are filled by the bundle from `data` ("run", "text", "comparison":
    frontend/src/main.tsx).
    """
    return whole_page(title, _SCRIPTED.format(body=printable(body), data=encode(data), script=_script()), POLICY, style)


def whole_page(title: str, body: str, policy: str, style: str) -> str:
    """A whole page in the common style plus `style`; `body` and `style` are trusted, `title` may be any text."""
    return _PAGE.format(policy=policy, title=escape(printable(title)), style=base_style() + style, body=body)


@cache
def base_style() -> str:
    """The start of every page's style: the design system's properties, and the style of text."""
    return page_sheet() + (files("headscope.views") / "page.css").read_text(encoding="utf-8")


def templates(package: str, folder: str = "") -> Environment:
    """The templates in a folder of a package. Every value is escaped, unless it is marked as HTML."""
    from jinja2 import Environment, PackageLoader

    return Environment(loader=PackageLoader(package, folder), autoescape=True, trim_blocks=True, lstrip_blocks=True)


def encode(data: Any) -> str:
    """Strict JSON for inside a script element: NaN and infinities are null, and no text can end the element."""
    text = json.dumps(plain(data), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)


@cache
def bundle() -> str:
    """The views' JavaScript, an ES module."""
    return (files("headscope.views") / "headscope.js").read_text(encoding="utf-8")


@cache
def _script() -> str:
    """The bundle as an inline script with the starting call at its end, because inline modules cannot be imported."""
    source = bundle()
    exported = re.search(r"([\w$]+) as start\b", source[source.rindex("export") :])
    if exported is None:
        raise HeadscopeError("the bundle of the views has no entry point", "Build it again with `make bundle`")
    # These occur only in strings, where an escape is equivalent and HTML's parser does not see an end tag or a
    # comment.
    return re.sub(r"<(?=/script|script|!--)", r"\\x3c", source, flags=re.IGNORECASE) + f"\n{exported.group(1)}();"


def plain(value: Any) -> Any:
    """The value in strict JSON: null for NaN and infinities, lists for arrays."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return plain(value.tolist()) if hasattr(value, "tolist") else value


def rounded(value: float | None) -> float | None:
    """A number with as many digits as a page needs; None if it is missing."""
    if value is None or not math.isfinite(value):
        return None
    return float(f"{value:.{DIGITS}g}")
