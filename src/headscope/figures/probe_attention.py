"""Figures of a study of attention probes: Clark et al.'s Table 3 as bars, and the heads that probes lean on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headscope.errors import RunError
from headscope.figures.theme import COLOURS, MARKERS, sign, theme
from headscope.runs.results import Results

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NAMES = {
    "attention": "attention",
    "attention-words": "attention and words",
    "words-distances": "words and distances",
    "random-attention": "attention, random weights",
    "random-attention-words": "attention and words,\nrandom weights",
    "right-branching": "right-branching",
}
_WAYS = {"dep-to-head": "attention from the word to the candidate", "head-to-dep": "attention from the candidate to the word"}


def bars(results: Results, kind: str | None = None) -> Figure:
    """Table 3: UAS of each probe, each seed as a dot, what was published as a line."""
    from matplotlib.figure import Figure

    rows = list(results["summary"])[::-1]
    seeds = results["attention_probe"]
    with theme():
        figure = Figure(figsize=(6.4, 0.8 + 0.42 * len(rows)), layout="constrained")
        axes = figure.subplots()
        for place, row in enumerate(rows):
            colour = COLOURS[0] if row["probe"].startswith("attention") else "0.6"
            axes.barh(place, 100 * row["uas"], color=colour, height=0.62, zorder=2)
            if row["low"] == row["low"]:
                axes.plot([100 * row["low"], 100 * row["high"]], [place, place], color="black", linewidth=1.2, zorder=3)
            each = [100 * value for value in seeds.where(probe=row["probe"])["uas"]]
            if len(each) > 1:
                axes.plot(each, [place + 0.17] * len(each), "o", color="black", markersize=2.2, zorder=4, linestyle="none")
            if row["published"] is not None:
                at = float(row["published"])
                axes.plot([at, at], [place - 0.36, place + 0.36], color=COLOURS[1], linewidth=2, zorder=4)
            right = max(100 * row["uas"], 100 * row["high"] if row["high"] == row["high"] else 0, float(row["published"] or 0))
            axes.text(right + 1.2, place, f"{100 * row['uas']:.1f}", va="center", fontsize=8)
        axes.plot([], [], color=COLOURS[1], linewidth=2, label="BERT-base on the Penn Treebank (Clark et al. 2019)")
        axes.plot([], [], color="black", linewidth=1.2, label="95 % over documents; dots: seeds")
        axes.set_yticks(range(len(rows)), [_NAMES[row["probe"]] for row in rows])
        axes.set_xlim(0, 100)
        axes.set_xlabel("Governors found (UAS, without punctuation, %)")
        axes.grid(axis="y", visible=False)
        figure.legend(fontsize=7, loc="outside upper right", ncols=2)
        sign(figure, f"{rows[0]['n']:,} words", results.signature)
    return figure


def weights(results: Results, kind: str | None = None) -> Figure:
    """How far each head pulls the simplest probe there is towards the governor, in either direction."""
    from matplotlib.figure import Figure

    table = results["attention_probe_heads"]
    probe = next(name for name in (*_NAMES,) if name in table["probe"])
    table = table.where(probe=probe)
    if kind is not None and kind not in table["kind"]:
        raise RunError(f"the study has no {kind} attention", f"It has {', '.join(dict.fromkeys(table['kind']))}")
    layers, width = sorted(set(table["layer"])), max(table["head"])
    grids = {way: np.full((len(layers), width), np.nan) for way in _WAYS}
    said = {way: np.full((len(layers), width), np.nan) for way in _WAYS}
    for row in table:
        place = layers.index(row["layer"]), row["head"] - 1
        grids[row["direction"]][place], said[row["direction"]][place] = row["pull"], row["weight"]
    limit = max(float(np.nanmax(np.abs(grid))) for grid in grids.values()) or 1.0
    with theme():
        figure = Figure(figsize=(1.4 + 0.68 * width, 1.5 + 0.26 * len(layers)), layout="constrained")
        for axes, (way, grid) in zip(figure.subplots(1, 2, sharey=True), grids.items(), strict=True):
            image = axes.imshow(grid, cmap="RdBu", vmin=-limit, vmax=limit, aspect="auto")
            for (y, x), value in np.ndenumerate(said[way]):
                if np.isfinite(value):
                    dark = abs(grid[y, x]) > 0.6 * limit
                    axes.text(x, y, f"{value:+.0f}", ha="center", va="center", fontsize=4.8, color="white" if dark else "black")
            axes.grid(False)
            axes.set_title(_WAYS[way], fontsize=8, loc="left")
            axes.set_xticks(range(width), [str(head + 1) for head in range(width)], fontsize=7)
            axes.set_yticks(range(len(layers)), [str(layer) for layer in layers], fontsize=7)
            axes.set_xlabel("Head")
        figure.axes[0].set_ylabel("Layer")
        bar = figure.colorbar(image, ax=figure.axes, shrink=0.85)
        bar.set_label("pull towards the governor", fontsize=7)
        bar.ax.tick_params(labelsize=7)
        sign(
            figure,
            f"{results['summary']['n'][0]:,} words. Probe: {_NAMES[probe]}. In the cells: weights, means over seeds",
            results.signature,
        )
    return figure


def relations(results: Results, kind: str | None = None) -> Figure:
    """How many governors each probe finds, relation by relation: the most frequent ones."""
    from matplotlib.figure import Figure

    table = results["attention_probe_relations"]
    shown = list(dict.fromkeys(table["relation"]))[:20][::-1]
    names = [name for name in _NAMES if name in table["probe"] and not name.startswith("random")]
    with theme():
        figure = Figure(figsize=(6.4, 1.1 + 0.24 * len(shown)), layout="constrained")
        axes = figure.subplots()
        for name, colour, mark in zip(names, COLOURS, MARKERS, strict=False):
            rows = {row["relation"]: row for row in table.where(probe=name)}
            found = [100 * rows[relation]["uas"] for relation in shown]
            axes.plot(found, range(len(shown)), mark, color=colour, markersize=4.5, label=_NAMES[name])
        sizes = {row["relation"]: row["n"] for row in table}
        axes.set_yticks(range(len(shown)), [f"{relation} ({sizes[relation]:,})" for relation in shown], fontsize=8)
        axes.set_xlim(-2, 102)
        axes.set_xlabel("Governors found (%)")
        figure.legend(fontsize=7, loc="outside upper center", ncols=4)
        sign(figure, f"{results['summary']['n'][0]:,} words", results.signature)
    return figure
