"""Hewitt & Manning's figures: trees by layer, by rank, and single trees."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.drawing.look import across, grey, hue, pt, style
from headscope.drawing.theme import new_figure, sign, theme
from headscope.drawing.words import label
from headscope.errors import RunError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headscope.drawing.figure import Drawing
    from headscope.results.results import Results
    from headscope.results.table import Table

METRICS: Mapping[str, str] = {
    "UUAS": "UUAS: edges found (%)",
    "DSpr": "DSpr: distances, Spearman",
    "Root%": "Root found (%)",
    "NSpr": "NSpr: depths, Spearman",
}
SHOWN = 3  # sentences, if none are chosen
_BASELINES = {
    "projection": ("layer 0, untrained BiLSTM", 2, (0, (6, 2))),
    "decay": ("layer 0, averaged over neighbours", 3, (0, (3, 2))),
    "linear": ("words left to right", None, (0, (1, 1.5))),
}


def layers(results: Results, kind: str | None = None) -> Drawing:
    """All four metrics by layer: the model, the control with redrawn weights, and the baselines."""
    table = results["structural"]

    def panel(axes: Axes, metric: str) -> None:
        rows = table.where(metric=metric)
        _curve(axes, rows.where(source="model"), "layer", hue(0), "o", "the model")
        _curve(axes, rows.where(source="random"), "layer", hue(1), "s", "its weights redrawn")
        for source, (name, number, dashes) in _BASELINES.items():
            colour = grey(0.35) if number is None else hue(number)
            for row in rows.where(source=source):
                axes.axhline(row["value"], color=colour, linewidth=1.2, linestyle=dashes, label=name)
        every = sorted({layer for layer in rows["layer"] if layer is not None})
        axes.set_xticks(every if len(every) <= 14 else every[::2])
        axes.set_xlabel("Layer (0: embeddings, n: output of block n)")

    return _panels(results, table, panel)


def ranks(results: Results, kind: str | None = None) -> Drawing:
    """All four metrics by the rank of the probe, in one layer."""
    table = results["structural_ranks"]
    layer = table["layer"][0]

    def panel(axes: Axes, metric: str) -> None:
        rows = table.where(metric=metric).sort("rank")
        _curve(axes, rows, "rank", hue(0), "o", f"layer {layer}")
        axes.set_xscale("log", base=2)
        every = rows["rank"]
        near = [rank * 1.4 > after for rank, after in zip(every, [*every[1:], np.inf], strict=True)]  # labels would overlap
        axes.set_xticks(every, ["" if skipped else str(rank) for rank, skipped in zip(every, near, strict=True)], fontsize=pt(7))
        axes.minorticks_off()
        axes.set_xlabel(f"Rank of the probe (layer {layer})")

    return _panels(results, table, panel)


def trees(results: Results, chosen: str | None = None) -> Drawing:
    """Sentences with the edges of their trees above and of the predicted trees below; `chosen` as in `2,5`."""
    table = results["structural_trees"]
    every = list(dict.fromkeys(table["text"]))
    some = [every[number - 1] for number in _numbers(chosen, len(every))]
    with theme():
        figure = new_figure(7.4, 0.6 + 1.7 * len(some))
        for axes, text in zip(figure.subplots(len(some), squeeze=False)[:, 0], some, strict=True):
            _sentence(axes, list(table.where(text=text)))
            axes.set_title(f"{every.index(text) + 1}. {label(text)}", fontsize=pt(7), loc="left", color=grey(0.4))
        layer = results.manifest["best_layer"]
        title = (
            f"{len(some)} sentences. Above: the tree, its root bold; below: layer {layer}, edges of the tree blue, others orange and dashed"
        )
        sign(figure, title, results.signature)
    return figure


def _numbers(chosen: str | None, most: int) -> list[int]:
    if chosen is None:
        return list(range(1, min(SHOWN, most) + 1))
    places = [int(part) for part in chosen.split(",") if part.strip().isdecimal()]
    if not places or len(places) < len(chosen.split(",")) or not all(1 <= number <= most for number in places):
        raise RunError(f"{chosen!r} does not name sentences", f"There are {most}: write numbers, as in --quantity 1,2")
    return places


def _sentence(axes: Axes, rows: Sequence[Mapping[str, Any]]) -> None:
    """Draw words in a line, with arcs of the tree above and of the prediction below."""
    forms = [label(row["form"]) for row in rows]
    widths = np.array([len(form) + 1.5 for form in forms])
    places = np.cumsum(widths) - widths / 2
    true = {frozenset((row["word"], row["head"])) for row in rows if row["head"]}
    for row, form, place in zip(rows, forms, places, strict=True):
        weight, colour = "bold" if row["head"] == 0 else "normal", style().ink if row["joined"] is not None else grey(0.55)
        axes.text(place, 0, form, ha="center", va="center", fontsize=pt(7), fontweight=weight, color=colour)
        if row["head"]:
            _arc(axes, place, places[row["head"] - 1], 1, grey(0.35), "-")
        if row["joined"]:
            right = frozenset((row["word"], row["joined"])) in true
            _arc(axes, place, places[row["joined"] - 1], -1, hue(0) if right else hue(1), "-" if right else (0, (3, 1.5)))
    axes.set_xlim(0, widths.sum())
    axes.set_axis_off()


def _arc(axes: Axes, start: float, other: float, way: int, colour: str, line: Any) -> None:
    angles = np.linspace(0, np.pi, 40)
    height = 0.55 * abs(start - other) ** 0.5
    across = (start + other) / 2 + (start - other) / 2 * np.cos(angles)
    axes.plot(across, way * (0.5 + height * np.sin(angles)), color=colour, linewidth=1.1, linestyle=line)


def _curve(axes: Axes, rows: Table, across: str, colour: str, marker: str, label: str) -> None:
    if not len(rows):
        return
    rows = rows.sort(across)
    places, values, low, high = (np.array(rows[name], dtype=float) for name in (across, "value", "low", "high"))
    if np.isfinite(low).any():
        axes.fill_between(places, low, high, color=colour, alpha=0.2, linewidth=0)
    axes.plot(places, values, color=colour, marker=marker, markersize=3.5, linewidth=1.6, label=label)


def _panels(results: Results, table: Table, panel: Callable[[Axes, str], None]) -> Drawing:

    with theme():
        side = across(2)
        figure = new_figure(7.4, 5.2 * (2 // side))
        for axes, (metric, title) in zip(figure.subplots(4 // side, side, squeeze=False).flat, METRICS.items(), strict=True):
            panel(axes, metric)
            axes.set_title(title, fontsize=pt(9), loc="left")
        handles, labels = figure.axes[0].get_legend_handles_labels()
        if len(handles) > 1:
            figure.legend(handles, labels, loc="outside upper center", ncols=across(3), fontsize=pt(8), frameon=False)
        seeds = max((count for count in table["seeds"] if count is not None), default=1)
        over = f"{table['sentences'][0]:,} sentences of {table['documents'][0]:,} documents"
        more = f"; means of {seeds} seeds" if seeds > 1 else ""
        sign(figure, f"{over}{more}. Bands: 95% interval over documents", results.signature)
    return figure
