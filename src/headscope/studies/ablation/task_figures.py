"""The same heads on several tasks (Michel et al. 2019, Figures 1 and 2): scores without each head, and whether the
same heads matter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from headscope.drawing.theme import COLOURS, sign, theme
from headscope.studies.ablation.summary import base_score
from headscope.studies.ablation.task_correlation import losses, named_studies, scores, task_correlations

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from headscope.results.results import Results
    from headscope.results.table import Table

    Values = Mapping[tuple[str, int, int], float]

_PAIRS = 3  # pairs of tasks that are drawn head by head
_DASHED = (0, (4, 3))


def draw(studies: Sequence[Results], change: bool = False) -> Figure:
    """One histogram per task, and below, for each pair of tasks, one point per head.

    Axes are scores without the head, with lines at the score of the whole model; with `change` the share of the
    score that is lost, in percent: above 0 the model is worse without the head.
    """
    from matplotlib.figure import Figure

    named = named_studies(studies)
    if change:
        tasks = {name: {place: 100 * value for place, value in lost.items()} for name, lost in losses(studies, relative=True).items()}
        wholes, labels = dict.fromkeys(named, 0.0), {name: f"{name}: lost without the head (%)" for name in named}
    else:
        tasks, wholes = scores(studies), {name: base_score(results) for name, results in named.items()}
        labels = {name: f"{name}: {results.manifest['settings']['score']} without the head" for name, results in named.items()}
    pairs = list(combinations(tasks, 2))[:_PAIRS]
    correlations = task_correlations(studies)
    with theme():
        figure = Figure(figsize=(max(6.8, 3.0 * len(pairs)), 1.25 * len(tasks) + 3.3), layout="constrained")
        halves: Any = figure.subfigures(2, 1, height_ratios=[1.25 * len(tasks) + 0.2, 3.0])
        rows = halves[0].subplots(len(tasks), 1, sharex=change, squeeze=False)[:, 0]
        for number, (axes, (name, values)) in enumerate(zip(rows, tasks.items(), strict=True)):
            axes.hist([*values.values()], bins=60, color=COLOURS[number % len(COLOURS)])
            axes.axvline(wholes[name], color="0.35", linewidth=1, linestyle=_DASHED)
            axes.set_yscale("symlog", linthresh=1)
            axes.set_yticks([0, 1, 10, 100], ["0", "1", "10", "100"])
            axes.set_ylabel("Heads")
            axes.set_xlabel(labels[name], fontsize=8)
            axes.tick_params(labelbottom=True)
        for axes, (first, second) in zip(halves[1].subplots(1, len(pairs), squeeze=False)[0], pairs, strict=True):
            _pair(axes, tasks[first], tasks[second])
            axes.axvline(wholes[first], color="0.35", linewidth=0.8, linestyle=_DASHED)
            axes.axhline(wholes[second], color="0.35", linewidth=0.8, linestyle=_DASHED)
            axes.set_xlabel(labels[first], fontsize=8)
            axes.set_ylabel(labels[second], fontsize=8)
            axes.set_title(_told(correlations.where(first=first, second=second, method="pearson")), fontsize=8)
        texts = ", ".join(f"{max(results['ablation']['n']):,}" for results in studies)
        note = "Dashed: the whole model. r: of what is lost without each head; p: by permutation"
        sign(figure, f"{texts} texts. {note}", "|".join(results.signature for results in studies))
    return figure


def _pair(axes: Axes, first: Values, second: Values) -> None:
    """Each head as a point, by kind of attention."""
    kinds = list(dict.fromkeys(kind for kind, _, _ in first))
    for number, kind in enumerate(kinds):
        heads = [place for place in first if place[0] == kind]
        x, y = [first[head] for head in heads], [second[head] for head in heads]
        axes.scatter(x, y, s=10, alpha=0.7, color=COLOURS[number], label=kind, linewidths=0)
    if len(kinds) > 1:
        axes.legend(fontsize=7)


def _told(correlations: Table) -> str:
    """Pearson's r with its p, for each kind of attention."""
    several = len(correlations) > 1
    return "\n".join(
        f"{row['kind'] + ': ' if several else ''}r = {row['value']:.2f}, " + (f"p = {row['p']:.3f}" if row["p"] >= 0.001 else "p < .001")
        for row in correlations
    )
