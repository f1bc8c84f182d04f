"""The same heads on several tasks: how much of each score is lost without them, and whether it is lost by the same heads."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.ablation.across import across, losses
from headscope.figures.theme import COLOURS, sign, theme
from headscope.runs.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_PAIRS = 3  # pairs of tasks that are drawn head by head


def draw(studies: Sequence[Results]) -> Figure:
    """A histogram for each task, all on one axis, and under them, pair by pair, every head as a point."""
    from matplotlib.figure import Figure

    tasks = {name: {place: 100 * value for place, value in lost.items()} for name, lost in losses(studies, relative=True).items()}
    kinds = list(dict.fromkeys(kind for kind, _, _ in next(iter(tasks.values()))))
    pairs = list(combinations(tasks, 2))[:_PAIRS]
    values = np.concatenate([[*lost.values()] for lost in tasks.values()])
    edges = np.linspace(min(0.0, float(np.nanmin(values))), max(0.0, float(np.nanmax(values))) + 1e-9, 61)
    correlations = across(studies)
    with theme():
        figure = Figure(figsize=(6.8, 0.9 * len(tasks) + 3.1), layout="constrained")
        halves: Any = figure.subfigures(2, 1, height_ratios=[0.9 * len(tasks) + 0.5, 2.6])
        upper, lower = halves
        rows = upper.subplots(len(tasks), 1, sharex=True, squeeze=False)[:, 0]
        for number, (axes, (name, lost)) in enumerate(zip(rows, tasks.items(), strict=True)):
            axes.hist([*lost.values()], bins=edges.tolist(), color=COLOURS[number % len(COLOURS)])
            axes.axvline(0, color="0.35", linewidth=1, linestyle=(0, (4, 3)))
            axes.set_yscale("symlog", linthresh=1)
            axes.set_yticks([0, 1, 10, 100], ["0", "1", "10", "100"])
            axes.set_ylabel("Heads")
            axes.text(0.99, 0.92, name, transform=axes.transAxes, ha="right", va="top", fontsize=8)
        rows[-1].set_xlabel("Lost without the head, % of the score")
        for axes, (first, second) in zip(lower.subplots(1, len(pairs), squeeze=False)[0], pairs, strict=True):
            for number, kind in enumerate(kinds):
                points = [(tasks[first][place], tasks[second][place]) for place in tasks[first] if place[0] == kind]
                axes.scatter(*zip(*points, strict=True), s=8, alpha=0.7, color=COLOURS[number], label=kind, linewidths=0)
            axes.axhline(0, color="0.7", linewidth=0.7)
            axes.axvline(0, color="0.7", linewidth=0.7)
            axes.set_xlabel(first)
            axes.set_ylabel(second)
            told = correlations.where(first=first, second=second, method="pearson")
            axes.set_title("r = " + ", ".join(f"{value:.2f}" for value in told["value"]), fontsize=8)
            if len(kinds) > 1:
                axes.legend(fontsize=7)
        sign(figure, ", ".join(f"{max(one['ablation']['n']):,}" for one in studies) + " texts", "|".join(one.signature for one in studies))
    return figure
