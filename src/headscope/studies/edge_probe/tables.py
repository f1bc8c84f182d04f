"""Tables of a study by edge probing, and the examples whose decision changes between layers (Figure 3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.core.document import Edge
from headscope.encoding.texts import Encoded
from headscope.results.table import Table
from headscope.stats.layers import centre_of_gravity, differential_divergence, divergence_from_even, expected_layer
from headscope.studies.edge_probe.task_results import TaskResults, over_seeds

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Float64

SHOWN, WORTH = 4, 0.1  # labels shown per example, and the least probability of a label that is shown although it is not true
AROUND = 10  # words shown before and after spans


@dataclass(frozen=True)
class Turn:
    """A decision that changes: `before` leads at layer `first` and `after` at layer `last`, both by `margin` or more.

    If a target can have several labels, a label is compared with its absence: `before` or `after` is then "not ...".
    """

    margin: float
    before: str
    after: str
    first: int
    last: int


def turn(beliefs: Float[np.ndarray, "layer label"], names: Sequence[str], several: bool = False) -> Turn:
    """The clearest change of a decision from one layer to a later one; there is none if the margin is 0 or less."""
    belief = np.asarray(beliefs, dtype=np.float64)
    if several:
        lead: Float64[np.ndarray, "layer choice"] = np.concatenate([belief - 0.5, 0.5 - belief], axis=1)
        back = -lead
        pairs = [(name, f"not {name}") for name in names] + [(f"not {name}", name) for name in names]
    else:
        ahead = belief[:, :, None] - belief[:, None, :]
        ahead[:, np.arange(len(names)), np.arange(len(names))] = -np.inf
        lead, back = ahead.reshape(len(belief), -1), ahead.swapaxes(1, 2).reshape(len(belief), -1)
        pairs = [(first, second) for first in names for second in names]
    so_far = np.maximum.accumulate(lead[:-1])
    both = np.minimum(so_far, back[1:])
    last, choice = np.unravel_index(int(both.argmax()), both.shape)
    first = int(lead[: last + 1, choice].argmax())
    return Turn(float(both[last, choice]), *pairs[int(choice)], first, int(last) + 1)


def verdict(turned: Turn, gold: Sequence[str], several: bool = False) -> str:
    """The effect of the change: `corrected`, `spoiled`, or `changed` from one wrong label to another."""
    if several:
        right = [(name in gold) if not name.startswith("not ") else (name[4:] not in gold) for name in (turned.before, turned.after)]
    else:
        right = [name in gold for name in (turned.before, turned.after)]
    return "corrected" if right[1] and not right[0] else "spoiled" if right[0] and not right[1] else "changed"


def settled(beliefs: Float[np.ndarray, "layer label"], several: bool = False) -> int:
    """The layer from which the decision equals the final one."""
    decided = (beliefs >= 0.5) if several else beliefs.argmax(1)[:, None]
    same = (decided == decided[-1]).all(1)
    return int(len(same) - np.argmin(same[::-1])) if not same.all() else 0


def shown_labels(
    beliefs: Float[np.ndarray, "layer label"], gold: Bool[np.ndarray, "label"], turned: Turn, names: Sequence[str]
) -> list[int]:
    """The labels to show: those of the change, the true ones, and those with the highest probabilities in any layer."""
    labels = [name.removeprefix("not ") if name not in names else name for name in (turned.before, turned.after)]
    wanted = [names.index(name) for name in labels if name in names]
    wanted += np.flatnonzero(gold).tolist()
    highest = beliefs.max(0)
    wanted += [label for label in np.argsort(-highest, kind="stable").tolist() if highest[label] >= WORTH]
    return list(dict.fromkeys(wanted))[:SHOWN]


def marked(text: Encoded, edge: Edge) -> str:
    """The words around the spans of a target, with the spans in brackets; the spans of a pair are numbered."""
    spans = [edge.first] if edge.second is None else [edge.first, edge.second]
    near = {place for start, end in spans for place in range(start - AROUND, end + AROUND) if 0 <= place < len(text.words)}
    words = []
    for place in sorted(near):
        if place and place - 1 not in near:
            words.append("…")
        word = text.words[place].form
        for number, span in enumerate(spans, 1):
            word = "[" * (span[0] == place) + word + (f"]{number if len(spans) > 1 else ''}" if span[1] - 1 == place else "")
        words.append(word)
    return " ".join(words) + " …" * (len(text.words) - 1 not in near)


def score_table(every: Sequence[TaskResults]) -> Table:
    """`edge_scores`: each probe's score; what its layer adds; the scores of the control and of the linear baseline in
    its last layer, and the differences from them.
    """
    rows: list[dict[str, Any]] = []
    for results in every:
        low, high = results.interval(results.scores, results.drawn)
        steps, drawn = np.diff(results.curve), np.diff(results.drawn[:, 0, : results.size])
        step_low, step_high = results.interval(steps, drawn)
        control = results.scores.shape[0] > 1
        if control:
            apart = results.interval(results.scores[0] - results.scores[1], results.drawn[:, 0] - results.drawn[:, 1])
        layers = [layer for _, layer in results.task.kinds]
        beyond = results.interval(results.scores[0] - results.linear_scores[layers], results.drawn[:, 0] - results.linear_drawn[:, layers])
        for place, (kind, layer) in enumerate(results.task.kinds):
            adds = kind == "cumulative" and layer > 0
            score = float(results.scores[0, place])
            control_score = float(results.scores[1, place]) if control else np.nan
            rows.append(
                {
                    "task": results.task.name,
                    "probe": kind,
                    "layer": layer,
                    "score": score,
                    "low": float(low[0, place]),
                    "high": float(high[0, place]),
                    "adds": float(steps[layer - 1]) if adds else np.nan,
                    "adds_low": float(step_low[layer - 1]) if adds else np.nan,
                    "adds_high": float(step_high[layer - 1]) if adds else np.nan,
                    "control": control_score,
                    "selectivity": score - control_score,
                    "selectivity_low": float(apart[0][place]) if control else np.nan,
                    "selectivity_high": float(apart[1][place]) if control else np.nan,
                    "linear": float(results.linear_scores[layer]),
                    "beyond_linear": score - float(results.linear_scores[layer]),
                    "beyond_linear_low": float(beyond[0][place]),
                    "beyond_linear_high": float(beyond[1][place]),
                    "n": len(results.task.parts["dev"]),
                    "documents": len(results.task.documents),
                    "seeds": len(results.seeds),
                }
            )
    return Table.from_rows(rows)


def mix_table(every: Sequence[TaskResults]) -> Table:
    """`edge_mix`: the share of each layer in the mix of the probe that sees all; intervals are over seeds alone."""
    rows = []
    for results in every:
        low, high = over_seeds(results, results.weights)
        for layer, weight in enumerate(results.weights.mean(0)):
            rows.append({"task": results.task.name, "layer": layer, "weight": weight, "low": low[layer], "high": high[layer]})
    return Table.from_rows(rows)


def seed_table(every: Sequence[TaskResults]) -> Table:
    """`edge_seeds`: the statistics of a task for each seed separately, which show how much they vary."""
    rows = []
    for results in every:
        for number, seed in enumerate(results.seeds):
            curve, weights = results.each[number, 0, : results.size], results.weights[number]
            rows.append(
                {
                    "task": results.task.name,
                    "seed": seed,
                    "embeddings": curve[0],
                    "all_layers": curve[-1],
                    "expected_layer": expected_layer(curve, results.negatives),
                    "k_scores": differential_divergence(curve),
                    "centre": centre_of_gravity(weights),
                    "k_mix": divergence_from_even(weights),
                    "steps": int(results.steps[number, 0, results.size - 1]),
                }
            )
    return Table.from_rows(rows)


def example_tables(every: Sequence[TaskResults], examples: int) -> tuple[Table, Table]:
    """`edge_examples`: targets whose decision changes most clearly, and those of the texts to show. `edge_beliefs`: the
    probabilities of their labels as layers are added, means over seeds.
    """
    rows: list[dict[str, Any]] = []
    beliefs: list[dict[str, Any]] = []
    believed = [results.beliefs.mean(0).swapaxes(0, 1) for results in every]
    turns = [
        [turn(belief, results.task.labels, results.task.several) for belief in each] for results, each in zip(every, believed, strict=True)
    ]
    sentence = _sentence(every, turns)
    for results, each, turned in zip(every, believed, turns, strict=True):
        for number, (place, kind) in enumerate(_chosen(results, turned, sentence, examples), 1):
            row, belief_rows = _example(results, number, place, kind, turned[place], each[place])
            rows.append(row)
            beliefs += belief_rows
    blank = {name: np.array([], dtype=kind) for name, kind in (("task", str), ("example", int), ("layer", int), ("belief", float))}
    return (Table.from_rows(rows), Table.from_rows(beliefs)) if rows else (Table.of(blank), Table.of(blank))


def _sentence(every: Sequence[TaskResults], turns: Sequence[Sequence[Turn]]) -> int | None:
    """The text in which the decisions of the most tasks change, the clearest of equal ones; None if it has only one."""
    margins: dict[int, dict[int, float]] = {}
    for task, (results, turned) in enumerate(zip(every, turns, strict=True)):
        for text, turn_of_target in zip(results.task.shown.texts, turned, strict=True):
            of_text = margins.setdefault(int(text), {})
            of_text[task] = max(of_text.get(task, 0.0), turn_of_target.margin)
    scored = [(sum(margin > 0 for margin in of_text.values()), sum(of_text.values()), -text) for text, of_text in margins.items()]
    tasks, _, text = max(scored, default=(0, 0.0, 0))
    return -text if tasks > 1 else None


def _chosen(results: TaskResults, turns: Sequence[Turn], sentence: int | None, examples: int) -> list[tuple[int, str]]:
    """The targets to show: those of the texts to show (`given`), the clearest one of the sentence that is shown for
    several tasks (`sentence`), and the others with the clearest changes (`found`).
    """
    task = results.task
    turning = sorted((place for place, turned in enumerate(turns) if turned.margin > 0), key=lambda place: (-turns[place].margin, place))
    to_look_at = [place for place, text in enumerate(task.shown.texts) if text in task.texts.look]
    shared = [place for place in turning if int(task.shown.texts[place]) == sentence and place not in to_look_at][: min(1, examples)]
    best = [place for place in turning if place not in {*to_look_at, *shared}][:examples]
    kinds = {"given": to_look_at, "sentence": shared, "found": best}
    return [(place, kind) for kind, places in kinds.items() for place in places]


def _example(
    results: TaskResults, number: int, place: int, kind: str, turned: Turn, believed: np.ndarray
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    task = results.task
    edge, text = task.shown.edges[place], task.texts.texts[int(task.shown.texts[place])]
    turns = turned.margin > 0
    row = {
        "task": task.name,
        "example": number,
        "kind": kind,
        "text": marked(text, edge),
        "gold": " ".join(edge.labels),
        "turn": verdict(turned, edge.labels, task.several) if turns else "none",
        "before": turned.before if turns else None,
        "before_layer": turned.first if turns else None,
        "after": turned.after if turns else None,
        "after_layer": turned.last if turns else None,
        "margin": max(turned.margin, 0.0),
        "settled": settled(believed, task.several),
        "document": text.document,
        "id": text.id,
    }
    shown = shown_labels(believed, task.shown.labels[place], turned, task.labels)
    belief_rows = [
        {
            "task": task.name,
            "example": number,
            "label": task.labels[label],
            "gold": bool(task.shown.labels[place, label]),
            "layer": layer,
            "belief": float(value),
        }
        for label in shown
        for layer, value in enumerate(believed[:, label])
    ]
    return row, belief_rows
