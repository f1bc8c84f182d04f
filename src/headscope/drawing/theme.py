"""The style of all figures, their captions, and figures as files."""

from __future__ import annotations

import hashlib
import io
import logging
import re
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headscope.drawing.look import COLOURS, DIVERGING, MARKERS, SEQUENTIAL, Look, look, pt, style, using, wide
from headscope.errors import RunError
from headscope.results.folder import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from headscope.drawing.figure import Drawing

__all__ = ["COLOURS", "DIVERGING", "MARKERS", "SEQUENTIAL", "SUFFIXES", "new_figure", "render", "save", "sign", "theme"]

# If the home folder is not writable, matplotlib uses a temporary folder and logs it. Users need not see that.
_NO_TROUBLE = ("mkdir -p failed for path", "Matplotlib created a temporary cache directory")
logging.getLogger("matplotlib").addFilter(lambda record: not record.getMessage().startswith(_NO_TROUBLE))

import matplotlib  # noqa: E402 - it looks for its folder when it is imported
from matplotlib.layout_engine import ConstrainedLayoutEngine  # noqa: E402

_STYLE = {
    "font.family": "sans-serif",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.facecolor": "none",
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "svg.fonttype": "none",
    "svg.hashsalt": "headscope",
    "pdf.fonttype": 42,
    # Labels come from corpora, models and file names: "$" is a sign like any other in them.
    "text.parse_math": False,
    "text.usetex": False,
    "axes.formatter.use_mathtext": False,
}
SUFFIXES = ("svg", "pdf", "png")
CAPTION = ".caption.txt"  # the end of the name of a caption file


def _settings() -> dict[str, Any]:
    """The settings of matplotlib for the current look."""
    chosen = style()
    inked = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    grounds = ("figure.facecolor", "savefig.facecolor")
    return {
        **_STYLE,
        "font.size": look().size,
        "grid.color": chosen.ink,
        "grid.alpha": 0.12,
        **dict.fromkeys(inked, chosen.ink),
        **dict.fromkeys(grounds, chosen.ground),
    }


@contextmanager
def theme(chosen: Look | None = None) -> Iterator[None]:
    """Draw in headscope's style, with the current look or another, and restore matplotlib's settings afterwards.
    `words.lacking` names letters that the font lacks.
    """
    with using(chosen or look()), matplotlib.rc_context(_settings()), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"Glyph .* missing from font", category=UserWarning)
        yield


def new_figure(width: float, height: float, layout: str | None = "constrained") -> Drawing:
    """An empty figure, as wide as the options say, or else `width`; in inches."""
    from headscope.drawing.figure import Drawing

    return Drawing(figsize=(wide(width), height), layout=layout)


def sign(figure: Drawing, n: str, signature: str) -> None:
    """Put the sample size and the signature of a figure into its caption, and below the figure if the look says so."""
    figure.caption = replace(figure.caption, n=n, signature=signature)
    if not look().signature:
        return
    size = min(5.0, pt(5.0))
    room = int(figure.get_figwidth() * 72 / (0.58 * size))
    lines = textwrap.wrap(f"n = {n}.", room)
    for number, part in enumerate(signature.split("|")):
        joint = "|" if number else " "
        if len(lines[-1]) + len(joint) + len(part) > room:
            lines.append(part)
        else:
            lines[-1] += joint + part
    room_below = len(lines) * 1.25 * size / 72
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        share = room_below / figure.get_figheight()
        engine.set(rect=(0, share + 0.006, 1, 1 - share - 0.006))
    else:
        _lengthen(figure, room_below + 0.03)
    figure.text(0.01, 0.003, "\n".join(lines), fontsize=size, color="0.5", ha="left", va="bottom", linespacing=1.2)


def _lengthen(figure: Drawing, below: float) -> None:
    """Add a strip below a figure whose axes have fixed places."""
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + below)
    for axes in figure.axes:
        box = axes.get_position(original=True)
        axes.set_position((box.x0, (box.y0 * height + below) / (height + below), box.width, box.height * height / (height + below)))


def render(figure: Figure, suffix: str) -> bytes:
    """A figure as the bytes of a file; the same figure gives the same bytes."""
    if suffix not in SUFFIXES:
        raise RunError(
            f"figures cannot be written as {suffix or 'a file without an ending'!r}", f"Use a name that ends in {', '.join(SUFFIXES)}"
        )
    from headscope.drawing.figure import Caption, Drawing

    sink = io.BytesIO()
    if isinstance(figure, Drawing):
        figure.savefig(sink, format=suffix, dpi=200)
    else:
        with theme():
            figure.savefig(sink, format=suffix, dpi=200, metadata=Caption().metadata(suffix))
    return _named_clips(sink.getvalue()) if suffix == "svg" else sink.getvalue()


def _named_clips(svg: bytes) -> bytes:
    """An SVG whose clipping paths are named by a hash of their content, because matplotlib's names depend on the last
    bits of their places, which the layout does not reproduce.
    """
    for name, frame in re.findall(rb'<clipPath id="(p[0-9a-f]{10})">(.*?)</clipPath>', svg, re.DOTALL):
        svg = svg.replace(name, b"p" + hashlib.sha256(frame).hexdigest()[:10].encode())
    return svg


def save(figure: Figure, path: Path) -> Path:
    """Write a figure, and beside it its caption as text, `figure.caption.txt`; return the path of the figure. The kind
    of file follows from the name.
    """
    from headscope.drawing.figure import Drawing

    write_atomically(path, render(figure, path.suffix.removeprefix(".").lower()))
    if isinstance(figure, Drawing) and figure.caption.text:
        write_atomically(path.with_suffix(CAPTION), f"{figure.caption.text}\n".encode())
    return path
