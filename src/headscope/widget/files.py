"""What a view can be saved as, and saving it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.errors import RunError
from headscope.results.folder import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PICTURES = ("svg", "pdf", "png")


def suffix_of(path: Path) -> str:
    """The kind of file a name asks for, if it is one of those a view can be saved as."""
    suffix = path.suffix.removeprefix(".").lower()
    if suffix not in ("html", *PICTURES):
        raise RunError(f"a view cannot be written as {path.name!r}", f"Use a name that ends in .html, .{', .'.join(PICTURES)}")
    return suffix


def save_view(path: str | Path, page: Callable[[], str], figure: Callable[[], Figure]) -> Path:
    """Write the page (.html) or the figure (.svg, .pdf, .png) of a view, and return where it is."""
    target = Path(path)
    if suffix_of(target) == "html":
        write_atomically(target, page().encode())
    else:
        from headscope.drawing.saving import save

        save(figure(), target)
    return target
