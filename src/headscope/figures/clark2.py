"""Clark et al. 2019, Figure 2: attention to token types, from [SEP] and from elsewhere, and to neighbouring tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headscope.figures.panels import choose_kind, points, sample_size
from headscope.figures.theme import sign, theme
from headscope.runs.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NEEDS = ("positions", "tokens")


def draw(results: Results, kind: str | None = None) -> Figure:
    """Three panels of average attention by layer; each point is a head, each line a layer mean with its 95% interval."""
    from matplotlib.figure import Figure

    with theme():
        figure = Figure(figsize=(6.4, 8.2), layout="constrained")
        kind = choose_kind(results, "tokens", kind)
        top, middle, bottom = figure.subplots(3, 1, sharex=True)
        shown = points(top, results, "tokens", kind, [("to_cls", "[CLS]"), ("to_sep", "[SEP]"), ("to_punct", ". and ,")])
        points(middle, results, "tokens", kind, [("other_to_sep", "other → [SEP]"), ("sep_to_sep", "[SEP] → [SEP]")])
        points(bottom, results, "positions", kind, [("previous", "previous"), ("next", "next"), ("self", "itself")])
        for axes in (top, middle, bottom):
            axes.set_ylim(-0.02, 1.02)
            axes.set_ylabel("Average attention")
        top.set_title("Attention to token types", fontsize=9, loc="left")
        middle.set_title("Attention to [SEP], by where it comes from", fontsize=9, loc="left")
        bottom.set_title("Attention to the previous token, the next, and the token itself", fontsize=9, loc="left")
        sign(figure, sample_size(shown), results.signature)
    return figure
