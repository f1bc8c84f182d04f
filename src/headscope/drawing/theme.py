"""The style of all figures, what stands under one, and figures as files."""

from __future__ import annotations

import hashlib
import io
import logging
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from headscope.errors import RunError
from headscope.results.folder import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Where the home folder cannot be written to, matplotlib takes a temporary folder, which is no trouble of the person who
# draws a figure.
_NO_TROUBLE = ("mkdir -p failed for path", "Matplotlib created a temporary cache directory")
logging.getLogger("matplotlib").addFilter(lambda record: not record.getMessage().startswith(_NO_TROUBLE))

import matplotlib  # noqa: E402 - it looks for its folder when it is imported
from matplotlib.layout_engine import ConstrainedLayoutEngine  # noqa: E402

# Okabe and Ito's palette, without its yellow, which vanishes on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
SEQUENTIAL = "cividis"
DIVERGING = "RdBu_r"  # blue below the centre, red above

_STYLE = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "svg.fonttype": "none",
    "svg.hashsalt": "headscope",
    "pdf.fonttype": 42,
    # Labels come from corpora, models and file names: "$" is a sign like any other in them.
    "text.parse_math": False,
    "text.usetex": False,
    "axes.formatter.use_mathtext": False,
}
SUFFIXES = ("svg", "pdf", "png")


@contextmanager
def theme() -> Iterator[None]:
    """Draw in headscope's style, and leave matplotlib as it was. `words.lacking` names letters the font lacks."""
    with matplotlib.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from font", category=UserWarning)
        yield


def sign(figure: Figure, n: str, signature: str) -> None:
    """Say under a figure how many texts it rests on and what could change it, and make room for that."""
    size = 5.0
    room = int(figure.get_figwidth() * 72 / (0.58 * size))
    lines = [f"n = {n}"]
    for part in signature.split("|"):
        joint = ". " if lines == [f"n = {n}"] else "|"
        if len(lines[-1]) + len(joint) + len(part) > room:
            lines.append(part)
        else:
            lines[-1] += joint + part
    height = len(lines) * 1.25 * size / 72 / figure.get_figheight()
    figure.text(0.01, 0.003, "\n".join(lines), fontsize=size, color="0.4", ha="left", va="bottom", linespacing=1.2)
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        engine.set(rect=(0, height + 0.006, 1, 1 - height - 0.006))


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
