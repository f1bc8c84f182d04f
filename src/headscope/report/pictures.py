"""Static figures for pages: one drawing whose colours follow the light or dark page."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

from headscope.drawing.theme import render
from headscope.figures import draw
from headscope.results.results import Results
from headscope.views.tokens import tokens

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The colours that matplotlib writes if none is set.
_BLACK, _WHITE = "#000000", "#ffffff"
_GREY = "#666666"  # of the signature below a figure


def picture(results: Results, name: str) -> str:
    """A figure as the data: address of an image."""
    return image(draw(name, results))


def image(figure: Figure) -> str:
    """A drawn figure as the data: address of an image."""
    return "data:image/svg+xml;base64," + base64.b64encode(themed(render(figure, "svg"))).decode("ascii")


def themed(svg: bytes) -> bytes:
    """An SVG that has the dark colours of the design system for readers who prefer dark, and is unchanged in light."""
    light, dark = tokens("light"), tokens("dark")
    pairs = {light[name]: dark[name] for name in dark if name.startswith("--hs-s") and light[name].startswith("#")}
    pairs |= {_BLACK: dark["--hs-ink"], _WHITE: dark["--hs-paper"], _GREY: dark["--hs-faint"], light["--hs-ink"]: dark["--hs-ink"]}
    rules = [f"text{{fill:{dark['--hs-ink']}}}"]
    for before, after in pairs.items():
        if before.encode() in svg:
            rules += [f'[style*="{role}: {before}"]{{{role}:{after}!important}}' for role in ("fill", "stroke")]
    sheet = f"<style>@media(prefers-color-scheme:dark){{{''.join(rules)}}}</style>"
    start = svg.index(b">", svg.index(b"<svg")) + 1
    return svg[:start] + sheet.encode() + svg[start:]
