"""Two runs side by side as one offline page."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from headscope.report import style
from headscope.runs.results import Results
from headscope.runs.store import write_atomically
from headscope.views.compare import comparison
from headscope.views.page import shell

_BODY = (
    "<header><h1>Two runs side by side</h1></header><main><p>Every difference is the second run minus the first. A difference whose "
    "interval holds 0 may be due to which documents were read; with many heads, some intervals miss 0 by chance.</p>"
    "{unlike}<div data-view='compare'></div></main>"
)


def body(data: Mapping[str, Any]) -> str:
    """The inside of the page of a comparison: how to read it, what to mind, and a place for the view."""
    told = "".join(f"<li>{escape(line)}</li>" for line in data["unlike"])
    return _BODY.format(unlike=f"<p>The runs differ in more than model and corpus, which may be why:</p><ul>{told}</ul>" if told else "")


def write_comparison(a: Results, b: Results, path: Path) -> Path:
    """Write the page and return its path."""
    data = comparison(a, b)
    names = (data[letter]["name"] for letter in "ab")
    write_atomically(path, shell(f"headscope: {' and '.join(names)}", body(data), {"comparison": data}, style=style()).encode())
    return path
