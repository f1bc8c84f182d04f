"""Figures of in-context learning: the loss by position, and how it changes without heads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.drawing.look import grey, hue, legend_beside, pt
from headscope.drawing.theme import new_figure, sign, theme

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headscope.drawing.figure import Drawing
    from headscope.results.results import Results
    from headscope.results.table import Table

_TITLES = {
    "copy_drop": "Drop of the loss from the first to the second copy",
    "icl_score": "In-context-learning score: late loss minus early loss",
}


def loss_by_position(results: Results, kind: str | None = None) -> Drawing:
    """The mean loss at each position, of the whole model, without the strongest heads, and without random ones."""
    table, measured = results["in_context_loss"], results.measures["in_context"]
    most = max(measured["heads"])
    curves = (
        ("none", 0, "all heads", hue(0)),
        ("random", most, f"without {_heads(most, 'random')} of the same layers", grey(0.45)),
        ("strongest", most, f"without {_heads(most, 'strongest')} by {measured['by'].replace('_', ' ')}", hue(1)),
    )
    with theme():
        figure = new_figure(6.4, 3.4)
        axes = figure.subplots()
        for off, number, name, colour in curves:
            rows = table.where(off=off, heads=number)
            place = (np.array(rows["first"]) + np.array(rows["last"])) / 2
            axes.fill_between(place, rows["low"], rows["high"], color=colour, alpha=0.2, linewidth=0)
            axes.plot(place, rows["loss"], color=colour, linewidth=1.4, label=name)
        _mark(axes, results)
        axes.set_ylim(bottom=0)
        axes.set_xlabel("Token")
        axes.set_ylabel("Loss (nats)")
        axes.legend(fontsize=pt(8), loc="lower left" if "copy_drop" in results["summary"]["quantity"] else "best")
        sign(figure, _counts(table), results.signature)
    return figure


def _mark(axes: Axes, results: Results) -> None:
    """Draw a line at the start of the second copy, or bands at the early and the late tokens."""
    places = results.measures["in_context"]["places"]
    if "copy_drop" in results["summary"]["quantity"]:
        begin = (places["context"] + 1) // 2 - 0.5 + (places["context"] % 2 == 0)
        axes.axvline(begin, color=grey(0.35), linewidth=1, linestyle=(0, (4, 3)))
        axes.set_title("From the dashed line on: the second copy of the sequence", fontsize=pt(9), loc="left")
        return
    for name in ("early", "late"):
        first, after = places[name]
        axes.axvspan(first - 0.5, after - 0.5, color=grey(0.9), linewidth=0, zorder=0)
    axes.set_title("Grey: the early and the late tokens that are compared", fontsize=pt(9), loc="left")


def effects(results: Results, kind: str | None = None) -> Drawing:
    """How in-context learning changes without the strongest heads and without random ones."""
    table, draws = results["in_context_effects"], results["in_context_draws"]
    shown = [name for name in _TITLES if name in table["quantity"]]
    numbers = sorted(set(table["heads"]))
    with theme():
        figure = new_figure(6.4, 0.9 + len(shown) * (0.5 + 0.5 * len(numbers)))
        for axes, quantity in zip(figure.subplots(len(shown), 1, squeeze=False)[:, 0], shown, strict=True):
            for place, number in enumerate(numbers):
                rows = {row["effect"]: row for row in table.where(quantity=quantity, heads=number)}
                _bar(axes, rows["strongest"], place - 0.15, hue(1), "strongest" if place == 0 else None)
                _bar(axes, rows["random"], place + 0.15, grey(0.45), "random, same layers" if place == 0 else None)
                each = draws.where(quantity=quantity, heads=number)["difference"]
                axes.plot(each, [place + 0.32] * len(each), "|", color=grey(0.45), markersize=5)
            axes.axvline(0, color=grey(0.35), linewidth=1, linestyle=(0, (4, 3)))
            axes.set_yticks(range(len(numbers)), [f"{number} head{'s' * (number > 1)} off" for number in numbers])
            axes.set_ylim(len(numbers) - 0.4, -0.6)
            axes.set_title(_TITLES[quantity], fontsize=pt(9), loc="left")
            axes.set_xlabel("Change without the heads (nats)")
        legend_beside(figure.axes[0])
        sign(figure, _counts(table), results.signature)
    return figure


def _bar(axes: Axes, row: dict[str, Any], place: float, colour: str, name: str | None) -> None:
    low, high = (row[bound] if row[bound] == row[bound] else row["difference"] for bound in ("low", "high"))
    axes.plot([low, high], [place, place], color=colour, linewidth=1.6)
    axes.plot([row["difference"]], [place], "o", color=colour, markersize=4.5, label=name)


def _heads(number: int, which: str) -> str:
    if which == "strongest":
        return f"the {number} strongest heads" if number > 1 else "the strongest head"
    return f"{number} {which} heads" if number > 1 else f"a {which} head"


def _counts(table: Table) -> str:
    return f"{max(table['n']):,} texts of {max(table['documents']):,} documents"
