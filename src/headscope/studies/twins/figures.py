"""The figure of two models: their heads as points, and the distances of their layers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from headscope.drawing.look import MARKERS, SEQUENTIAL, across, colour_map, grey, hue, pt, wide
from headscope.drawing.point_labels import limits, write_names
from headscope.drawing.theme import new_figure, render, sign, theme
from headscope.results.folder import write_atomically
from headscope.stats.embedding import STRESS
from headscope.studies.twins.heads import TABLES, Twins

if TYPE_CHECKING:
    from jaxtyping import Float64
    from matplotlib.axes import Axes

    from headscope.drawing.figure import Drawing
    from headscope.results.results import Results
    from headscope.stats.embedding import Method

NAMED = 8  # of the closest pairs of twins
_WIDE, _GAP, _ABOVE, _BELOW, _LABELS = 4.75, 0.15, 0.32, 0.75, 0.55  # inches: a panel, between panels, above, below, beside the map


def heads_and_layers(results: Results, kind: str | None = None, embedding: Method = "metric", sqrt: bool = False) -> Drawing:
    """The figure of a finished study, whose models have heads of one `kind` each."""
    return draw(Twins.of_study(results), embedding, sqrt)


def draw(twins: Twins, embedding: Method = "metric", sqrt: bool = False) -> Drawing:
    """A figure. Left: all heads as points, mutual twins joined by lines, the closest named. Right: the mean distance of
    every layer of one model to every layer of the other; the nearest of each row and column are marked.
    """
    from headscope.studies.twins import TwinsStudy

    points, stress = twins.embed(embedding, sqrt)
    low, high = limits(points)
    with theme():
        side, width = across(2), wide(2 * _WIDE + 3 * _GAP + 2 * _LABELS)
        panel = (width - 3 * _GAP - 2 * _LABELS) / 2 if side == 2 else width - 2 * _GAP
        tall = panel * float((high - low)[1] / (high - low)[0])
        one = tall + _ABOVE + _BELOW  # the height of a panel with what is above and below
        size = np.array([width, one * (2 // side)])
        figure = new_figure(float(size[0]), float(size[1]), layout=None)
        plane = figure.add_axes((*(np.array([_GAP, _BELOW + one * (2 // side - 1)]) / size), *(np.array([panel, tall]) / size)))
        plane.set(xticks=[], yticks=[], xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        plane.spines[:].set(visible=True, color=grey(0.8))
        plane.set_title("Heads, and lines between mutual twins", fontsize=pt(9), loc="left")
        _plane(plane, twins, points)
        left = 2 * _GAP + panel + _LABELS if side == 2 else _GAP + _LABELS
        across_map = width - left - _LABELS - 0.14 * panel - 0.12 if side == 1 else 0.86 * panel
        layers = figure.add_axes((left / width, _BELOW / size[1], across_map / width, tall / size[1]))
        bar = figure.add_axes(((left + across_map + 0.03 * panel) / width, _BELOW / size[1], 0.12 / width, tall / size[1]))
        _layers(layers, bar, twins)
        root = "square roots of " if sqrt else ""
        how = f"{root}mean Jensen–Shannon divergence between {twins.level}s, {embedding} scaling, {STRESS[embedding]} {stress:.3f}"
        heads = f"{len(twins.a.ids)} and {len(twins.b.ids)} heads"
        sign(figure, f"{twins.n:,} rows of attention, {heads}; {how}", twins.signature)
    study = TwinsStudy()
    return study.captioned(study.figures[0], figure)


def save(twins: Twins, folder: Path) -> list[Path]:
    """Write all tables, as CSV and Parquet, and the figure into a folder, and return the paths of the files."""
    written = []
    for name in TABLES:
        table = twins.table(name)
        written += [table.save(folder / f"{name}.{ending}") for ending in ("csv", "parquet")]
    path = folder / "twins.svg"
    write_atomically(path, render(draw(twins), "svg"))
    return [*written, path]


def _plane(axes: Axes, twins: Twins, points: Float64[np.ndarray, "head 2"]) -> None:
    from matplotlib.collections import LineCollection

    first = len(twins.a.ids)
    places = {
        (side, head): number
        for side, heads, start in (("a", twins.a, 0), ("b", twins.b, first))
        for number, head in enumerate(heads.ids, start)
    }
    pairs = [(places["a", a], places["b", b]) for a, b, _ in twins.mutual()]
    axes.add_collection(LineCollection([points[list(pair)] for pair in pairs], colors=grey(0.55), linewidths=0.7, zorder=1))
    for number, (heads, part) in enumerate(((twins.a, slice(0, first)), (twins.b, slice(first, None)))):
        x, y = points[part].T
        label = f"{heads.name} ({len(heads.ids)})"
        axes.scatter(x, y, s=20, c=hue(number), marker=MARKERS[number], linewidths=0, alpha=0.85, label=label, zorder=2)
    names = [""] * len(points)
    for pair in pairs[:NAMED]:
        for place in pair:
            names[place] = str(twins.a.ids[place] if place < first else twins.b.ids[place - first])
    write_names(axes, points, names)
    axes.legend(loc="upper left", bbox_to_anchor=(-0.02, 0), ncols=2, fontsize=pt(7.5), handletextpad=0.2, columnspacing=1.0)


def _layers(axes: Axes, bar: Axes, twins: Twins) -> None:
    """Draw one row per layer of `a` and one column per layer of `b`. A dot marks the nearest layer of `b` in each row,
    a ring the nearest layer of `a` in each column.
    """
    from matplotlib.figure import Figure

    matrix = twins.layers
    image = axes.imshow(matrix, cmap=colour_map(SEQUENTIAL), aspect="auto", interpolation="nearest")
    axes.grid(visible=False)
    axes.spines[:].set_visible(False)
    for ticks, heads in ((axes.set_yticks, twins.a), (axes.set_xticks, twins.b)):
        shown = range(0, len(heads.layers), -(-len(heads.layers) // 24))
        ticks(list(shown), [str(heads.layers[number] + 1) for number in shown])
    axes.tick_params(length=0, labelsize=pt(7.5))
    axes.set_ylabel(f"Layer of {twins.a.name}")
    axes.set_xlabel(f"Layer of {twins.b.name}")
    axes.set_title("Mean distance of layers; nearest marked: ● of a row, ○ of a column", fontsize=pt(9), loc="left")
    rows, columns = np.arange(len(matrix)), np.arange(matrix.shape[1])
    axes.scatter(matrix.argmin(1), rows, s=16, c="white", linewidths=0)
    axes.scatter(columns, matrix.argmin(0), s=52, facecolors="none", edgecolors="white", linewidths=1.1)
    figure = axes.get_figure(root=True)
    assert isinstance(figure, Figure)
    legend = figure.colorbar(image, cax=bar, label="Jensen–Shannon divergence (nats)")
    legend.outline.set_visible(False)
    bar.tick_params(length=0, labelsize=pt(7.5))
