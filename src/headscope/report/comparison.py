"""Two runs side by side as one offline page."""

from __future__ import annotations

from pathlib import Path

from headscope.report import style
from headscope.runs.results import Results
from headscope.runs.store import write_atomically
from headscope.views.compare import comparison
from headscope.views.page import shell

BODY = (
    "<header><h1>Two runs side by side</h1></header><main><p>Every difference is the second run minus the first. A difference whose "
    "interval holds 0 may be due to which documents were read; with many heads, some intervals miss 0 by chance.</p>"
    "<div data-view='compare'></div></main>"
)


def write_comparison(a: Results, b: Results, path: Path) -> Path:
    """Write the page and return its path."""
    data = comparison(a, b)
    names = (data[letter]["name"] for letter in "ab")
    write_atomically(path, shell(f"headscope: {' and '.join(names)}", BODY, {"comparison": data}, style=style()).encode())
    return path
