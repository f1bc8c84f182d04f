"""Figures as files: SVG, PDF or PNG; the same figure gives the same bytes."""

from __future__ import annotations

import hashlib
import io
import re
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.drawing.theme import theme
from headscope.errors import RunError
from headscope.results.folder import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure


SUFFIXES = ("svg", "pdf", "png")


def render(figure: Figure, suffix: str) -> bytes:
    """A figure as the bytes of a file; the same figure gives the same bytes."""
    if suffix not in SUFFIXES:
        raise RunError(
            f"figures cannot be written as {suffix or 'a file without an ending'!r}", f"Use a name that ends in {', '.join(SUFFIXES)}"
        )
    sink = io.BytesIO()
    dates = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": None}
    with theme():
        figure.savefig(sink, format=suffix, dpi=200, metadata=dates[suffix])
    return _named_clips(sink.getvalue()) if suffix == "svg" else sink.getvalue()


def _named_clips(svg: bytes) -> bytes:
    """A drawing whose clipping frames are named after what is written of them: matplotlib's names hang on the last
    bits of their places, which the layout leaves to chance.
    """
    for name, frame in re.findall(rb'<clipPath id="(p[0-9a-f]{10})">(.*?)</clipPath>', svg, re.DOTALL):
        svg = svg.replace(name, b"p" + hashlib.sha256(frame).hexdigest()[:10].encode())
    return svg


def save(figure: Figure, path: Path) -> None:
    """Write a figure; the kind of file follows from the name."""
    write_atomically(path, render(figure, path.suffix.removeprefix(".").lower()))
