"""Clark et al. 2019, Tables 1 and 2 as figures: the best head of each label, and the best simple rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.drawing.cells import columns, mark, percent
from headscope.drawing.look import across, grey, hue, narrow, pt, wide
from headscope.drawing.theme import new_figure, sign, theme
from headscope.errors import RunError
from headscope.figures.panels import COUNTED
from headscope.measures.coreference import DIRECTIONS
from headscope.measures.systems import EACH, ONE
from headscope.results.results import Results

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from headscope.drawing.figure import Drawing
    from headscope.results.table import Table

# What the share is of, and what heads are compared with.
WORDS = {
    "relations": (COUNTED["relations"], "Share of words whose governor is picked", "best fixed offset"),
    "coreference": (COUNTED["coreference"], "Share of mentions for which an antecedent is picked", "best rule"),
    "pronouns": (COUNTED["pronouns"], "Share of pronouns for which the right candidate is picked", "best rule"),
}
KINDS = ("all", "pronoun", "proper", "nominal")
PUBLISHED = {"nearest": (27, 29, 29, 19), "head_match": (52, 47, 67, 40), "sieves": (69, 70, 77, 60), ONE: (65, 64, 73, 58)}
_NAMES = {"nearest": "Nearest", "head_match": "Head match", "sieves": "Rule-based", ONE: "One head", EACH: "Best head of each kind"}


def draw(results: Results, kind: str | None = None, measure: str = "relations") -> Drawing:
    """A figure with one row per label, most frequent first: the best head's accuracy, and that of the rule."""
    table = results[f"{measure}_best"]
    kinds = list(dict.fromkeys(table["kind"]))
    if not kinds:
        raise RunError(f"no label of {measure} has enough cases to be listed", f"Lower the minimum with -O {measure}.least=1")
    if kind is not None and kind not in kinds:
        raise RunError(f"the run has no {kind} attention", f"It has {', '.join(kinds)}")
    rows = table.where(kind=kind or kinds[0])
    counted, axis, rule = WORDS[measure]
    with theme():
        figure = new_figure(6.4, 1.5 + 0.22 * len(rows))
        axes = figure.subplots()
        fair = results.measures[measure].get("selection") == "crossfit"
        _dots(axes, rows, rule, "best head, chosen on other documents" if fair else "best head, chosen on the same documents", fair)
        axes.set_xlim(-0.02, 1.02)
        axes.set_xlabel(axis)
        figure.legend(loc="outside upper right", ncols=across(3), fontsize=pt(8))
        sign(figure, f"{max(rows['n']):,} {counted}", results.signature)
    return figure


def _dots(axes: Axes, rows: Table, rule_name: str, head_name: str, fair: bool) -> None:
    y = np.arange(len(rows))
    head, rule, light = hue(0), hue(1), grey(0.6)
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
    right.set_yticks(y, [_chosen(row["heads"], row["direction"]) for row in rows], fontsize=pt(7))
    right.tick_params(length=0)
    right.spines["right"].set_visible(False)


def _chosen(heads: str, direction: str) -> str:
    if not heads:
        return "cannot be split"
    return heads if narrow() else f"{heads}  {direction.replace('-to-', ' → ').replace(' | ', ', ')}"


def draw_table2(results: Results, kind: str | None = None, direction: str = DIRECTIONS[0]) -> Drawing:
    """A figure with one row per rule or way to choose a head and one panel per kind of mention. Our numbers and those
    of the paper, in percent, are beside each panel.

    `direction` is that of the heads: mention to antecedent, as in the paper, or the opposite.
    """
    if direction not in DIRECTIONS:
        raise RunError(f"direction is {direction!r}", f"Use {' or '.join(DIRECTIONS)}")
    if "coreference_systems" not in results:
        raise RunError("the run has no coreference_systems: an earlier version made it", "Run again with --measures coreference")
    table = results["coreference_systems"]
    kinds = list(dict.fromkeys(table["kind"]))
    if not kinds or (kind is not None and kind not in kinds):
        raise RunError(f"the run has no mentions scored for {kind or 'any'} attention", f"It has {', '.join(kinds) or 'none'}")
    cells = {(row["system"], row["label"]): row for row in table.where(kind=kind or kinds[0]) if row["direction"] in ("", direction)}
    shown = [label for label in KINDS if any(label == listed for _, listed in cells)]
    systems = [system for system in _NAMES if any(system == listed for listed, _ in cells)]
    with theme():
        side = max(1, min(len(shown), int((wide(2.0 + 2.1 * len(shown)) - 2.0) / 1.9)))  # panels of a row
        down = -(-len(shown) // side)
        figure = new_figure(2.0 + 2.1 * len(shown), 0.6 + (0.9 + 0.42 * len(systems)) * down)
        panels = figure.subplots(down, side, sharey=True, squeeze=False).flat
        for axes, label in zip(panels, shown, strict=False):
            _panel(axes, label, [cells.get((system, label)) for system in systems], systems)
        for axes in [*panels][len(shown) :]:
            axes.set_visible(False)
        first = figure.axes[0]
        towards = direction.replace("-to-", " → ")
        named = {**_NAMES, EACH: f"{_NAMES[EACH]}\n{towards}"}
        if (ONE, shown[0]) in cells:
            named[ONE] = f"{_NAMES[ONE]}: {cells[ONE, shown[0]]['heads']}\n{towards}"
        first.set_yticks(range(len(systems)), [named[system] for system in systems], fontsize=pt(8))
        first.set_ylim(len(systems) - 0.5, -1.1)
        first.plot([], [], "o-", color=hue(0), markersize=5, linewidth=1.6, label="ours, 95% interval")
        first.plot([], [], "D", color=hue(1), markerfacecolor="none", markersize=4.5, label="Clark et al. 2019, bert-base-uncased")
        figure.legend(loc="outside upper right", ncols=across(2), fontsize=pt(8))
        fair = results.measures["coreference"].get("selection") == "crossfit"
        chosen = f"Heads are chosen and scored on {'different' if fair else 'the same'} documents"
        sign(figure, f"{max(row['n'] for row in cells.values()):,} mentions. {chosen}", results.signature)
    return figure


def _panel(axes: Any, label: str, rows: Sequence[dict[str, Any] | None], systems: Sequence[str]) -> None:
    ours, paper = [], []
    for y, (row, system) in enumerate(zip(rows, systems, strict=True)):
        known = PUBLISHED[system][KINDS.index(label)] if system in PUBLISHED else None
        value, low, high = (100 * row[name] for name in ("value", "low", "high")) if row else (float("nan"),) * 3
        mark(axes, y, value, low, high, known)
        if row and system == EACH:
            axes.text(2, y + 0.3, row["heads"], fontsize=pt(6.5), color=grey(0.35), va="center")
        ours.append(percent(value))
        paper.append(percent(known))
    columns(axes, ours, paper)
    n = max((row["n"] for row in rows if row), default=0)
    axes.set_title(f"{label} ({n:,})", fontsize=pt(9), loc="left")
    axes.set_xlim(0, 100)
    axes.set_xticks([0, 50, 100])
    axes.set_xlabel("Antecedents found (%)", fontsize=pt(8))
    axes.tick_params(axis="y", length=0)
