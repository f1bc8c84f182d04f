"""Keywords by attention: which heads look at them, how much each tells alone, and how well all together find them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headscope.figures.theme import COLOURS, sign, theme
from headscope.probes.keywords import BASELINES
from headscope.runs.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_RANKED = 20
_MORE, _LESS = COLOURS[1], COLOURS[0]  # red and blue, as in the grid


def heads(results: Results, kind: str | None = None) -> Figure:
    """What words of keyphrases receive more than others, in units of their spread; a dot marks heads that could hardly be chance."""
    from matplotlib.figure import Figure

    table = results["keywords_heads"].where(received="mean")
    layers, width = max(table["layer"]), max(table["head"])
    grid, sure = np.full((layers, width), np.nan), []
    for row in table:
        grid[row["layer"] - 1, row["head"] - 1] = row["effect"]
        if row["p_holm"] < 0.05:
            sure.append((row["head"] - 1, row["layer"] - 1))
    limit = float(np.nanmax(np.abs(grid))) or 1.0
    with theme():
        figure = Figure(figsize=(1.8 + 0.38 * width, 1.4 + 0.3 * layers), layout="constrained")
        axes = figure.subplots()
        image = axes.imshow(grid, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto")
        if sure:
            axes.plot(*zip(*sure, strict=True), ".", color="black", markersize=3)
        axes.grid(False)
        axes.set_xticks(range(width), [str(head + 1) for head in range(width)])
        axes.set_yticks(range(layers), [str(layer + 1) for layer in range(layers)])
        axes.set_xlabel("Head")
        axes.set_ylabel("Layer")
        axes.set_title("Attention to words of keyphrases, minus to others, by its spread", fontsize=9, loc="left")
        figure.colorbar(image, ax=axes, shrink=0.8)
        sign(figure, f"{max(table['n']):,} texts. Dots: p < .05 by a paired t-test over texts, corrected (Holm)", results.signature)
    return figure


def losses(results: Results, kind: str | None = None) -> Figure:
    """The heads that tell most alone, by the loss of a regression on what words receive from that head."""
    from matplotlib.figure import Figure

    table = results["keywords_heads"]
    best = sorted(table, key=lambda row: row["loss"])[:_RANKED][::-1]
    with theme():
        figure = Figure(figsize=(5.6, 1.0 + 0.2 * len(best)), layout="constrained")
        axes = figure.subplots()
        colours = [_MORE if row["effect"] > 0 else _LESS for row in best]
        axes.barh(range(len(best)), [1000 * row["gain"] for row in best], color=colours)
        axes.set_yticks(range(len(best)), [f"{row['layer']}-{row['head']} {row['received']}" for row in best], fontsize=7)
        axes.set_xlabel("Log loss saved on other documents, 1/1000 nats a word")
        for colour, name in ((_MORE, "keywords receive more"), (_LESS, "keywords receive less")):
            axes.barh([0], [0], color=colour, label=name)
        axes.legend(fontsize=7, loc="lower right")
        sign(figure, f"{max(table['n']):,} texts", results.signature)
    return figure


def scores(results: Results, kind: str | None = None) -> Figure:
    """F1 of every way to find keywords, of words and of phrases; baselines in grey."""
    from matplotlib.figure import Figure

    table = results["keywords_scores"]
    levels = list(dict.fromkeys(table["level"]))
    with theme():
        figure = Figure(figsize=(6.8, 2.8), layout="constrained")
        for axes, level in zip(figure.subplots(1, len(levels), sharey=True, squeeze=False)[0], levels, strict=True):
            _bars(axes, results, level, levels[0])
        sign(figure, f"{max(table['n']):,} texts that were not learnt from", results.signature)
    return figure


def _bars(axes: Axes, results: Results, level: str, first: str) -> None:
    """The bars of one level, in the order of the first."""
    own = {row["system"]: row for row in results["keywords_scores"].where(level=level)}
    rows = [own[row["system"]] for row in sorted(results["keywords_scores"].where(level=first), key=lambda row: row["f1"])]
    values = [row["f1"] for row in rows]
    errors = np.abs(np.array([[row["f1"] - row["low"], row["high"] - row["f1"]] for row in rows]).T)
    colours = ["0.7" if row["system"] in BASELINES else COLOURS[0] for row in rows]
    axes.barh(range(len(rows)), values, color=colours, xerr=np.nan_to_num(errors), error_kw={"linewidth": 1, "ecolor": "0.3"})
    axes.set_yticks(range(len(rows)), [row["system"] for row in rows], fontsize=8)
    for place, row in enumerate(rows):
        axes.plot([row["precision"]], [place], marker="|", color="black", markersize=7)
        axes.plot([row["recall"]], [place], marker="x", color="black", markersize=4)
    axes.set_xlim(0, 1)
    axes.set_xlabel(f"F1 of {level} (| precision, × recall)")
