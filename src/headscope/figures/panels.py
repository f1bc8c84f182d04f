"""The panel that Clark et al.'s Figures 2 and 4 share: a point a head, a line through the layer means, a band for its interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headscope.errors import RunError
from headscope.figures.theme import COLOURS, MARKERS
from headscope.runs.results import Results
from headscope.runs.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def choose_kind(results: Results, measure: str, kind: str | None) -> str:
    """The kind of attention to draw: the one asked for, or the first there is."""
    kinds = list(dict.fromkeys(results[measure]["kind"]))
    if kind is not None and kind not in kinds:
        raise RunError(f"the run has no {kind} attention", f"It has {', '.join(kinds)}")
    return kind or kinds[0]


def points(axes: Axes, results: Results, measure: str, kind: str, curves: Sequence[tuple[str, str]], baseline: str | None = None) -> Table:
    """Draw quantities by layer; `curves` are (quantity, label), `baseline` a label for what even attention would give."""
    heads = results[measure].where(kind=kind)
    layers = results[f"{measure}_layers"].where(kind=kind)
    known = set(heads["quantity"])
    drawn = [(quantity, label) for quantity, label in curves if quantity in known]
    if not drawn:
        raise RunError(f"the run has none of {', '.join(quantity for quantity, _ in curves)}", f"It has {', '.join(sorted(known))}")
    for number, (quantity, label) in enumerate(drawn):
        colour, marker = COLOURS[number], MARKERS[number]
        cloud, mean = heads.where(quantity=quantity), layers.where(quantity=quantity)
        shift = (number - (len(drawn) - 1) / 2) * 0.12
        x = np.array(cloud["layer"]) + shift
        axes.plot(x, cloud["value"], marker, color=colour, markersize=3, alpha=0.55, markeredgewidth=0, linestyle="none")
        axes.fill_between(mean["layer"], mean["low"], mean["high"], color=colour, alpha=0.2, linewidth=0)
        axes.plot(mean["layer"], mean["value"], color=colour, linewidth=1.6, label=label)
    if baseline is not None:
        even = layers.where(quantity=drawn[0][0])
        axes.plot(even["layer"], even["baseline"], color="0.35", linewidth=1, linestyle=(0, (4, 3)), label=baseline)
    axes.set_xticks(sorted(set(heads["layer"])))
    axes.set_xlabel("Layer")
    axes.label_outer()
    axes.legend(fontsize=8)
    return heads.where(quantity=drawn[0][0])


def sample_size(table: Table) -> str:
    """How many texts a table rests on."""
    counts = sorted(set(table["n"]))
    return f"{counts[0]} texts" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} texts"
