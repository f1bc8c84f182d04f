"""Clark et al. 2019, Tables 1 and 2 as figures: the best head of each label with its interval, beside the best
simple rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headscope.drawing.theme import COLOURS, sign, theme
from headscope.errors import RunError
from headscope.figures.panels import COUNTED
from headscope.results.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from headscope.results.table import Table

# What the share is of, and what heads are compared with.
WORDS = {
    "relations": (COUNTED["relations"], "Share of words whose governor is picked", "best fixed offset"),
    "coreference": (COUNTED["coreference"], "Share of mentions for which an antecedent is picked", "best rule"),
    "pronouns": (COUNTED["pronouns"], "Share of pronouns for which the right candidate is picked", "best rule"),
}


def draw(results: Results, kind: str | None = None, measure: str = "relations") -> Figure:
    """A row a label, the most frequent first: the chosen head's accuracy on documents it was not chosen on, and what
    a rule gives.
    """
    from matplotlib.figure import Figure

    table = results[f"{measure}_best"]
    kinds = list(dict.fromkeys(table["kind"]))
    if not kinds:
        raise RunError(f"no label of {measure} has enough cases to be listed", f"Lower the bar with -O {measure}.least=1")
    if kind is not None and kind not in kinds:
        raise RunError(f"the run has no {kind} attention", f"It has {', '.join(kinds)}")
    rows = table.where(kind=kind or kinds[0])
    counted, axis, rule = WORDS[measure]
    with theme():
        figure = Figure(figsize=(6.4, 1.5 + 0.22 * len(rows)), layout="constrained")
        axes = figure.subplots()
        fair = results.measures[measure].get("selection") == "crossfit"
        _dots(axes, rows, rule, "best head, chosen on other documents" if fair else "best head, chosen on the same documents", fair)
        axes.set_xlim(-0.02, 1.02)
        axes.set_xlabel(axis)
        figure.legend(loc="outside upper right", ncols=3, fontsize=8)
        sign(figure, f"{max(rows['n']):,} {counted}", results.signature)
    return figure


def _dots(axes: Axes, rows: Table, rule_name: str, head_name: str, fair: bool) -> None:
    y = np.arange(len(rows))
    head, rule, light = COLOURS[0], COLOURS[1], "0.6"
    for name, colour, shift, marker, label in (
        ("baseline", rule, 0.14, "D", rule_name),
        ("value", head, -0.14, "o", head_name),
    ):
        low, high = ("low", "high") if name == "value" else (f"{name}_low", f"{name}_high")
        axes.hlines(y + shift, rows[low], rows[high], color=colour, linewidth=1.4, alpha=0.6)
        axes.plot(rows[name], y + shift, marker, color=colour, markersize=4.5, linestyle="none", label=label)
    other, label = ("in_sample", "best head in-sample") if fair else ("crossfit", "chosen on other documents")
    axes.plot(rows[other], y - 0.14, "|", color=light, markersize=8, linestyle="none", label=label, zorder=0)
    axes.set_yticks(y, [f"{row['label']}  ({row['n']:,})" for row in rows])
    axes.invert_yaxis()
    right = axes.secondary_yaxis("right")
    right.set_yticks(y, [_chosen(row["heads"], row["direction"]) for row in rows], fontsize=7)
    right.tick_params(length=0)
    right.spines["right"].set_visible(False)


def _chosen(heads: str, direction: str) -> str:
    return f"{heads}  {direction.replace('-to-', ' → ').replace(' | ', ', ')}" if heads else "cannot be halved"
