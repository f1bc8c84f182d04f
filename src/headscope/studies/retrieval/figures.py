"""Figures of retrieval heads: ranked scores, and answers without the strongest heads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headscope.drawing.look import MARKERS, across, grey, hue, pt
from headscope.drawing.theme import new_figure, sign, theme
from headscope.results.table import interval
from headscope.studies.retrieval.spec import ABOVE

if TYPE_CHECKING:
    from headscope.drawing.figure import Drawing
    from headscope.results.results import Results

NAMED = 8  # heads that are listed


def ranked(results: Results, kind: str | None = None) -> Drawing:
    """Scores of all heads from the highest to the lowest, with intervals; the first ones are named."""
    table = results["retrieval_heads"]
    main = table["decoding"][0]
    rows = list(table.where(decoding=main))
    scores, low, high = (np.array([row[name] for row in rows], dtype=np.float64) for name in ("score", "low", "high"))
    known = np.isfinite(low) & (scores > 0)  # most heads have 0 in all texts: their bounds would hide the others
    with theme():
        figure = new_figure(6.4, 3.2)
        axes = figure.subplots()
        rank = np.arange(1, len(rows) + 1)
        axes.vlines(rank[known], low[known], high[known], color=hue(0), linewidth=1.2, alpha=0.5)
        axes.plot(rank, scores, "o", color=hue(0), markersize=3)
        named = [f"{results.head_of(row)}  {interval(row['score'], row['low'], row['high'])}" for row in rows[:NAMED] if row["score"] > 0]
        # A list, because there is room above the falling curve, and names beside points would overlap.
        axes.text(0.3, 0.97, "\n".join(["First heads:", *named]), transform=axes.transAxes, va="top", fontsize=pt(7.5))
        axes.axhline(ABOVE, linestyle=(0, (4, 3)), label=f"{ABOVE:g}", color=grey(0.35), linewidth=1)
        axes.axhline(rows[0]["baseline"], linestyle=(0, (1, 2)), label="a random token", color=grey(0.35), linewidth=1)
        axes.set_xlabel("Heads by rank")
        axes.set_ylabel("Retrieval score")
        axes.set_ylim(0, 1.03)
        axes.set_title("greedy decoding" if main == "greedy" else "forced decoding: the right answer was given", fontsize=pt(9), loc="left")
        axes.legend(fontsize=pt(8))
        sign(figure, f"{rows[0]['n']:,} texts", results.signature)
    return figure


def ablation(results: Results, kind: str | None = None) -> Drawing:
    """Answers found, and the loss of the answer, by the number of heads switched off."""
    table = results["retrieval_ablation"]
    whole = next(iter(table))
    panels = (
        ("found", "found_low", "found_high", "Answers found word for word"),
        ("loss", "low", "high", "Loss of the answer (nats per token)"),
    )
    with theme():
        side = across(2)
        figure = new_figure(6.8, 3.0 * (2 // side))
        for axes, (value, low, high, title) in zip(figure.subplots(2 // side, side, squeeze=False).flat, panels, strict=True):
            for number, heads in enumerate(("strongest", "random")):
                rows = [whole, *table.where(heads=heads)]
                places = np.array([row["k"] for row in rows])
                axes.plot(
                    places,
                    [row[value] for row in rows],
                    color=hue(number),
                    marker=MARKERS[number],
                    markersize=4,
                    label=f"{heads} heads",
                )
                axes.fill_between(
                    places, [row[low] for row in rows], [row[high] for row in rows], color=hue(number), alpha=0.15, linewidth=0
                )
            axes.set_title(title, fontsize=pt(9), loc="left")
            axes.set_xlabel("Heads switched off")
            axes.set_xticks([row["k"] for row in [whole, *table.where(heads="random")]])
            axes.set_ylim(bottom=0)
        figure.axes[0].legend(fontsize=pt(8))
        sign(figure, f"{whole['n']:,} texts, {max(table['draws'])} draws of random heads", results.signature)
    return figure
