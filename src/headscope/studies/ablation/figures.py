"""Michel et al.'s figures: what switching off each head does, and how far one can go."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headscope.drawing.cells import Scale, write
from headscope.drawing.look import grey, hue, legend_beside, pt
from headscope.drawing.theme import new_figure, sign, theme
from headscope.errors import RunError
from headscope.results.table import Table
from headscope.studies.ablation.findings import LOWER, SURE, base_score, within
from headscope.studies.ablation.pruning_curves import MOST_FIRST

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.image import AxesImage

    from headscope.drawing.figure import Drawing
    from headscope.results.results import Results

_ORDERS = {"importance": "by importance", "drop": "by measured loss"}


def heads(results: Results, kind: str | None = None) -> Drawing:
    """Table 1: how the score changes without each head; cells with p < .01 have a frame."""
    table = results["ablation"]
    kinds = list(dict.fromkeys(table["kind"]))
    if kind is not None and kind not in kinds:
        raise RunError(f"the study has no {kind} attention", f"It has {', '.join(kinds)}")
    shown = [kind] if kind is not None else kinds
    score = results.manifest["settings"]["score"]
    scale = Scale.around(np.array(table["difference"])[None], colours="RdBu_r" if score in LOWER else "RdBu")
    parts = [table.where(kind=name) for name in shown]
    tall = [len(set(part["layer"])) for part in parts]
    with theme():
        figure = new_figure(1.6 + 0.46 * max(table["head"]), 0.9 + sum(0.34 * rows + 0.5 for rows in tall))
        for axes, name, part in zip(figure.subplots(len(parts), 1, squeeze=False, height_ratios=tall)[:, 0], shown, parts, strict=True):
            image = _grid(axes, part, scale)
            of_kind = f" ({name})" if len(kinds) > 1 else ""
            axes.set_title(f"{score} without the head, minus with it{of_kind}{scale.note}", fontsize=pt(9), loc="left")
        worse = "the score falls without the head" if score not in LOWER else "the score rises without the head"
        figure.colorbar(image, ax=figure.axes, shrink=0.8).set_label(f"difference in {score}; red: {worse}", fontsize=pt(8))
        whole = f"{score} of the whole model: {base_score(results):.4g}"
        sign(figure, f"{max(table['n']):,} texts. {whole}. Framed: p < {SURE} by {table['test'][0]}, one head at a time", results.signature)
    return figure


def _grid(axes: Axes, table: Table, scale: Scale) -> AxesImage:
    """Differences as colours: red where the model is worse without the head."""
    from matplotlib.patches import Rectangle

    layers, width = sorted(set(table["layer"])), max(table["head"])
    grid = np.full((len(layers), width), np.nan)
    for row in table:
        place = layers.index(row["layer"]), row["head"] - 1
        grid[place] = row["difference"]
        if row["p"] < SURE:
            axes.add_patch(Rectangle((place[1] - 0.48, place[0] - 0.46), 0.96, 0.92, fill=False, edgecolor="black", linewidth=1.1))
    image = scale.draw(axes, grid, layers)
    write(image, scale.digits(grid), 5.5)
    return image


def histogram(results: Results, kind: str | None = None) -> Drawing:
    """Change in score over all heads."""
    table = results["ablation"]
    kinds = [kind] if kind is not None else list(dict.fromkeys(table["kind"]))
    with theme():
        figure = new_figure(6.4, 3.0)
        axes = figure.subplots()
        values = [[value for value in table.where(kind=name)["difference"] if value == value] for name in kinds]
        axes.hist(values, bins=30, color=[hue(number) for number in range(len(kinds))], stacked=True, label=kinds)
        axes.axvline(0, color=grey(0.35), linewidth=1, linestyle=(0, (4, 3)))
        axes.set_xlabel(f"{results.manifest['settings']['score']} without the head, minus with it")
        axes.set_ylabel("Heads")
        if len(kinds) > 1:
            axes.legend(fontsize=pt(8))
        sign(figure, f"{max(table['n']):,} texts", results.signature)
    return figure


def pruning(results: Results, kind: str | None = None) -> Drawing:
    """Figure 3: the score as more heads are switched off, in several orders; random orders in grey."""
    table = results["pruning"]
    base = table["score"][0] - table["difference"][0]  # of the texts that the curves are tested on, not of all texts
    least, most = within(results.manifest["settings"]["score"])
    with theme():
        figure = new_figure(6.4, 3.4)
        axes = figure.subplots()
        for order in reversed(list(dict.fromkeys(table["order"]))):
            rows = table.where(order=order)
            share = [0.0, *(100 * value for value in rows["share"])]
            values = [base, *rows["score"]]
            plain = order.removesuffix(MOST_FIRST)
            if plain not in _ORDERS:
                axes.plot(share, values, color=grey(0.7), linewidth=1, label="at random" if order == "random 1" else None)
                continue
            colour = hue(list(_ORDERS).index(plain))
            if plain != order:
                axes.plot(share, values, color=colour, linewidth=1.2, linestyle=(0, (2, 2)), label=f"{_ORDERS[plain]}{MOST_FIRST}")
                continue
            low, high = (np.clip([base, *np.add(base, rows[bound])], least, most) for bound in ("low", "high"))
            axes.fill_between(share, low, high, color=colour, alpha=0.2, linewidth=0)
            axes.plot(share, values, color=colour, marker="o", markersize=3, linewidth=1.6, label=_ORDERS[order])
        axes.axhline(base, color=grey(0.35), linewidth=1, linestyle=(0, (4, 3)), label="all heads")
        axes.set_xlabel("Heads switched off (%)")
        axes.set_ylabel(results.manifest["settings"]["score"])
        legend_beside(axes)
        sign(figure, f"{max(table['n']):,} texts", results.signature)
    return figure


def importance(results: Results, kind: str | None = None) -> Drawing:
    """Importance of each head against the loss of score without it."""
    table, lost = results["importance"], results["ablation"]
    better = -1 if results.manifest["settings"]["score"] in LOWER else 1
    drop = {(row["kind"], row["layer"], row["head"]): -better * row["difference"] for row in lost}
    with theme():
        figure = new_figure(6.4, 3.6)
        axes = figure.subplots()
        for number, name in enumerate(dict.fromkeys(table["kind"])):
            rows = list(table.where(kind=name))
            axes.plot(
                [row["importance"] for row in rows], [drop[row["kind"], row["layer"], row["head"]] for row in rows], "o",
                markersize=3.5, alpha=0.7, color=hue(number), label=name, linestyle="none",
            )  # fmt: skip
        axes.axhline(0, color=grey(0.35), linewidth=1, linestyle=(0, (4, 3)))
        axes.set_xlabel("Importance, from gradients")
        axes.set_ylabel(f"How much worse {results.manifest['settings']['score']} is without the head")
        if len(set(table["kind"])) > 1:
            axes.legend(fontsize=pt(8))
        sign(figure, f"{max(table['n']):,} texts", results.signature)
    return figure
