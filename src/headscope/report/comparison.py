"""Two runs side by side as one offline page."""

from __future__ import annotations

from html import escape
from pathlib import Path

from headscope.report import style
from headscope.runs.results import Results
from headscope.runs.store import write_atomically
from headscope.views.compare import comparison
from headscope.views.page import shell


def write_comparison(a: Results, b: Results, path: Path) -> Path:
    """Write the page and return its path."""
    data = comparison(a, b)
    write_atomically(
        path, shell(title(data["a"]["name"], data["b"]["name"]), body(data["left_out"]), {"comparison": data}, style=style()).encode()
    )
    return path


def title(a: str, b: str) -> str:
    """What the page is called."""
    return f"headscope: {a} and {b}"


def body(left_out: list[str]) -> str:
    """The inside of the page: how to read it, and a place for the view."""
    missing = "".join(f"<li>{escape(line)}</li>" for line in left_out)
    note = f"<p class='note'>Not compared:</p><ul class='note'>{missing}</ul>" if missing else ""
    return (
        "<header><h1>Two runs side by side</h1></header><main><p>Every difference is the second run minus the first. A difference whose "
        "interval holds 0 may be due to which documents were read; with many heads, some intervals miss 0 by chance.</p>"
        f"{note}<div data-view='compare'></div></main>"
    )
