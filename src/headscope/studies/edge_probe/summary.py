"""A study by edge probing in one table, tasks by layer, with what Tenney et al. published for BERT-base."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from headscope.results.table import Table, interval
from headscope.stats.layers import centre_of_gravity, differential_divergence, divergence_from_even, expected_layer, trouble
from headscope.studies.edge_probe.task_results import TaskResults, over_seeds

# F1 of layer 0 and of all layers, expected layer, K. Centres of gravity and their K are known for some tasks.
PUBLISHED: Mapping[str, tuple[float, float, float, float]] = {
    "pos": (0.884, 0.965, 1.76, 1.72),
    "constituents": (0.752, 0.872, 2.38, 1.26),
    "deps": (0.852, 0.952, 2.52, 1.18),
    "entities": (0.899, 0.960, 2.42, 1.42),
    "srl": (0.795, 0.911, 2.59, 1.21),
    "coref": (0.800, 0.902, 3.62, 0.63),
    "spr": (0.778, 0.835, 4.29, 0.45),
    "relations": (0.589, 0.829, 4.16, 0.50),
}
COLUMNS = (
    *("task", "n", "documents", "embeddings", "all_layers", "expected_layer", "low", "high", "k_scores", "centre", "k_mix", "selectivity"),
    *("published_layer", "published_k", "published_centre"),
)
CENTRES: Mapping[str, tuple[float, float]] = {
    "coref": (7.96, 0.41),
    "deps": (6.55, 0.60),
    "entities": (6.86, 0.11),
    "constituents": (6.01, 0.43),
}


def task_table(every: Sequence[TaskResults]) -> Table:
    """`edge_tasks`: all numbers of each task, the lowest expected layer first; tasks without one last."""
    rows = [_row(results) for results in every]
    return ordered(Table.from_rows(rows))


def ordered(tasks: Table) -> Table:
    """Tasks in the order of their expected layers."""
    layers = tasks["expected_layer"]
    return Table(tasks.arrow.take(sorted(range(len(layers)), key=lambda place: (math.isnan(layers[place]), layers[place]))))


def summary(tasks: Table) -> Table:
    """`summary`: the main columns of `edge_tasks`."""
    return Table(tasks.arrow.select([name for name in COLUMNS if name in tasks.columns]))


def notes(every: Sequence[TaskResults]) -> list[str]:
    """Notes that a reader needs before trusting an expected layer."""
    lines = [f"{results.task.name}: {why}" for results in every if (why := doubt(results)) is not None]
    single = [results.task.name for results in every if len(results.task.documents) < 2]
    if single:
        lines.append(f"{', '.join(single)}: scored on one document, so intervals are over seeds alone")
    return lines


def gain(results: TaskResults) -> tuple[float, float, float]:
    """What all layers together add to the score of the embeddings, with its interval."""
    value = results.curve[-1] - results.curve[0]
    drawn = results.drawn[:, 0, [0, results.size - 1]] if results.replicates else results.curve[None, [0, -1]]
    low, high = results.interval(value, drawn[:, 1] - drawn[:, 0])
    return float(value), float(low), float(high)


def doubt(results: TaskResults) -> str | None:
    """Why the expected layer of a task is not interpretable, in words; None if it is interpretable."""
    value, low, high = gain(results)
    if (why := trouble(results.curve, results.negatives)) is not None or not low <= 0:
        return why
    return f"layers do not add significantly to the score ({interval(value, low, high)}), so the expected layer is not interpretable"


def linear_warnings(scores: Table) -> list[str]:
    """One warning per task in which the linear baseline of a layer beats a probe that sees the layer: the interval
    of the difference is below 0 or, if there is no interval, the difference is at least half a point.
    """
    beaten: dict[str, list[dict[str, Any]]] = {}
    for row in scores:
        bound = row["beyond_linear_high"]
        if bound < 0 or (math.isnan(bound) and row["beyond_linear"] <= -0.005):
            beaten.setdefault(row["task"], []).append(row)
    return [f"{task}: {_beaten(rows)}" for task, rows in beaten.items()]


def _beaten(rows: Sequence[Mapping[str, Any]]) -> str:
    layers: dict[str, list[str]] = {}
    for row in rows:
        layers.setdefault(row["probe"], []).append(str(row["layer"]))
    probes = "; ".join(f"{kind}: layer{'s' * (len(some) > 1)} {', '.join(some)}" for kind, some in layers.items())
    most = -100 * min(row["beyond_linear"] for row in rows)
    return (
        f"a logistic regression on one layer scores up to {most:.1f} points more than the probe ({probes}). "
        "These probes were not trained well enough: use more texts (--limit) or train for longer (--checks)"
    )


def _row(results: TaskResults) -> dict[str, Any]:
    task, size = results.task, results.size
    weights = results.weights.mean(0)
    layers = expected_layer(results.drawn[:, 0, :size], results.negatives) if results.replicates else expected_layer(results.curve[None])
    low, high = results.interval(expected_layer(results.curve[None], results.negatives)[0], layers)
    centre_low, centre_high = over_seeds(results, centre_of_gravity(results.weights))
    control = results.scores[1, size - 1] if results.scores.shape[0] > 1 else math.nan
    published, centre = PUBLISHED.get(task.name), CENTRES.get(task.name)
    return {
        "task": task.name,
        "labels": len(task.labels),
        "trained": len(task.parts["train"]),
        "n": len(task.parts["dev"]),
        "documents": len(task.documents),
        "embeddings": float(results.curve[0]),
        "all_layers": float(results.curve[-1]),
        **dict(zip(("gain", "gain_low", "gain_high"), gain(results), strict=True)),
        "expected_layer": float(expected_layer(results.curve, results.negatives)),
        "low": float(low),
        "high": float(high),
        "doubt": doubt(results),
        "k_scores": float(differential_divergence(results.curve)),
        "centre": float(centre_of_gravity(weights)),
        "centre_low": float(centre_low),
        "centre_high": float(centre_high),
        "k_mix": float(divergence_from_even(weights)),
        "control": float(control),
        "selectivity": float(results.curve[-1] - control),
        "published_layer": published[2] if published else None,
        "published_k": published[3] if published else None,
        "published_centre": centre[0] if centre else None,
        "published": f"{published[0]:.3f} to {published[1]:.3f}" if published else None,
    }
