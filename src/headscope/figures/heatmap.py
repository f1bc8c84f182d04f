"""One quantity of every head, as a grid of layers and heads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headscope.drawing.cells import Scale, write
from headscope.drawing.theme import sign, theme
from headscope.errors import RunError
from headscope.figures.panels import choose_kind, sample_size
from headscope.results.quantities import find
from headscope.results.results import BASELINES, Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(results: Results, named: str, kind: str | None = None) -> Figure:
    """One row per layer, one column per head; values are written in the cells where there is room.

    Where a value is negative, the scale has two colours that part at the baseline.
    """
    from matplotlib.figure import Figure

    measure, quantity = find(results, named)
    kind = choose_kind(results, [measure], kind)
    rows = results[measure].where(quantity=quantity, kind=kind)
    if not len(rows):
        raise RunError(f"{quantity} is not defined for {kind} attention")
    layers, heads = sorted(set(rows["layer"])), max(rows["head"])
    grid = np.full((len(layers), heads), np.nan)
    for row in rows:
        grid[layers.index(row["layer"]), row["head"] - 1] = row["value"]
    baselines = np.array(rows["baseline"], dtype=float)
    scale = Scale.of(grid, float(np.nanmean(baselines)) if np.isfinite(baselines).any() else None)
    with theme():
        figure = Figure(figsize=(1.4 + 0.42 * heads, 1.2 + 0.34 * len(layers)), layout="constrained")
        axes = figure.subplots()
        image = scale.draw(axes, grid, layers)
        title = quantity if kind == "encoder" else f"{quantity} ({kind})"
        if grid.size <= 400:
            write(image, scale.digits(grid), 6)
            title += scale.note
        axes.set_title(title, fontsize=9, loc="left")
        bar = figure.colorbar(image, ax=axes, shrink=0.8)
        if scale.centre is not None:
            bar.ax.axhline(scale.centre, color="black", linewidth=1)
            bar.set_label(f"line: {BASELINES.get(measure, 'even attention')}", fontsize=7)
        sign(figure, sample_size(results, [measure], kind, quantity), results.signature)
    return figure
