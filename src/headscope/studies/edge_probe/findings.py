"""Findings of a study by edge probing, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from headscope.results.table import Table, interval


def sentences(tables: Mapping[str, Table]) -> list[str]:
    """The order of tasks, the gain from layers, the control, and examples, as sentences."""
    rows = list(tables["edge_tasks"])
    return [*_order(rows), *map(_task, rows), *_control(rows), *_turns(tables)]


def _order(rows: list[dict[str, Any]]) -> Iterator[str]:
    known = [row for row in rows if not math.isnan(row["expected_layer"]) and not row.get("doubt")]
    if len(known) > 1:
        yield f"Tasks from the lowest expected layer to the highest: {', '.join(row['task'] for row in known)}."


def _task(row: Mapping[str, Any]) -> str:
    layer = interval(row["expected_layer"], row["low"], row["high"]) + (" (not interpretable)" if row.get("doubt") else "")
    wording = f"{row['task']}: F1 is {row['embeddings']:.3f} with the embeddings and {row['all_layers']:.3f} with all layers"
    return f"{wording}; the expected layer is {layer}, the centre of gravity {row['centre']:.2f} (n = {row['n']:,})."


def _control(rows: list[dict[str, Any]]) -> Iterator[str]:
    tried = [row for row in rows if not math.isnan(row["control"])]
    if tried:
        wording = ", ".join(f"{row['task']} {row['selectivity']:+.2f}" for row in tried)
        yield f"Selectivity (F1 with all layers minus F1 on random labels): {wording}."


def _turns(tables: Mapping[str, Table]) -> Iterator[str]:
    table = tables["edge_examples"]
    if "turn" not in table.columns:
        return
    for task in dict.fromkeys(table["task"]):
        rows = [row for row in table.where(task=task) if row["turn"] != "none"]
        for row in sorted(rows, key=lambda row: row["turn"] != "corrected")[:1]:
            wording = f"{row['before']} by layers 0 to {row['before_layer']}, {row['after']} by layers 0 to {row['after_layer']}"
            yield f"Example of {task}, {row['turn']} by later layers: {row['text']}: {wording}."
