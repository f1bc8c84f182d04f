"""Clark et al. 2019, Figure 2: attention to token types, from [SEP] and from elsewhere, and to neighbouring tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headscope.errors import RunError
from headscope.figures.panels import available, choose_kind, points, sample_size
from headscope.figures.theme import sign, theme
from headscope.runs.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NEEDS = ("tokens", "positions")  # either will do; each brings its panels
PANELS = [
    ("tokens", "Attention to token types", [("to_cls", "[CLS]"), ("to_sep", "[SEP]"), ("to_punct", ". and ,")]),
    ("tokens", "Attention to [SEP], by where it comes from", [("other_to_sep", "other → [SEP]"), ("sep_to_sep", "[SEP] → [SEP]")]),
    ("positions", "Attention to neighbouring tokens", [("previous", "previous"), ("next", "next"), ("self", "itself")]),
]


def draw(results: Results, kind: str | None = None) -> Figure:
    """Up to three panels of average attention by layer; each point is a head, each line a layer mean with its 95% interval."""
    from matplotlib.figure import Figure

    measured = [name for name in NEEDS if name in results]
    kind = choose_kind(results, measured, kind)
    panels = [(measure, title, curves) for measure, title, all_ in PANELS if (curves := available(results, measure, kind, all_))]
    if not panels:
        raise RunError(f"the run has nothing that clark2 shows for {kind} attention")
    with theme():
        figure = Figure(figsize=(6.4, 0.4 + 2.6 * len(panels)), layout="constrained")
        for axes, (measure, title, curves) in zip(figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0], panels, strict=True):
            points(axes, results, measure, kind, curves)
            axes.set_ylim(-0.02, 1.02)
            axes.set_ylabel("Average attention")
            axes.set_title(title, fontsize=9, loc="left")
        sign(figure, sample_size(results, [measure for measure, _, _ in panels], kind), results.signature)
    return figure
