"""Hewitt & Manning's Figure 4 and its like: how much of trees lies in each layer, and in how few dimensions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy as np

from headscope.figures.theme import COLOURS, sign, theme
from headscope.runs.results import Results
from headscope.runs.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

METRICS: Mapping[str, str] = {
    "UUAS": "UUAS: edges found (%)",
    "DSpr": "DSpr: distances, Spearman",
    "Root%": "Root found (%)",
    "NSpr": "NSpr: depths, Spearman",
}
_BASELINES = {
    "projection": ("layer 0, untrained BiLSTM", COLOURS[2], (0, (6, 2))),
    "decay": ("layer 0, averaged over neighbours", COLOURS[3], (0, (3, 2))),
    "linear": ("words left to right", "0.35", (0, (1, 1.5))),
}


def layers(results: Results, kind: str | None = None) -> Figure:
    """All four metrics by layer: the model, the control with redrawn weights, and the baselines."""
    table = results["structural"]

    def panel(axes: Axes, metric: str) -> None:
        rows = table.where(metric=metric)
        _curve(axes, rows.where(source="model"), "layer", COLOURS[0], "o", "the model")
        _curve(axes, rows.where(source="random"), "layer", COLOURS[1], "s", "its weights redrawn")
        for source, (label, colour, dashes) in _BASELINES.items():
            for row in rows.where(source=source):
                axes.axhline(row["value"], color=colour, linewidth=1.2, linestyle=dashes, label=label)
        every = sorted({layer for layer in rows["layer"] if layer is not None})
        axes.set_xticks(every if len(every) <= 14 else every[::2])
        axes.set_xlabel("Layer (0: embeddings, n: what block n gives)")

    return _panels(results, table, panel)


def ranks(results: Results, kind: str | None = None) -> Figure:
    """All four metrics by the rank of the probe, in one layer."""
    table = results["structural_ranks"]
    layer = table["layer"][0]

    def panel(axes: Axes, metric: str) -> None:
        rows = table.where(metric=metric).sort("rank")
        _curve(axes, rows, "rank", COLOURS[0], "o", f"layer {layer}")
        axes.set_xscale("log", base=2)
        every = rows["rank"]
        near = [rank * 1.4 > after for rank, after in zip(every, [*every[1:], np.inf], strict=True)]  # labels would overlap
        axes.set_xticks(every, ["" if skipped else str(rank) for rank, skipped in zip(every, near, strict=True)], fontsize=7)
        axes.minorticks_off()
        axes.set_xlabel(f"Rank of the probe (layer {layer})")

    return _panels(results, table, panel)


def _curve(axes: Axes, rows: Table, across: str, colour: str, marker: str, label: str) -> None:
    if not len(rows):
        return
    rows = rows.sort(across)
    places, values, low, high = (np.array(rows[name], dtype=float) for name in (across, "value", "low", "high"))
    if np.isfinite(low).any():
        axes.fill_between(places, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.plot(places, values, color=colour, marker=marker, markersize=3.5, linewidth=1.6, label=label)


def _panels(results: Results, table: Table, panel: Callable[[Axes, str], None]) -> Figure:
    from matplotlib.figure import Figure

    with theme():
        figure = Figure(figsize=(7.4, 5.2), layout="constrained")
        for axes, (metric, title) in zip(figure.subplots(2, 2).flat, METRICS.items(), strict=True):
            panel(axes, metric)
            axes.set_title(title, fontsize=9, loc="left")
        handles, labels = figure.axes[0].get_legend_handles_labels()
        if len(handles) > 1:
            figure.legend(handles, labels, loc="outside upper center", ncols=3, fontsize=8, frameon=False)
        seeds = max((count for count in table["seeds"] if count is not None), default=1)
        over = f"{table['sentences'][0]:,} sentences of {table['documents'][0]:,} documents"
        more = f"; means of {seeds} seeds" if seeds > 1 else ""
        sign(figure, f"{over}{more}. Bands: 95% interval over documents", results.signature)
    return figure
