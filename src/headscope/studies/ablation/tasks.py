"""Do several tasks need the same heads? (Michel et al. 2019, §3.4, Figures 1 and 2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.drawing.look import grey, hue, pt
from headscope.drawing.theme import new_figure, sign, theme
from headscope.errors import RunError
from headscope.results.table import Table
from headscope.stats.correlation import pearson, spearman
from headscope.studies.ablation.findings import LOWER, base_score

if TYPE_CHECKING:
    from jaxtyping import Float64
    from matplotlib.axes import Axes

    from headscope.drawing.figure import Drawing
    from headscope.results.results import Results

    Place = tuple[str, int, int]
    Values = Mapping[tuple[str, int, int], float]

_PAIRS = 3  # pairs of tasks that are drawn head by head
_DASHED = (0, (4, 3))


def task_correlations(studies: Sequence[Results]) -> Table:
    """Correlation of the loss without each head between two studies, for all pairs of studies and by kind of attention:
    above 0, both need the same heads.

    `p` is that of a permutation test, which permutes the heads' losses.
    """
    tasks = losses(studies)
    kinds = dict.fromkeys(kind for kind, _, _ in next(iter(tasks.values())))
    rows: list[dict[str, Any]] = []
    for (first, lost), (second, also_lost) in combinations(tasks.items(), 2):
        for kind in kinds:
            values, others = (np.array([side[place] for place in lost if place[0] == kind]) for side in (lost, also_lost))
            for method, correlate in (("pearson", pearson), ("spearman", spearman)):
                value, n = correlate(values, others)
                numbers = {"value": float(value), "p": _permuted(values, others, correlate), "n": int(n)}
                rows.append({"first": first, "second": second, "kind": kind, "method": method, **numbers})
    return Table.from_rows(rows)


def losses(studies: Sequence[Results], relative: bool = False) -> dict[str, dict[Place, float]]:
    """By study, the loss without each head (above 0 is worse); if `relative`, as a share of the score."""
    lost = {}
    for name, results in named_studies(studies).items():
        sign = 1 if results.manifest["settings"]["score"] in LOWER else -1
        share = abs(base_score(results)) if relative else 1
        if not share:
            raise RunError(f"the score of {name} is 0, so nothing can be lost", "Show scores instead of losses")
        lost[name] = {_place(row): sign * row["difference"] / share for row in results["ablation"]}
    return lost


def scores(studies: Sequence[Results]) -> dict[str, dict[Place, float]]:
    """By study, the score without each head."""
    return {name: {_place(row): row["score"] for row in results["ablation"]} for name, results in named_studies(studies).items()}


def named_studies(studies: Sequence[Results]) -> dict[str, Results]:
    """Studies of the same heads by name: the name of the folder, numbered if two are equal."""
    for results in studies:
        if results.study != "ablation" or "ablation" not in results:
            raise RunError(f"{results.path} does not have the score without each head", "Make a study with headscope ablate --parts heads")
    if len({frozenset(map(_place, results["ablation"])) for results in studies}) > 1:
        raise RunError("the studies are of models with different heads", "Compare tasks of one model, or of models fine-tuned from one")
    names = [results.path.name if results.path is not None else "study" for results in studies]
    unique = [name if names.count(name) == 1 else f"{name} ({number})" for number, name in enumerate(names, 1)]
    return dict(zip(unique, studies, strict=True))


def _place(row: Mapping[str, Any]) -> Place:
    return row["kind"], row["layer"], row["head"]


def _permuted(values: Float64[np.ndarray, "head"], others: Float64[np.ndarray, "head"], correlate: Any, times: int = 9999) -> float:
    """The p of a two-sided permutation test: how often randomly permuted heads have a correlation as large in size."""
    rng = np.random.default_rng(0)
    correlation = abs(float(correlate(values, others)[0]))
    shuffled = np.stack([rng.permutation(others) for _ in range(times)])
    chance = np.abs(correlate(np.broadcast_to(values, shuffled.shape), shuffled)[0])
    return float((1 + (chance >= correlation - 1e-12).sum()) / (times + 1))


def draw_tasks(studies: Sequence[Results], change: bool = False) -> Drawing:
    """A figure with one histogram per task and, for each pair of tasks, one point per head.

    The axes show the score without the head, with lines at the score of the whole model. With `change` they show the
    share of the score that is lost, in percent: above 0 the model is worse without the head.
    """
    named = named_studies(studies)
    if change:
        tasks = {name: {place: 100 * value for place, value in lost.items()} for name, lost in losses(studies, relative=True).items()}
        wholes, labels = dict.fromkeys(named, 0.0), {name: f"{name}: loss without the head (%)" for name in named}
    else:
        tasks, wholes = scores(studies), {name: base_score(results) for name, results in named.items()}
        labels = {name: f"{name}: {results.manifest['settings']['score']} without the head" for name, results in named.items()}
    pairs = list(combinations(tasks, 2))[:_PAIRS]
    correlations = task_correlations(studies)
    with theme():
        figure = new_figure(max(6.8, 3.0 * len(pairs)), 1.25 * len(tasks) + 3.3)
        halves: Any = figure.subfigures(2, 1, height_ratios=[1.25 * len(tasks) + 0.2, 3.0])
        rows = halves[0].subplots(len(tasks), 1, sharex=change, squeeze=False)[:, 0]
        for number, (axes, (name, values)) in enumerate(zip(rows, tasks.items(), strict=True)):
            axes.hist([*values.values()], bins=60, color=hue(number))
            axes.axvline(wholes[name], color=grey(0.35), linewidth=1, linestyle=_DASHED)
            axes.set_yscale("symlog", linthresh=1)
            axes.set_yticks([0, 1, 10, 100], ["0", "1", "10", "100"])
            axes.set_ylabel("Heads")
            axes.set_xlabel(labels[name], fontsize=pt(8))
            axes.tick_params(labelbottom=True)
        for axes, (first, second) in zip(halves[1].subplots(1, len(pairs), squeeze=False)[0], pairs, strict=True):
            _pair(axes, tasks[first], tasks[second])
            axes.axvline(wholes[first], color=grey(0.35), linewidth=0.8, linestyle=_DASHED)
            axes.axhline(wholes[second], color=grey(0.35), linewidth=0.8, linestyle=_DASHED)
            axes.set_xlabel(labels[first], fontsize=pt(8))
            axes.set_ylabel(labels[second], fontsize=pt(8))
            axes.set_title(_correlations_text(correlations.where(first=first, second=second, method="pearson")), fontsize=pt(8))
        texts = ", ".join(f"{max(results['ablation']['n']):,}" for results in studies)
        note = "Dashed: the whole model. r: correlation of the losses without each head; p: by permutation"
        sign(figure, f"{texts} texts. {note}", "|".join(results.signature for results in studies))
    return figure


def _pair(axes: Axes, first: Values, second: Values) -> None:
    """Each head as a point, by kind of attention."""
    kinds = list(dict.fromkeys(kind for kind, _, _ in first))
    for number, kind in enumerate(kinds):
        heads = [place for place in first if place[0] == kind]
        x, y = [first[head] for head in heads], [second[head] for head in heads]
        axes.scatter(x, y, s=10, alpha=0.7, color=hue(number), label=kind, linewidths=0)
    if len(kinds) > 1:
        axes.legend(fontsize=pt(7))


def _correlations_text(correlations: Table) -> str:
    """Pearson's r with its p, for each kind of attention."""
    several = len(correlations) > 1
    return "\n".join(
        f"{row['kind'] + ': ' if several else ''}r = {row['value']:.2f}, " + (f"p = {row['p']:.3f}" if row["p"] >= 0.001 else "p < .001")
        for row in correlations
    )
