"""Tables of a study by edge probing, from what the probes of all seeds decided, document by document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headscope.probes.edge.examples import Turn, marked, settled, shown_labels, turn, verdict
from headscope.probes.edge.found import Found, over_seeds
from headscope.runs.table import Table
from headscope.stats.layers import centre_of_gravity, differential_divergence, divergence_from_even, expected_layer


def score_table(every: Sequence[Found]) -> Table:
    """`edge_scores`: each probe's score; what its layer adds; the scores of the control and of the linear baseline in its (last) layer,
    and the differences from them.
    """
    rows: list[dict[str, Any]] = []
    for found in every:
        low, high = found.interval(found.scores, found.drawn)
        steps, drawn = np.diff(found.curve), np.diff(found.drawn[:, 0, : found.size])
        step_low, step_high = found.interval(steps, drawn)
        control = found.scores.shape[0] > 1
        if control:
            apart = found.interval(found.scores[0] - found.scores[1], found.drawn[:, 0] - found.drawn[:, 1])
        layers = [layer for _, layer in found.job.kinds]
        beyond = found.interval(found.scores[0] - found.linear_scores[layers], found.drawn[:, 0] - found.linear_drawn[:, layers])
        for place, (kind, layer) in enumerate(found.job.kinds):
            adds = kind == "cumulative" and layer > 0
            score = float(found.scores[0, place])
            other = float(found.scores[1, place]) if control else np.nan
            rows.append(
                {
                    "task": found.job.task,
                    "probe": kind,
                    "layer": layer,
                    "score": score,
                    "low": float(low[0, place]),
                    "high": float(high[0, place]),
                    "adds": float(steps[layer - 1]) if adds else np.nan,
                    "adds_low": float(step_low[layer - 1]) if adds else np.nan,
                    "adds_high": float(step_high[layer - 1]) if adds else np.nan,
                    "control": other,
                    "selectivity": score - other,
                    "selectivity_low": float(apart[0][place]) if control else np.nan,
                    "selectivity_high": float(apart[1][place]) if control else np.nan,
                    "linear": float(found.linear_scores[layer]),
                    "beyond_linear": score - float(found.linear_scores[layer]),
                    "beyond_linear_low": float(beyond[0][place]),
                    "beyond_linear_high": float(beyond[1][place]),
                    "n": len(found.job.parts["dev"]),
                    "documents": len(found.job.documents),
                    "seeds": len(found.seeds),
                }
            )
    return _table(rows)


def mix_table(every: Sequence[Found]) -> Table:
    """`edge_mix`: how much of each layer is in the mix of the probe that sees all; intervals are over seeds alone."""
    rows = []
    for found in every:
        low, high = over_seeds(found, found.weights)
        for layer, weight in enumerate(found.weights.mean(0)):
            rows.append({"task": found.job.task, "layer": layer, "weight": weight, "low": low[layer], "high": high[layer]})
    return _table(rows)


def seed_table(every: Sequence[Found]) -> Table:
    """`edge_seeds`: the same statistics for the probes of each seed, so that one sees how much they vary."""
    rows = []
    for found in every:
        for number, seed in enumerate(found.seeds):
            curve, weights = found.each[number, 0, : found.size], found.weights[number]
            rows.append(
                {
                    "task": found.job.task,
                    "seed": seed,
                    "embeddings": curve[0],
                    "all_layers": curve[-1],
                    "expected_layer": expected_layer(curve, found.negatives),
                    "k_scores": differential_divergence(curve),
                    "centre": centre_of_gravity(weights),
                    "k_mix": divergence_from_even(weights),
                    "steps": int(found.steps[number, 0, found.size - 1]),
                }
            )
    return _table(rows)


def example_tables(every: Sequence[Found], examples: int) -> tuple[Table, Table]:
    """`edge_examples`: targets whose decision turns most clearly, and those of texts to be shown; `edge_beliefs`: what is believed of
    them with each layer more, mean over seeds.
    """
    rows: list[dict[str, Any]] = []
    beliefs: list[dict[str, Any]] = []
    for found in every:
        believed = found.beliefs.mean(0).swapaxes(0, 1)
        for number, (place, kind, turned) in enumerate(_chosen(found, believed, examples), 1):
            row, own = _example(found, number, place, kind, turned, believed[place])
            rows.append(row)
            beliefs += own
    blank = {name: np.array([], dtype=kind) for name, kind in (("task", str), ("example", int), ("layer", int), ("belief", float))}
    return (_table(rows), _table(beliefs)) if rows else (Table.of(blank), Table.of(blank))


def _chosen(found: Found, believed: np.ndarray, examples: int) -> list[tuple[int, str, Turn]]:
    """The targets to tell of: those of texts that are to be shown, and of the others those that turn most clearly."""
    job = found.job
    turns = [turn(own, job.names, job.several) for own in believed]
    given = [place for place, text in enumerate(job.shown.texts) if text in job.texts.look]
    rest = sorted(set(range(len(turns))) - set(given), key=lambda place: (-turns[place].margin, place))
    best = [place for place in rest if turns[place].margin > 0][:examples]
    return [(place, "given", turns[place]) for place in given] + [(place, "found", turns[place]) for place in best]


def _example(
    found: Found, number: int, place: int, kind: str, turned: Turn, believed: np.ndarray
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    job = found.job
    edge, text = job.shown.edges[place], job.texts.texts[int(job.shown.texts[place])]
    turns = turned.margin > 0
    row = {
        "task": job.task,
        "example": number,
        "kind": kind,
        "text": marked(text, edge),
        "gold": " ".join(edge.labels),
        "turn": verdict(turned, edge.labels, job.several) if turns else "none",
        "before": turned.before if turns else None,
        "before_layer": turned.first if turns else None,
        "after": turned.after if turns else None,
        "after_layer": turned.last if turns else None,
        "margin": max(turned.margin, 0.0),
        "settled": settled(believed, job.several),
        "document": text.document,
        "id": text.id,
    }
    shown = shown_labels(believed, job.shown.labels[place], turned, job.names)
    own = [
        {
            "task": job.task,
            "example": number,
            "label": job.names[label],
            "gold": bool(job.shown.labels[place, label]),
            "layer": layer,
            "belief": float(value),
        }
        for label in shown
        for layer, value in enumerate(believed[:, label])
    ]
    return row, own


def _table(rows: Sequence[dict[str, Any]]) -> Table:
    return Table.of({name: [row[name] for row in rows] for name in rows[0]})
