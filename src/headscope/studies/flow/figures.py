"""Westera's figures, and further ones: what flow between words is associated with, layer by layer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.drawing.look import grey, hue, legend_beside, pt
from headscope.drawing.theme import new_figure, sign, theme
from headscope.results.results import Results
from headscope.results.table import Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headscope.drawing.figure import Drawing

UNDIRECTED = {"variant": "undirected", "method": "pearson"}
NAMES = {"A": "A: attention", "G": "G: gradient, layer by layer", "G*": "G*: gradient with respect to the input"}
_CLASSES = (("open", "open classes"), ("closed", "closed classes"), ("closed (released)", "closed, without PART, PRON, SCONJ"))
_SURE = 0.05


def coreference(results: Results, kind: str | None = None) -> Drawing:
    """Figure 1: flow from a noun to a pronoun of the same entity and of another, one panel per measure."""
    table = results["flow_coreference"].where(test="welch")
    items = f"{max(table['n_same'], default=0):,} pairs of one entity and {max(table['n_different'], default=0):,} of two"

    def panel(axes: Axes, name: str) -> None:
        rows = table.where(measure=name)
        layers, same, other = (np.array(rows[column], dtype=float) for column in ("layer", "mean_same", "mean_different"))
        spread = np.array([np.subtract(rows["difference"], rows["low"]), np.subtract(rows["high"], rows["difference"])], dtype=float)
        spread = np.nan_to_num(spread.clip(0))  # with few replicates all may lie on one side
        axes.plot(layers, other, color=hue(1), marker="s", markersize=3.5, label="another entity")
        axes.errorbar(layers, same, spread, color=hue(0), marker="o", markersize=3.5, capsize=2, label="same entity")
        for row, above in zip(rows, np.maximum(same + spread[1], other), strict=True):
            if (row["p_holm"] or 1) < _SURE:
                axes.annotate("*", (row["layer"], above), xytext=(0, -1), textcoords="offset points", ha="center")
        axes.set_ylim(bottom=0)
        axes.set_xticks(layers)

    note = "Bars: 95% interval of the difference. *: p < .05 by Welch's test, Holm over layers"
    return _panels(results, table["measure"], panel, "Mean flow", f"{items}. {note}")


def classes(results: Results, kind: str | None = None) -> Drawing:
    """Figure 2: what words of open and closed classes contribute to all tokens, one panel per measure."""
    table = results["flow_classes"]

    def panel(axes: Axes, name: str) -> None:
        for number, (group, label) in enumerate(_CLASSES):
            _curve(axes, table.where(measure=name, **{"class": group}), hue(number), label)

    return _panels(results, table["measure"], panel, "Mean contribution", f"{max(table['n'], default=0):,} sentences")


def trees(results: Results, kind: str | None = None) -> Drawing:
    """Correlation of flow with distance in the dependency tree, and arcs of its spanning trees."""
    distances, arcs = results["flow_tree_distances"].where(**UNDIRECTED), results["flow_attachment"].where(arcs="all", direction="directed")
    chain = results["flow_tree_distances_chains"].where(**UNDIRECTED, chain="next word")["value"][0]
    with theme():
        figure = new_figure(7.6, 5.0)
        first, second = figure.subplots(2, 1, sharex=True)
        for number, name in enumerate(dict.fromkeys(distances["measure"])):
            _curve(first, _layered(distances.where(measure=name)), hue(number), NAMES.get(name, name))
            _curve(second, _layered(arcs.where(tree=name)), hue(number), NAMES.get(name, name))
        _line(first, chain, "distance in the sentence")
        for place, name in enumerate(("next word", "previous word")):
            _line(second, arcs.where(tree=name)["value"][0], f"head is the {name}", place)
        first.set_title("Correlation with minus the distance in the tree (undirected, without the diagonal)", fontsize=pt(9), loc="left")
        second.set_title("Annotated arcs in the spanning tree of the flow", fontsize=pt(9), loc="left")
        first.set_ylabel("Pearson's r")
        second.set_ylabel("Share of arcs")
        second.set_xlabel("Layer")
        for axes in (first, second):
            legend_beside(axes, 7)
        sign(figure, f"{max(distances['sentences'], default=0):,} sentences", results.signature)
    return figure


def agreement(results: Results, kind: str | None = None) -> Drawing:
    """Whether measures of flow agree: their correlation over all entries, layer by layer."""
    table = results["flow_agreement"].where(over="entries")
    pairs = dict.fromkeys(zip(table["first"], table["second"], strict=True))
    with theme():
        figure = new_figure(6.4, 3.0)
        axes = figure.subplots()
        for number, (first, second) in enumerate(pairs):
            _curve(axes, _layered(table.where(first=first, second=second)), hue(number), f"{first} and {second}")
        axes.set_xlabel("Layer")
        axes.set_ylabel("Pearson's r")
        axes.legend(fontsize=pt(7))
        sign(figure, f"{max(results['flow_agreement'].where(over='texts')['n'], default=0):,} sentences", results.signature)
    return figure


def _panels(results: Results, measures: Sequence[str], panel: Any, ylabel: str, n: str) -> Drawing:
    """A figure with one panel per measure, with separate scales, because the measures are not comparable."""
    names = list(dict.fromkeys(measures))
    with theme():
        figure = new_figure(6.4, 0.5 + 2.1 * len(names))
        for axes, name in zip(figure.subplots(len(names), 1, sharex=True, squeeze=False)[:, 0], names, strict=True):
            panel(axes, name)
            axes.set_title(NAMES.get(name, name), fontsize=pt(9), loc="left")
            axes.set_xlabel("Layer")
            axes.set_ylabel(ylabel)
            axes.label_outer()
            axes.set_ylabel(ylabel)
        figure.axes[0].legend(fontsize=pt(7))
        sign(figure, n, results.signature)
    return figure


def _layered(table: Table) -> Table:
    """The rows that have a layer, without the row of the best layer or of all layers."""
    import pyarrow.compute as pc

    return Table(table.arrow.filter(pc.is_valid(table.arrow["layer"])))


def _curve(axes: Axes, table: Table, colour: str, label: str) -> None:
    axes.fill_between(table["layer"], table["low"], table["high"], color=colour, alpha=0.2, linewidth=0)
    axes.plot(table["layer"], table["value"], color=colour, marker="o", markersize=3, linewidth=1.5, label=label)
    axes.set_xticks(sorted(set(table["layer"])))


def _line(axes: Axes, value: float, label: str, style: int = 0) -> None:
    axes.axhline(value, color=grey(0.35), linewidth=1, linestyle=((0, (4, 3)), (0, (1, 2)))[style], label=label)
