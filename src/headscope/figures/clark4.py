"""Clark et al. 2019, Figure 4: entropy of attention, from all tokens and from [CLS]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headscope.errors import RunError
from headscope.figures.panels import available, choose_kind, points, sample_size
from headscope.figures.theme import sign, theme
from headscope.runs.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NEEDS = ("entropy",)
TITLES = {"entropy": "From all tokens", "entropy_cls": "From the opening special token ([CLS])"}


def draw(results: Results, kind: str | None = None) -> Figure:
    """Entropy by layer with the line that even attention would give; a second panel for [CLS] where the texts have one."""
    from matplotlib.figure import Figure

    kind = choose_kind(results, NEEDS, kind)
    panels = available(results, "entropy", kind, [(quantity, "mean over heads") for quantity in TITLES])
    if not panels:
        raise RunError("the run has neither entropy nor entropy_cls", "Run again with rows all and cls")
    with theme():
        figure = Figure(figsize=(6.4, 0.4 + 2.6 * len(panels)), layout="constrained")
        for axes, curve in zip(figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0], panels, strict=True):
            points(axes, results, "entropy", kind, [curve], "even attention")
            axes.set_title(TITLES[curve[0]], fontsize=9, loc="left")
            axes.set_ylabel(f"Entropy ({results.measures['entropy']['base']})")
            axes.set_ylim(bottom=0)
        sign(figure, sample_size(results, NEEDS, kind), results.signature)
    return figure
