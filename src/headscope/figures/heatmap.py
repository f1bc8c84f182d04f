"""Grids of colours: one quantity of every head by layer, and every label by every head."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headscope.drawing.cells import Scale, write
from headscope.drawing.look import colour_map, pt, style, wide
from headscope.drawing.theme import new_figure, sign, theme
from headscope.errors import RunError
from headscope.figures.contests import WORDS
from headscope.figures.panels import choose_kind, sample_size
from headscope.results.quantities import find
from headscope.results.results import BASELINES, Results

if TYPE_CHECKING:
    from headscope.drawing.figure import Drawing

NEEDS = ("relations",)
_BESIDE, _CELL, _SMALLEST = 1.4, 0.42, 4.0  # inches beside the cells, and of a cell; points of digits


def draw(results: Results, named: str, kind: str | None = None) -> Drawing:
    """A figure with one row per layer and one column per head; values are written in the cells if there is room.

    If a value is negative, the scale has two colours that meet at the baseline.
    """
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
        figure = new_figure(_BESIDE + _CELL * heads, 1.2 + 0.34 * len(layers))
        axes = figure.subplots()
        image = scale.draw(axes, grid, layers)
        title = quantity if results.layout.one_kind else f"{quantity} ({kind})"
        size = min(pt(6), 72 * (wide(_BESIDE + _CELL * heads) - _BESIDE) / heads / 2.1)  # of three digits in a cell
        if grid.size <= 400 and size >= _SMALLEST:
            write(image, scale.digits(grid), size)
            title += scale.note
        axes.set_title(title, fontsize=pt(9), loc="left")
        bar = figure.colorbar(image, ax=axes, shrink=0.8)
        named = WORDS[measure][1] if measure in WORDS else quantity
        if scale.centre is not None:
            bar.ax.axhline(scale.centre, color=style().ink, linewidth=1)
            named += f"; line: {BASELINES.get(measure, 'even attention')}"
        bar.set_label(named, fontsize=pt(8))
        sign(figure, sample_size(results, [measure], kind, quantity), results.signature)
    return figure


def draw_matrix(results: Results, kind: str | None = None, measure: str = "relations") -> Drawing:
    """A figure of the accuracy above the best simple rule, for the better direction; lines separate layers."""
    table = results[measure]
    kinds = list(dict.fromkeys(table["kind"]))
    if not kinds or (kind is not None and kind not in kinds):
        raise RunError(f"{measure} has no values for {kind or 'any'} attention", f"It has {', '.join(kinds) or 'no label'}")
    table = table.where(kind=kind or kinds[0])
    labels = list(dict.fromkeys(table["label"]))
    heads = sorted(set(zip(table["layer"], table["head"], strict=True)))
    place = {head: column for column, head in enumerate(heads)}
    lift = np.full((len(labels), len(heads)), -np.inf)
    for row in table:
        at = labels.index(row["label"]), place[row["layer"], row["head"]]
        lift[at] = max(lift[at], row["lift"])
    bound = float(np.clip(np.abs(lift[np.isfinite(lift)]).max(), 0.01, 0.5))  # values far below the rule have the same colour
    with theme():
        figure = new_figure(9.6, 1.4 + 0.2 * len(labels))
        axes = figure.subplots()
        image = axes.imshow(lift, aspect="auto", cmap=colour_map("PuOr_r"), vmin=-bound, vmax=bound, interpolation="nearest")
        starts = [column for column, (layer, _) in enumerate(heads) if column == 0 or heads[column - 1][0] != layer]
        for start in starts[1:]:
            axes.axvline(start - 0.5, color="white", linewidth=1.2)
        ends = [*starts[1:], len(heads)]
        axes.set_xticks(
            [(start + end - 1) / 2 for start, end in zip(starts, ends, strict=True)], [str(heads[start][0]) for start in starts]
        )
        axes.set_xlabel("Layer (its heads from left to right)")
        axes.set_yticks(range(len(labels)), labels)
        axes.grid(visible=False)
        figure.colorbar(image, ax=axes, label="accuracy − best fixed offset", pad=0.01, extend="both")
        sign(figure, f"{max(table['n']):,} words", results.signature)
    return figure
