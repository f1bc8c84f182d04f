"""Keywords by attention: which heads look at them, how much each tells alone, and how well all together find them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.drawing.cells import Scale, write
from headscope.drawing.theme import COLOURS, MARKERS, sign, theme
from headscope.errors import RunError
from headscope.results.results import Results
from headscope.studies.keywords.spec import BASELINES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_RANKED = 20
_MORE, _LESS = COLOURS[1], COLOURS[0]  # red and blue, as in the grid


def heads(results: Results, kind: str | None = None) -> Figure:
    """What words of keyphrases receive more than others, in units of their spread; a dot marks heads that could
    hardly be chance.
    """
    from matplotlib.figure import Figure

    table = results["keywords_heads"].where(received="mean")
    layers, width = max(table["layer"]), max(table["head"])
    grid, sure = np.full((layers, width), np.nan), []
    for row in table:
        grid[row["layer"] - 1, row["head"] - 1] = row["effect"]
        if row["p_holm"] < 0.05:
            sure.append((row["head"] - 1, row["layer"] - 1))
    with theme():
        figure = Figure(figsize=(1.8 + 0.38 * width, 1.4 + 0.3 * layers), layout="constrained")
        axes = figure.subplots()
        image = Scale.around(grid).draw(axes, grid, range(1, layers + 1))
        for column, row in sure:
            write(image, {(row, column): "•"}, 7)
        axes.set_title("Attention to words of keyphrases, minus to others, by its spread", fontsize=9, loc="left")
        figure.colorbar(image, ax=axes, shrink=0.8)
        sign(figure, f"{max(table['n']):,} texts. Dots: p < .05 by a paired t-test over texts, corrected (Holm)", results.signature)
    return figure


def losses(results: Results, kind: str | None = None) -> Figure:
    """The heads of the lowest cross-entropy, ranked, with intervals, beside the cross-entropy of knowing the share
    of keywords alone.
    """
    from matplotlib.figure import Figure

    if "keywords_ranking" not in results:
        raise RunError("the study has no keywords_ranking: an earlier version made it", "Make it again with headscope probe keywords")
    best = list(results["keywords_ranking"].head(_RANKED))
    constant = best[0]["constant"]
    with theme():
        figure = Figure(figsize=(6.4, 1.3 + 0.2 * len(best)), layout="constrained")
        axes = figure.subplots()
        for number, (colour, name, marker) in enumerate(((_MORE, "keywords receive more", "o"), (_LESS, "keywords receive less", "s"))):
            ranked = [(place, row) for place, row in enumerate(best) if (row["effect"] <= 0) == bool(number)]
            axes.hlines(
                [place for place, _ in ranked],
                [row["low"] for _, row in ranked],
                [row["high"] for _, row in ranked],
                color=colour,
                alpha=0.5,
            )
            axes.plot([], [], marker, color=colour, markersize=5, linestyle="none", label=name)
            for place, row in ranked:
                fill = "white" if row["gain_low"] <= 0 else colour
                axes.plot([row["cross_entropy"]], [place], marker, color=colour, markerfacecolor=fill, markersize=5)
        axes.axvline(constant, color="0.35", linewidth=1, linestyle=(0, (4, 3)), label="the share of keywords alone")
        axes.set_yticks(range(len(best)), [f"{row['rank']}. {row['layer']}-{row['head']} {row['received']}" for row in best], fontsize=7)
        axes.invert_yaxis()
        axes.set_xlabel("Cross-entropy on other documents (nats per word)")
        saved = axes.secondary_xaxis("top", functions=(partial(_saved, constant), partial(_spent, constant)))
        saved.set_xlabel("Saved beside the share of keywords alone (1/1000 nats per word)", fontsize=8)
        axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
        sign(
            figure, f"{best[0]['n']:,} texts. Bars: 95% intervals over documents. Open: what is saved is not clear of 0", results.signature
        )
    return figure


def _saved(constant: float, loss: Any) -> Any:
    """What a cross-entropy saves, in thousandths."""
    return 1000 * (constant - np.asarray(loss))


def _spent(constant: float, saved: Any) -> Any:
    return constant - np.asarray(saved) / 1000


def curves(results: Results, kind: str | None = None) -> Figure:
    """F1 of the logistic regression: left by the threshold, right by the number of heads kept; one line for words,
    one for phrases.
    """
    from matplotlib.figure import Figure

    table = results["keywords_curves"]
    panels = (("threshold", "Threshold: least chance of being in a keyphrase"), ("heads", "Heads kept, lowest cross-entropy first"))
    with theme():
        figure = Figure(figsize=(7.6, 3.2), layout="constrained")
        for axes, (by, xlabel) in zip(figure.subplots(1, 2, sharey=True), panels, strict=True):
            for number, level in enumerate(dict.fromkeys(table["level"])):
                rows = table.where(by=by, level=level)
                axes.fill_between(rows[by], rows["low"], rows["high"], color=COLOURS[number], alpha=0.2, linewidth=0)
                marker = MARKERS[number] if by == "heads" else ""
                axes.plot(rows[by], rows["f1"], color=COLOURS[number], marker=marker, markersize=4, linewidth=1.6, label=f"F1 of {level}")
                if by == "threshold":
                    best = max(rows, key=lambda row: row["f1"])
                    axes.plot([best[by]], [best["f1"]], MARKERS[number], color=COLOURS[number], markersize=6, markerfacecolor="white")
            axes.set_xlabel(xlabel, fontsize=8)
            axes.set_ylim(bottom=0)
        last = figure.axes[1]
        last.set_xscale("log", base=2)
        steps = sorted(set(table.where(by="heads")["heads"]))
        near = [step * 1.4 > after for step, after in zip(steps, [*steps[1:], np.inf], strict=True)]  # labels would overlap
        last.set_xticks(steps, ["" if skipped else str(step) for step, skipped in zip(steps, near, strict=True)])
        last.minorticks_off()
        figure.axes[0].set_ylabel("F1 on other documents")
        figure.legend(*last.get_legend_handles_labels(), loc="outside upper right", ncols=2, fontsize=8)
        note = "Bands: 95% intervals over documents. Left: all heads, the best threshold marked; right: thresholds tuned on other documents"
        sign(figure, f"{max(table['n']):,} texts. {note}", results.signature)
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
    by_system = {row["system"]: row for row in results["keywords_scores"].where(level=level)}
    rows = [by_system[row["system"]] for row in sorted(results["keywords_scores"].where(level=first), key=lambda row: row["f1"])]
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
