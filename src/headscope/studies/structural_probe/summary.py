"""A structural probe in one table, by layer, beside what Hewitt & Manning published."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headscope.results.table import Table
from headscope.studies.structural_probe.metrics import METRICS

NAMES = {
    "model": "the model",
    "random": "its weights redrawn",
    "decay": "layer 0, averaged over neighbours",
    "projection": "layer 0, read by an untrained BiLSTM",
    "linear": "words left to right",
}
# UUAS / DSpr / Root % / NSpr on the test set of the Penn Treebank. Which block "BERTbase7" is cannot be told from the
# released code.
_BERT = {12: {7: "BERT-base 7: 79.8 / .85 / 88.0 / .87", 8: "(or this one)"}, 24: {15: "BERT-large 15: 82.5 / .86 / 89.4 / .88"}}
_BERT[24][16] = "BERT-large 16: 81.7 / .87 / 90.1 / .89"
_OTHERS = {
    "decay": "Decay0: 51.7 / .61 / 54.3 / .56",
    "projection": "Proj0: 59.8 / .73 / 64.4 / .75",
    "linear": "Linear: 48.9 / .58 / 2.9 / .27",
}
_EMBEDDED = "ELMo0: 26.8 / .44 / 54.3 / .56"
COLUMNS = ("what", "layer", "rank", *METRICS, "published")


def summary(tables: Mapping[str, Table], best: int, blocks: int) -> Table:
    """One row per layer of the model, 0 for embeddings, and one per baseline; of the control with random weights the
    best layer.

    `best` is the best layer by held-out loss, and `blocks` how many the model has.
    """
    rows = []
    for row in wide(tables["structural"]):
        if row["source"] == "random":
            continue
        chosen = " (best by held-out loss)" if row["source"] == "model" and row["layer"] == best else ""
        published = _OTHERS.get(row["source"]) or (_EMBEDDED if row["layer"] == 0 else _BERT.get(blocks, {}).get(row["layer"]))
        rows.append({**row, "what": NAMES[row["source"]] + chosen, "published": published})
    if (control := control_of(tables)) is not None:
        rows.append({**control, "what": f"{NAMES['random']} (its best layer)", "published": None})
    return Table.from_rows(rows, COLUMNS)


def control_of(tables: Mapping[str, Table]) -> dict[str, Any] | None:
    """The layer of the control whose distance probes have the least held-out loss, as a row of `wide`; None without
    a control.
    """
    losses: dict[int, list[float]] = {}
    for row in tables["structural_training"].where(source="random", probe="distance"):
        losses.setdefault(row["layer"], []).append(row["loss"])
    if not losses:
        return None
    layer = min(losses, key=lambda layer: (sum(losses[layer]) / len(losses[layer]), layer))
    return next(row for row in wide(tables["structural"]) if (row["source"], row["layer"]) == ("random", layer))


def wide(table: Table) -> list[dict[str, Any]]:
    """One row per source, layer and rank, with all metrics in it."""
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in table:
        place = tuple(row[name] for name in ("source", "layer", "rank"))
        rows.setdefault(place, dict(zip(("source", "layer", "rank"), place, strict=True)))[row["metric"]] = row["value"]
    return list(rows.values())
