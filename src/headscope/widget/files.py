"""What a view can be saved as."""

from __future__ import annotations

from pathlib import Path

from headscope.errors import RunError

PICTURES = ("svg", "pdf", "png")


def suffix_of(path: Path) -> str:
    """The kind of file a name asks for, if it is one of those a view can be saved as."""
    suffix = path.suffix.removeprefix(".").lower()
    if suffix not in ("html", *PICTURES):
        raise RunError(f"a view cannot be written as {path.name!r}", f"Use a name that ends in .html, .{', .'.join(PICTURES)}")
    return suffix
