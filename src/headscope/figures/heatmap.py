"""One quantity of every head, as a grid of layers and heads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headscope.errors import RunError
from headscope.figures.panels import choose_kind, sample_size
from headscope.figures.theme import SEQUENTIAL, sign, theme
from headscope.runs.quantities import find
from headscope.runs.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def draw(results: Results, named: str, kind: str | None = None) -> Figure:
    """A layer a row, a head a column; values written in the cells where there is room."""
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
    with theme():
        figure = Figure(figsize=(1.4 + 0.42 * heads, 1.2 + 0.34 * len(layers)), layout="constrained")
        axes = figure.subplots()
        image = axes.imshow(grid, cmap=SEQUENTIAL, aspect="auto", vmin=0)
        axes.grid(False)
        axes.set_xticks(range(heads), [str(head + 1) for head in range(heads)])
        axes.set_yticks(range(len(layers)), [str(layer) for layer in layers])
        axes.set_xlabel("Head")
        axes.set_ylabel("Layer")
        axes.set_title(quantity if kind == "encoder" else f"{quantity} ({kind})", fontsize=9, loc="left")
        middle = (np.nanmin(grid) + np.nanmax(grid)) / 2 if np.isfinite(grid).any() else 0
        if grid.size <= 400:
            for (y, x), value in np.ndenumerate(grid):
                if np.isfinite(value):
                    text = f"{value:.2f}".lstrip("0") if value < 1 else f"{value:.1f}"
                    axes.text(x, y, text, ha="center", va="center", fontsize=6, color="white" if value < middle else "black")
        figure.colorbar(image, ax=axes, shrink=0.8)
        sign(figure, sample_size(results, [measure], kind, quantity), results.signature)
    return figure
