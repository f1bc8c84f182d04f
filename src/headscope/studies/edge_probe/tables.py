"""Tables of a study by edge probing, from what the probes of all seeds decided, document by document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headscope.results.table import Table
from headscope.stats.layers import centre_of_gravity, differential_divergence, divergence_from_even, expected_layer
from headscope.studies.edge_probe.examples import Turn, marked, settled, shown_labels, turn, verdict
from headscope.studies.edge_probe.task_results import Found, over_seeds


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
    believed = [found.beliefs.mean(0).swapaxes(0, 1) for found in every]
    turns = [[turn(own, found.job.names, found.job.several) for own in each] for found, each in zip(every, believed, strict=True)]
    sentence = _sentence(every, turns)
    for found, each, turned in zip(every, believed, turns, strict=True):
        for number, (place, kind) in enumerate(_chosen(found, turned, sentence, examples), 1):
            row, own = _example(found, number, place, kind, turned[place], each[place])
            rows.append(row)
            beliefs += own
    blank = {name: np.array([], dtype=kind) for name, kind in (("task", str), ("example", int), ("layer", int), ("belief", float))}
    return (_table(rows), _table(beliefs)) if rows else (Table.of(blank), Table.of(blank))


def _sentence(every: Sequence[Found], turns: Sequence[Sequence[Turn]]) -> int | None:
    """The text in which decisions of the most tasks turn, of several the one with the clearest turns; None if none has two tasks."""
    margins: dict[int, dict[int, float]] = {}
    for task, (found, turned) in enumerate(zip(every, turns, strict=True)):
        for text, one in zip(found.job.shown.texts, turned, strict=True):
            own = margins.setdefault(int(text), {})
            own[task] = max(own.get(task, 0.0), one.margin)
    scored = [(sum(margin > 0 for margin in own.values()), sum(own.values()), -text) for text, own in margins.items()]
    tasks, _, text = max(scored, default=(0, 0.0, 0))
    return -text if tasks > 1 else None


def _chosen(found: Found, turns: Sequence[Turn], sentence: int | None, examples: int) -> list[tuple[int, str]]:
    """The targets to tell of: those of texts that are to be shown (`given`), the clearest one of the sentence that is shown for several
    tasks (`sentence`), and of the others those that turn most clearly (`found`).
    """
    job = found.job
    turning = sorted((place for place, one in enumerate(turns) if one.margin > 0), key=lambda place: (-turns[place].margin, place))
    given = [place for place, text in enumerate(job.shown.texts) if text in job.texts.look]
    shared = [place for place in turning if int(job.shown.texts[place]) == sentence and place not in given][: min(1, examples)]
    best = [place for place in turning if place not in {*given, *shared}][:examples]
    kinds = {"given": given, "sentence": shared, "found": best}
    return [(place, kind) for kind, places in kinds.items() for place in places]


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
