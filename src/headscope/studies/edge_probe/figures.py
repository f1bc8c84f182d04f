"""Tenney et al.'s figures: in which layers each task is solved, and how probabilities change with layers."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.drawing.look import MARKERS, across, grey, hue, legend_beside, narrow, pt, style
from headscope.drawing.theme import new_figure, sign, theme
from headscope.errors import RunError
from headscope.stats.layers import shares_of_gain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headscope.drawing.figure import Drawing
    from headscope.results.results import Results
    from headscope.results.table import Table

SHOWN = 4  # examples in one figure
_POINTS = ("expected layer", "centre of gravity of the mix")
_DOUBTFUL = "expected layer, not interpretable"
_OPEN = "Not interpretable: layers add nothing significant to the score"
_NAMES = {
    "pos": "Part of speech", "constituents": "Constituents", "deps": "Dependencies", "entities": "Entities", "srl": "Semantic roles",
    "coref": "Coreference", "spr": "Proto-roles", "relations": "Relations",
}  # fmt: skip


def named(task: str) -> str:
    """The name of a task in figures."""
    return _NAMES.get(task, task)


def _size(results: Results) -> str:
    rows = list(results["edge_tasks"])
    return ", ".join(f"{row['n']:,} {row['task']}" for row in rows) + f" targets; {results['edge_scores']['seeds'][0]} seeds"


def order(results: Results, kind: str | None = None) -> Drawing:
    """Figure 1: tasks by expected layer, with the centre of gravity of their mix, and F1 without and with layers."""
    rows = list(results["edge_tasks"])
    last = max(results["edge_mix"]["layer"])
    with theme():
        figure = new_figure(7.2, 1.5 + 0.42 * len(rows))
        axes, text = figure.subplots(1, 2, sharey=True, width_ratios=(3, 1.5))
        axes.set_xlim(-0.5, last + 0.5)
        axes.set_xticks(range(last + 1))
        for place, row in enumerate(rows):
            _dot(axes, row, "expected_layer", "low", "high", place - 0.12, 0, doubtful=_doubtful(row))
            _dot(axes, row, "centre", "centre_low", "centre_high", place + 0.12, 1)
            worth = f"{100 * row['embeddings']:.1f} → {100 * row['all_layers']:.1f}"
            share = "" if math.isnan(row["control"]) else f"   ({100 * row['control']:.1f})"
            text.text(0.02, place, worth + share, va="center", fontsize=pt(8), transform=text.get_yaxis_transform())
        axes.set_yticks(range(len(rows)), [named(row["task"]) for row in rows])
        axes.set_ylim(len(rows) - 0.5, -0.5)
        axes.set_xlabel("Layer")
        known = {label: handle for handle, label in reversed(list(zip(*axes.get_legend_handles_labels(), strict=True)))}
        shown = [label for label in (*_POINTS, _DOUBTFUL) if label in known]
        figure.legend([known[label] for label in shown], shown, fontsize=pt(8), loc="outside upper left", ncols=across(3))
        heading = "F1 × 100:\nlayer 0 → all" if narrow() else "F1 × 100: layer 0 → all"
        controlled = any(not math.isnan(row["control"]) for row in rows)
        text.set_title(heading + ("   (control)" if controlled else ""), fontsize=pt(8))
        text.axis("off")
        sign(figure, _size(results) + (f". {_OPEN}" if any(map(_doubtful, rows)) else ""), results.signature)
    return figure


def _doubtful(row: dict[str, Any]) -> bool:
    """Whether the expected layer of a task is not interpretable; studies of earlier versions do not say."""
    return bool(row.get("doubt"))


def _dot(axes: Axes, row: dict[str, Any], value: str, low: str, high: str, y: float, number: int, doubtful: bool = False) -> None:
    """Draw a point with its interval. A point outside the axis is an arrow at the edge, with its value. A point that is
    not interpretable is open and grey, without an interval.
    """
    colour = grey(0.55) if doubtful else hue(number)
    least, most = axes.get_xlim()
    if not math.isnan(row[low]) and not doubtful:
        axes.plot([max(row[low], least), min(row[high], most)], [y, y], color=colour, linewidth=1.4, solid_capstyle="butt")
    if math.isnan(row[value]):
        return
    place = min(max(row[value], least), most)
    marker = MARKERS[number] if place == row[value] else ">" if place == most else "<"
    label, fill = (_DOUBTFUL, style().paper) if doubtful else (_POINTS[number], colour)
    axes.plot([place], [y], marker, color=colour, markerfacecolor=fill, markersize=5, linestyle="none", label=label, clip_on=False)
    if place != row[value]:
        axes.text(place, y - 0.2, f"{row[value]:.1f} ", fontsize=pt(7), ha="right" if place == most else "left", va="center", color=colour)


def layers(results: Results, kind: str | None = None) -> Drawing:
    """Figure 2 (A.3): mixing weights and what each layer adds to the score, side by side, one row per task."""
    rows = list(results["edge_tasks"])
    with theme():
        figure = new_figure(7.2, 0.9 + 1.15 * len(rows))
        grid = figure.subplots(len(rows), 2, squeeze=False, sharex=True)
        for (left, right), row in zip(grid, rows, strict=True):
            mix = results["edge_mix"].where(task=row["task"])
            _bars(left, mix["layer"], mix["weight"], mix["low"], mix["high"], hue(0))
            left.axvline(row["centre"], color=grey(0.2), linewidth=1, linestyle=(0, (4, 3)))
            left.set_ylabel(named(row["task"]), fontsize=pt(8))
            _say(left, f"centre {row['centre']:.2f}, K(s) {row['k_mix']:.2f}")
            scores = results["edge_scores"].where(task=row["task"], probe="cumulative")
            curve = np.array(scores["score"])
            gain = float(curve.max() - curve[0]) or math.nan
            low, high = (np.array(scores[name][1:]) / gain for name in ("adds_low", "adds_high"))
            _bars(right, scores["layer"][1:], shares_of_gain(curve), low, high, grey(0.6) if _doubtful(row) else hue(1))
            caption = "no expected layer" if math.isnan(row["expected_layer"]) else f"expected layer {row['expected_layer']:.2f}"
            if _doubtful(row):
                caption += "" if math.isnan(row["expected_layer"]) else " (not interpretable)"
            elif 0 <= row["expected_layer"] <= len(curve):
                right.axvline(row["expected_layer"], color=grey(0.2), linewidth=1, linestyle=(0, (4, 3)))
            _say(right, caption + ("" if math.isnan(row["k_scores"]) else f", K(Δ) {row['k_scores']:.2f}"))
        for axes, title in zip(
            grid[0], ("Mixing weights s", "Score added Δ" if narrow() else "Score added Δ, share of the gain"), strict=True
        ):
            axes.set_title(title, fontsize=pt(9), loc="left")
        for axes in grid[-1]:
            axes.set_xlabel("Layer (0: embeddings)")
            axes.set_xticks(range(0, max(results["edge_mix"]["layer"]) + 1, 3 - across(2)))
        figure.align_ylabels()
        sign(figure, _size(results), results.signature)
    return figure


def _say(axes: Axes, text: str) -> None:
    """Write a line in the upper right corner, above the data."""
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.22 * (high - low))
    paper = {"facecolor": style().paper, "alpha": 0.85, "pad": 0.6, "linewidth": 0}
    axes.text(0.99, 0.98, text, fontsize=pt(7), ha="right", va="top", transform=axes.transAxes, bbox=paper)


def _bars(axes: Axes, x: Sequence[int], height: Any, low: Any, high: Any, colour: str) -> None:
    values, low, high = (np.asarray(column, dtype=np.float64) for column in (height, low, high))
    axes.bar(x, values, color=colour, width=0.75)
    known = np.isfinite(low) & np.isfinite(high)
    axes.vlines(np.asarray(x)[known], low[known], high[known], color=grey(0.25), linewidth=0.9)
    axes.axhline(0, color=grey(0.4), linewidth=0.6)
    axes.tick_params(labelsize=pt(7))
    axes.grid(False, axis="x")


def scores(results: Results, kind: str | None = None) -> Drawing:
    """F1 by layer: with layers 0 to l, with layer l alone if such probes were trained, and for random labels."""
    tasks = list(dict.fromkeys(results["edge_tasks"]["task"]))
    side = min(len(tasks), across(3))
    down = -(-len(tasks) // side)
    table = results["edge_scores"]
    with theme():
        figure = new_figure(0.6 + 2.6 * side + (side == 1), 0.9 + 2.0 * down)
        grid = figure.subplots(down, side, squeeze=False, sharex=True).ravel()
        for axes, task in zip(grid, tasks, strict=False):
            rows = table.where(task=task)
            for number, (probe, label) in enumerate((("cumulative", "layers 0 to ℓ"), ("single", "layer ℓ alone"))):
                part = rows.where(probe=probe)
                if len(part):
                    axes.fill_between(part["layer"], part["low"], part["high"], color=hue(number), alpha=0.2, linewidth=0)
                    axes.plot(part["layer"], part["score"], MARKERS[number] + "-", color=hue(number), markersize=3, label=label)
            part = rows.where(probe="cumulative")
            if not math.isnan(part["control"][0]):
                axes.plot(part["layer"], part["control"], color=grey(0.35), linewidth=1, linestyle=(0, (4, 3)), label="random labels")
            axes.set_title(named(task), fontsize=pt(9), loc="left")
            axes.set_xticks(range(0, max(part["layer"]) + 1, 2))
        for axes in grid[len(tasks) :]:
            axes.axis("off")
        for place, axes in enumerate(grid[: len(tasks)]):
            if place % side == 0:
                axes.set_ylabel("F1")
            if place + side >= len(tasks):
                axes.set_xlabel("Layer ℓ (0: embeddings)")
                axes.tick_params(labelbottom=True)
        grid[0].legend(fontsize=pt(7))
        sign(figure, _size(results), results.signature)
    return figure


def beliefs(results: Results, chosen: str | None = None, bars: bool = False) -> Drawing:
    """Figure 3: probabilities of labels for single examples as layers are added. `chosen` is a task, or a task and
    numbers: `pos/2,5`.

    With `bars` it is drawn as in the paper: two bars per layer, for the true label and for the other label with the
    highest mean probability.
    """
    rows = _examples(results, chosen)
    with theme():
        figure = new_figure(7.2, 0.6 + (1.45 if bars else 1.75) * len(rows))
        for axes, row in zip(figure.subplots(len(rows), 1, squeeze=False, sharex=True)[:, 0], rows, strict=True):
            (_believed_bars if bars else _believed_lines)(axes, results["edge_beliefs"].where(task=row["task"], example=row["example"]))
            axes.set_ylim(0 if bars else -0.03, 1.03)
            axes.set_ylabel("Belief")
            title = f"{named(row['task'])} {row['example']}: {row['text']}"
            axes.set_title("\n".join(textwrap.wrap(title, 100)), fontsize=pt(7.5), loc="left")
            legend_beside(axes, 7)
        axes.set_xlabel("Layers 0 to ℓ")
        axes.set_xticks(sorted(set(results["edge_beliefs"]["layer"])))
        sign(figure, f"{len(rows)} examples, mean probabilities over {results['edge_scores']['seeds'][0]} seeds", results.signature)
    return figure


def _believed_lines(axes: Axes, rows: Table) -> None:
    for number, label in enumerate(dict.fromkeys(rows["label"])):
        part = rows.where(label=label)
        true = part["gold"][0]
        axes.plot(
            part["layer"], part["belief"], MARKERS[number] + "-", color=hue(number), markersize=3,
            linewidth=2.2 if true else 1.1, label=f"{label} (true)" if true else label,
        )  # fmt: skip


def _believed_bars(axes: Axes, rows: Table) -> None:
    means = {label: float(np.mean(rows.where(label=label)["belief"])) for label in dict.fromkeys(rows["label"])}
    true = max((row["label"] for row in rows if row["gold"]), key=means.__getitem__, default=None)
    other = max((row["label"] for row in rows if not row["gold"]), key=means.__getitem__, default=None)
    for label, colour, shift, template in ((true, hue(0), -0.19, "{} (true)"), (other, hue(1), 0.19, "{}")):
        if label is not None:
            part = rows.where(label=label)
            axes.bar(np.add(part["layer"], shift), part["belief"], width=0.38, color=colour, label=template.format(label))
    axes.grid(False, axis="x")


def _examples(results: Results, chosen: str | None) -> list[dict[str, Any]]:
    """The requested examples; by default those of --look, or one sentence for several tasks, or the first ones."""
    rows = list(results["edge_examples"])
    if not rows:
        raise RunError("the study has no examples", "Make it with --examples 8, or name texts to show with --look")
    if chosen is None:
        texts: dict[str, list[dict[str, Any]]] = {}
        for row in rows:
            if row["kind"] == "sentence":
                texts.setdefault(row["id"], []).append(row)
        firsts = sorted(rows, key=lambda row: (row["kind"] != "given", row["example"]))
        if texts and firsts[0]["kind"] != "given":
            return max(texts.values(), key=len)
        return firsts[:SHOWN]
    task, _, numbers = chosen.partition("/")
    if numbers and not all(number.strip().isdecimal() for number in numbers.split(",")):
        raise RunError(f"{chosen!r} does not name examples", "Write a task, or a task and numbers, as in pos/2,5")
    wanted = {int(number) for number in numbers.split(",")} if numbers else None
    rows_of_task = [row for row in rows if row["task"] == task and (wanted is None or row["example"] in wanted)]
    if not rows_of_task:
        known = ", ".join(dict.fromkeys(row["task"] for row in rows))
        raise RunError(f"the study has no example {chosen}", f"It has examples of {known}: headscope show STUDY edge_examples lists them")
    return rows_of_task[: None if wanted else SHOWN]
