"""Clark et al. 2019, Figure 4: entropy of attention, from all tokens and from [CLS]."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headscope.figures.panels import choose_kind, points, sample_size
from headscope.figures.theme import sign, theme
from headscope.runs.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NEEDS = ("entropy",)


def draw(results: Results, kind: str | None = None) -> Figure:
    """Entropy by layer with the line that even attention would give; a second panel for [CLS] where the texts have one."""
    from matplotlib.figure import Figure

    with theme():
        kind = choose_kind(results, "entropy", kind)
        cls = any(n > 0 for n in results["entropy"].where(kind=kind, quantity="entropy_cls")["n"])
        figure = Figure(figsize=(6.4, 5.6 if cls else 3.0), layout="constrained")
        panels = figure.subplots(2 if cls else 1, 1, sharex=True, squeeze=False)[:, 0]
        shown = points(panels[0], results, "entropy", kind, [("entropy", "mean over heads")], "even attention")
        panels[0].set_title("From all tokens", fontsize=9, loc="left")
        if cls:
            points(panels[1], results, "entropy", kind, [("entropy_cls", "mean over heads")], "even attention")
            panels[1].set_title("From the first special token ([CLS])", fontsize=9, loc="left")
        for axes in panels:
            axes.set_ylabel("Entropy (nats)")
            axes.set_ylim(bottom=0)
        sign(figure, sample_size(shown), results.signature)
    return figure
