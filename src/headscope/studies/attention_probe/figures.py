"""Figures of a study of attention probes: Clark et al.'s Table 3 as a figure, the weights of heads, and relations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from headscope.drawing.cells import Scale, columns, mark, percent, write
from headscope.drawing.look import MARKERS, across, grey, hue, pt
from headscope.drawing.theme import new_figure, sign, theme
from headscope.errors import RunError
from headscope.results.results import Results

if TYPE_CHECKING:
    from headscope.drawing.figure import Drawing

_STRUCTURAL, _UUAS = "structural-probe", 80.0  # the number of Hewitt and Manning that the paper cites
# In the order of the paper's Table 3; the second row of random weights is ours.
_NAMES = {
    _STRUCTURAL: "structural probe*",
    "right-branching": "right-branching",
    "words-distances": "words and distances",
    "random-attention-words": "attention and words,\nrandom weights",
    "random-attention": "attention, random weights",
    "attention": "attention",
    "attention-words": "attention and words",
}
_WAYS = {"dep-to-head": "attention from the word to the candidate", "head-to-dep": "attention from the candidate to the word"}


def bars(results: Results, kind: str | None = None, structural: Results | None = None) -> Drawing:
    """Table 3: UAS of each probe in the order of the paper, each seed as a tick, and published values.

    `structural` is a study of a structural probe; its UUAS is then our number in that row.
    """
    rows = {row["probe"]: row for row in results["summary"]}
    names = [name for name in _NAMES if name in rows or name == _STRUCTURAL]
    with theme():
        figure = new_figure(6.8, 1.3 + 0.4 * len(names))
        axes = figure.subplots()
        ours, paper = [], []
        for place, name in enumerate(names):
            row = _uuas(structural) if name == _STRUCTURAL else rows[name]
            value, low, high = (100 * row[column] for column in ("uas", "low", "high"))
            published = _UUAS if name == _STRUCTURAL else row["published"] and float(row["published"])
            mark(axes, place, value, low, high, published, hue(0) if name.startswith("attention") else grey(0.45))
            each = [100 * uas for uas in results["attention_probe"].where(probe=name)["uas"]]
            if len(each) > 1:
                axes.plot(each, [place - 0.3] * len(each), "|", color=grey(0.45), markersize=5, linestyle="none")
            star = "*" if name == _STRUCTURAL else ""
            ours.append(percent(value, 1) + (star if value == value else ""))
            paper.append(percent(published) + (star or "") if published else "–")
        columns(axes, ours, paper)
        axes.plot([], [], "o-", color=hue(0), markersize=5, linewidth=1.6, label="ours, 95% interval over documents; ticks: seeds")
        axes.plot([], [], "D", color=hue(1), markerfacecolor="none", markersize=4.5, label="Clark et al. 2019: BERT-base, Penn Treebank")
        axes.set_yticks(range(len(names)), [_NAMES[name] for name in names])
        axes.set_ylim(len(names) - 0.5, -1.1)
        axes.set_xlim(0, 100)
        axes.set_xlabel("Governors found (UAS, without punctuation, %)")
        figure.legend(fontsize=pt(7), loc="outside upper right", ncols=across(2))
        star = "*: UUAS of a structural probe, arcs without direction: not comparable"
        sign(figure, f"{results['summary']['n'][0]:,} words. {star}", results.signature)
    return figure


def _uuas(structural: Results | None) -> Mapping[str, float]:
    """The UUAS of a structural probe in its best layer; NaN without such a study."""
    if structural is None:
        return dict.fromkeys(("uas", "low", "high"), math.nan)
    if structural.study != "structural_probe":
        raise RunError(f"{structural.path} is not a study of a structural probe", "Make one with headscope probe structural")
    (row,) = structural["structural"].where(metric="UUAS", source="model", layer=structural.manifest["best_layer"])
    return {"uas": row["value"] / 100, "low": row["low"] / 100, "high": row["high"] / 100}


def weights(results: Results, kind: str | None = None) -> Drawing:
    """The pull of each head towards the governor in the simplest probe of the study, one panel per direction."""
    table = results["attention_probe_heads"]
    probe = next(name for name in ("attention", *_NAMES) if name in table["probe"])
    table = table.where(probe=probe)
    if kind is not None and kind not in table["kind"]:
        raise RunError(f"the study has no {kind} attention", f"It has {', '.join(dict.fromkeys(table['kind']))}")
    layers, width = sorted(set(table["layer"])), max(table["head"])
    grids = {way: np.full((len(layers), width), np.nan) for way in _WAYS}
    weights_of = {way: np.full((len(layers), width), np.nan) for way in _WAYS}
    for row in table:
        place = layers.index(row["layer"]), row["head"] - 1
        grids[row["direction"]][place], weights_of[row["direction"]][place] = row["pull"], row["weight"]
    scale = Scale.around(np.stack([*grids.values()]), colours="RdBu")
    with theme():
        figure = new_figure(max(3.2, 1.4 + 0.68 * width), (1.5 + 0.26 * len(layers)) * (2 // across(2)))
        for axes, (way, grid) in zip(
            figure.subplots(2 // across(2), across(2), sharey=True, squeeze=False).flat, grids.items(), strict=True
        ):
            image = scale.draw(axes, grid, layers)
            write(image, {place: f"{value:+.0f}" for place, value in np.ndenumerate(weights_of[way]) if np.isfinite(value)}, 4.8)
            axes.set_title(_WAYS[way], fontsize=pt(8), loc="left")
            axes.tick_params(labelsize=pt(7))
            axes.label_outer()
        bar = figure.colorbar(image, ax=figure.axes, shrink=0.85)
        bar.set_label("pull towards the governor", fontsize=pt(7))
        bar.ax.tick_params(labelsize=pt(7))
        sign(
            figure,
            f"{results['summary']['n'][0]:,} words. Probe: {_NAMES[probe]}. In the cells: weights, means over seeds",
            results.signature,
        )
    return figure


def relations(results: Results, kind: str | None = None) -> Drawing:
    """The share of governors that each probe finds for each of the most frequent relations."""
    table = results["attention_probe_relations"]
    shown = list(dict.fromkeys(table["relation"]))[:20][::-1]
    names = [name for name in _NAMES if name in table["probe"] and not name.startswith("random")]
    with theme():
        figure = new_figure(6.4, 1.1 + 0.24 * len(shown))
        axes = figure.subplots()
        for number, (name, mark) in enumerate(zip(names, MARKERS, strict=False)):
            rows = {row["relation"]: row for row in table.where(probe=name)}
            shares = [100 * rows[relation]["uas"] for relation in shown]
            axes.plot(shares, range(len(shown)), mark, color=hue(number), markersize=4.5, label=_NAMES[name])
        sizes = {row["relation"]: row["n"] for row in table}
        axes.set_yticks(range(len(shown)), [f"{relation} ({sizes[relation]:,})" for relation in shown], fontsize=pt(8))
        axes.set_xlim(-2, 102)
        axes.set_xlabel("Governors found (%)")
        figure.legend(fontsize=pt(7), loc="outside upper center", ncols=across(4))
        sign(figure, f"{results['summary']['n'][0]:,} words", results.signature)
    return figure
