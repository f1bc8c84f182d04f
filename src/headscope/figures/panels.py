"""The panel of Clark et al.'s Figures 2 and 4: one point per head, and the layer means as a line with a band."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headscope.drawing.look import MARKERS, grey, hue, legend_beside
from headscope.errors import RunError
from headscope.results.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COUNTED = {"relations": "words", "coreference": "mentions", "pronouns": "pronouns"}  # the cases of heads as classifiers

_DASHED = (0, (4, 3))
_SAME = 0.005  # lines that are closer cannot be distinguished


def choose_kind(results: Results, measures: Sequence[str], kind: str | None) -> str:
    """The kind of attention to draw: the requested one, or the first of the run."""
    kinds = list(dict.fromkeys(name for measure in measures for name in results[measure]["kind"]))
    if kind is not None and kind not in kinds:
        raise RunError(f"the run has no {kind} attention", f"It has {', '.join(kinds)}")
    return kind or kinds[0]


def available(results: Results, measure: str, kind: str, curves: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The curves for which the run has data: measured, defined for this kind of attention, not empty, and not 0 by
    definition, like the entropy of a row that sees one token.
    """
    if measure not in results:
        return []
    heads = results[measure].where(kind=kind)
    counted = {row["quantity"] for row in heads if row["n"] and (row["value"] or row["baseline"])}
    return [(quantity, label) for quantity, label in curves if quantity in counted]


def points(axes: Axes, results: Results, measure: str, kind: str, curves: Sequence[tuple[str, str]], baseline: str | None = None) -> None:
    """Draw quantities by layer; `curves` are (quantity, label), `baseline` is a label for even attention: one dashed
    line per curve, in its colour, or a grey line if several curves share it.
    """
    heads = results[measure].where(kind=kind)
    layers = results[f"{measure}_layers"].where(kind=kind)
    for number, (quantity, label) in enumerate(curves):
        colour, marker = hue(number), MARKERS[number]
        cloud, mean = heads.where(quantity=quantity), layers.where(quantity=quantity)
        shift = (number - (len(curves) - 1) / 2) * 0.12
        x = np.array(cloud["layer"]) + shift
        axes.plot(x, cloud["value"], marker, color=colour, markersize=3, alpha=0.55, markeredgewidth=0, linestyle="none")
        axes.fill_between(mean["layer"], mean["low"], mean["high"], color=colour, alpha=0.2, linewidth=0)
        axes.plot(mean["layer"], mean["value"], color=colour, linewidth=1.6, marker=marker, markersize=4.5, label=label)
    if baseline is not None:
        evens = [np.array(layers.where(quantity=quantity)["baseline"], dtype=float) for quantity, _ in curves]
        for number, even in enumerate(evens):
            alike = [other for other, line in enumerate(evens) if np.allclose(line, even, atol=_SAME, equal_nan=True)]
            if alike[0] == number:
                colour = hue(number) if len(alike) == 1 < len(curves) else grey(0.35)
                axes.plot(mean["layer"], even, color=colour, linewidth=1, linestyle=_DASHED)
        axes.plot(mean["layer"], evens[0], color=grey(0.35), linewidth=1, linestyle=_DASHED, label=baseline, zorder=0)
    axes.set_xticks(sorted(set(heads["layer"])))
    axes.set_xlabel("Layer")
    axes.label_outer()
    legend_beside(axes)


def sample_size(results: Results, measures: Sequence[str], kind: str, quantity: str | None = None) -> str:
    """The sample size of figures of these measures, or of one quantity: texts, rows, or cases such as words."""
    sizes = []
    for measure in measures:
        if measure in results:
            rows = results[measure].where(kind=kind, **({"quantity": quantity} if quantity is not None else {}))
            unit = "rows" if results.measures[measure].get("average") == "token" else "texts"
            sizes.append(f"{max(rows['n']):,} {COUNTED.get(measure, unit)}")
    return " and ".join(dict.fromkeys(sizes))
