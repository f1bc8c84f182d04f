"""Figures that compare runs or studies: a dot with its interval for each number, or a line by layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.comparison.base import Comparison
from headscope.drawing.look import MARKERS, hue, pt
from headscope.drawing.theme import new_figure, sign, theme
from headscope.errors import RunError
from headscope.studies.registry import REGISTRY

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headscope.drawing.figure import Drawing

    Row = dict[str, Any]

_ROWS, _PANELS = 24, 9  # most rows of a panel, and most panels of a figure


def draw(compared: Comparison, name: str | None = None, change: bool = False) -> Drawing:
    """A figure of one table of a comparison. Without a name it is the figure that the kind of study has (for ablation
    the scores without each head on each task), or else that of the first table. With `change`, the figure of ablation
    shows the losses in percent of the score instead of scores.
    """
    study = compared.results[0].study
    if change and (name is not None or study not in REGISTRY):
        raise RunError("change applies only to studies of ablation, to scores without each head", "Omit it")
    if name is None and study is not None and study in REGISTRY:
        try:
            if (figure := REGISTRY[study].draw_compared(compared.results, change)) is not None:
                return figure
        except RunError:  # of models with different heads, or without single heads switched off
            if change:
                raise
    chosen = name or next(iter(compared.values))
    groups = _groups(compared, chosen)
    with theme():
        figure = _lines(groups, compared) if compared.keys[chosen][-1] == "layer" else _dots(groups, compared, compared.keys[chosen][-1])
        sign(figure, f"{len(compared.results)} {'runs' if study is None else 'studies'}", _signatures(compared))
    return figure


def _signatures(comparison: Comparison) -> str:
    return "|".join(f"{number}: {results.signature}" for number, results in enumerate(comparison.results, 1))


def _groups(comparison: Comparison, name: str) -> dict[str, list[Row]]:
    """The rows of each panel, by all but the last of their keys, without keys that are equal everywhere."""
    table = comparison.values[name]
    shown_keys = [key for key in comparison.keys[name][:-1] if len(set(table[key])) > 1]
    groups: dict[str, list[Row]] = {}
    for row in table:
        groups.setdefault(", ".join(str(row[key]) for key in shown_keys), []).append(row)
    return dict(list(groups.items())[:_PANELS])


def _dots(groups: dict[str, list[Row]], comparison: Comparison, key: str) -> Drawing:
    shown = {title: list(dict.fromkeys(row[key] for row in rows))[:_ROWS] for title, rows in groups.items()}
    heights = [0.24 * len(labels) * (0.6 + 0.2 * len(comparison.names)) + 0.45 for labels in shown.values()]
    figure = new_figure(6.8, sum(heights) + 0.9)
    panels: Any = figure.subplots(len(groups), 1, squeeze=False, height_ratios=heights)[:, 0]
    for axes, (title, rows) in zip(panels, groups.items(), strict=True):
        place = {label: -number for number, label in enumerate(shown[title])}
        for number, name in enumerate(comparison.names):
            rows_of_run = [row for row in rows if row["run"] == name and row[key] in place]
            height = [
                place[row[key]] + 0.5 * ((len(comparison.names) - 1) / 2 - number) / max(1, len(comparison.names) - 1)
                for row in rows_of_run
            ]
            values, low, high = (np.array([row[part] for row in rows_of_run], dtype=float) for part in ("value", "low", "high"))
            reach = np.nan_to_num(np.stack([values - low, high - values]).clip(0))
            looks = {
                "color": hue(number),
                "marker": MARKERS[number % len(MARKERS)],
                "label": comparison.headings[0][number],
            }
            axes.errorbar(values, height, xerr=reach, linestyle="none", markersize=4, elinewidth=1.1, **looks)
        axes.set_yticks(list(place.values()), [str(label) for label in place], fontsize=pt(7))
        axes.set_ylim(-len(place) + 0.4, 0.6)
        if title:
            axes.set_title(title, fontsize=pt(8), loc="left")
    _legend(figure, panels[0], comparison)
    return figure


def _lines(groups: dict[str, list[Row]], comparison: Comparison) -> Drawing:
    columns = min(3, len(groups))
    rows = -(-len(groups) // columns)
    figure = new_figure(6.8, 1.9 * rows + 0.9)
    panels: Any = figure.subplots(rows, columns, squeeze=False, sharex=True)
    for axes, (title, some) in zip(panels.flat, groups.items(), strict=False):
        for number, name in enumerate(comparison.names):
            rows_of_run = [row for row in some if row["run"] == name and row["layer"] is not None]
            layers, values, low, high = (
                np.array([row[part] for row in rows_of_run], dtype=float) for part in ("layer", "value", "low", "high")
            )
            colour = hue(number)
            axes.fill_between(layers, low, high, color=colour, alpha=0.2, linewidth=0)
            marker = MARKERS[number % len(MARKERS)]
            axes.plot(layers, values, color=colour, marker=marker, markersize=3, linewidth=1.3, label=comparison.headings[0][number])
        axes.set_title(title, fontsize=pt(7), loc="left")
    for axes in list(panels.flat)[len(groups) :]:
        axes.set_visible(False)
    for axes in panels[-1]:
        axes.set_xlabel("Layer")
    _legend(figure, panels.flat[0], comparison)
    return figure


def _legend(figure: Drawing, axes: Axes, comparison: Comparison) -> None:
    room = 96 // (max(map(len, comparison.headings[0])) + 8)  # characters per entry
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper left", ncols=max(1, min(4, room)), fontsize=pt(8))
