"""A study by edge probing in one table, tasks in the order of their layers, beside what Tenney et al. published for BERT-base."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from headscope.results.table import Table, interval
from headscope.stats.layers import centre_of_gravity, differential_divergence, divergence_from_even, expected_layer, trouble
from headscope.studies.edge_probe.task_results import Found, over_seeds

# F1 of layer 0 and of all layers, expected layer, K; METHODS §8.3. Centres of gravity and their K are known for some.
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


def task_table(every: Sequence[Found]) -> Table:
    """`edge_tasks`: all that is known of each task, the lowest expected layer first; tasks without one last."""
    rows = [_row(found) for found in every]
    return ordered(Table.of({name: [row[name] for row in rows] for name in rows[0]}))


def ordered(tasks: Table) -> Table:
    """Tasks in the order of their layers."""
    layers = tasks["expected_layer"]
    return Table(tasks.arrow.take(sorted(range(len(layers)), key=lambda place: (math.isnan(layers[place]), layers[place]))))


def summary(tasks: Table) -> Table:
    """`summary`: the columns of `edge_tasks` that a reader wants first."""
    return Table(tasks.arrow.select([name for name in COLUMNS if name in tasks.columns]))


def notes(every: Sequence[Found]) -> list[str]:
    """What a reader should know before he trusts an expected layer."""
    found = [f"{one.job.task}: {why}" for one in every if (why := doubt(one)) is not None]
    single = [one.job.task for one in every if len(one.job.documents) < 2]
    if single:
        found.append(f"{', '.join(single)}: scored on one document, so that intervals are over seeds alone")
    return found


def gain(found: Found) -> tuple[float, float, float]:
    """What all layers together add to the score of the embeddings, with its interval."""
    value = found.curve[-1] - found.curve[0]
    drawn = found.drawn[:, 0, [0, found.size - 1]] if found.replicates else found.curve[None, [0, -1]]
    low, high = found.interval(value, drawn[:, 1] - drawn[:, 0])
    return float(value), float(low), float(high)


def doubt(found: Found) -> str | None:
    """Why the expected layer of a task means nothing, in words; None where nothing speaks against it."""
    value, low, high = gain(found)
    if (why := trouble(found.curve, found.negatives)) is not None or not low <= 0:
        return why
    return f"layers add {interval(value, low, high)} to the score, which is not clear of 0, so that the expected layer means nothing"


def linear_warnings(scores: Table) -> list[str]:
    """One warning per task in which the linear baseline of a layer beats a probe that sees the layer: the interval of the difference is
    below 0 or, where it has no interval, the difference is at least half a point.
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
    probes = "; ".join(f"{kind}: layer{'s' * (len(own) > 1)} {', '.join(own)}" for kind, own in layers.items())
    most = -100 * min(row["beyond_linear"] for row in rows)
    return (
        f"a logistic regression on one layer scores up to {most:.1f} points more than the probe ({probes}). "
        "These probes were not trained well enough: use more texts (--limit) or train for longer (--checks)"
    )


def _row(found: Found) -> dict[str, Any]:
    job, size = found.job, found.size
    weights = found.weights.mean(0)
    layers = expected_layer(found.drawn[:, 0, :size], found.negatives) if found.replicates else expected_layer(found.curve[None])
    low, high = found.interval(expected_layer(found.curve[None], found.negatives)[0], layers)
    centre_low, centre_high = over_seeds(found, centre_of_gravity(found.weights))
    control = found.scores[1, size - 1] if found.scores.shape[0] > 1 else math.nan
    published, centre = PUBLISHED.get(job.task), CENTRES.get(job.task)
    return {
        "task": job.task,
        "labels": len(job.names),
        "trained": len(job.parts["train"]),
        "n": len(job.parts["dev"]),
        "documents": len(job.documents),
        "embeddings": float(found.curve[0]),
        "all_layers": float(found.curve[-1]),
        **dict(zip(("gain", "gain_low", "gain_high"), gain(found), strict=True)),
        "expected_layer": float(expected_layer(found.curve, found.negatives)),
        "low": float(low),
        "high": float(high),
        "doubt": doubt(found),
        "k_scores": float(differential_divergence(found.curve)),
        "centre": float(centre_of_gravity(weights)),
        "centre_low": float(centre_low),
        "centre_high": float(centre_high),
        "k_mix": float(divergence_from_even(weights)),
        "control": float(control),
        "selectivity": float(found.curve[-1] - control),
        "published_layer": published[2] if published else None,
        "published_k": published[3] if published else None,
        "published_centre": centre[0] if centre else None,
        "published": f"{published[0]:.3f} to {published[1]:.3f}" if published else None,
    }
