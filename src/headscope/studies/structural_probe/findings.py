"""Findings of a structural probe: sentences, and a table with the values published by Hewitt & Manning."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
# UUAS / DSpr / Root % / NSpr on the test set of the Penn Treebank. The released code does not show which block
# "BERTbase7" is.
_BERT = {12: {7: "BERT-base 7: 79.8 / .85 / 88.0 / .87", 8: "(or this one)"}, 24: {15: "BERT-large 15: 82.5 / .86 / 89.4 / .88"}}
_BERT[24][16] = "BERT-large 16: 81.7 / .87 / 90.1 / .89"
_OTHERS = {
    "decay": "Decay0: 51.7 / .61 / 54.3 / .56",
    "projection": "Proj0: 59.8 / .73 / 64.4 / .75",
    "linear": "Linear: 48.9 / .58 / 2.9 / .27",
}
_EMBEDDED = "ELMo0: 26.8 / .44 / 54.3 / .56"
COLUMNS = ("what", "layer", "rank", *METRICS, "published")
NEAR = 0.95  # share of the best score that a smaller rank must reach


def summary(tables: Mapping[str, Table], best: int, blocks: int) -> Table:
    """One row per layer of the model, 0 for embeddings, and one per baseline; of the control with random
    weights only the best layer.

    `best` is the best layer by held-out loss, and `blocks` is the number of blocks of the model.
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
    """The control's layer with the least held-out loss of distance probes, as a row of `wide`; None without one."""
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


def sentences(tables: Mapping[str, Table], best: int) -> list[str]:
    """Which layer encodes trees best, the baselines, and how few dimensions are enough, as sentences."""
    return [*_best(tables, best), *_depths(tables, best), *_ranks(tables)]


def _best(tables: Mapping[str, Table], best: int) -> Iterator[str]:
    rows = {row["metric"]: row for row in tables["structural"].where(source="model", layer=best)}
    yield (
        f"A linear map of layer {best} ({_called(best)}) recovers {_percent(rows['UUAS'])} of the edges of trees from distances between "
        f"words{_beside(tables, 'UUAS')}; their rank correlation with distances in the tree is {_plain(rows['DSpr'])}"
        f"{_beside(tables, 'DSpr')}."
    )


def _depths(tables: Mapping[str, Table], best: int) -> Iterator[str]:
    rows = {row["metric"]: row for row in tables["structural"].where(source="model", layer=best)}
    yield (
        f"Under a second map, the shortest vector is that of the root in {_percent(rows['Root%'])} of sentences{_beside(tables, 'Root%')}, "
        f"and the rank correlation of lengths with depths is {_plain(rows['NSpr'])}{_beside(tables, 'NSpr')}."
    )


def _ranks(tables: Mapping[str, Table]) -> Iterator[str]:
    if "structural_ranks" not in tables:
        return
    rows = sorted(tables["structural_ranks"].where(metric="UUAS"), key=lambda row: row["rank"])
    if len(rows) < 2:
        return
    most = max(row["value"] for row in rows)
    enough = next(row for row in rows if row["value"] >= NEAR * most)
    yield (
        f"In layer {rows[0]['layer']}, a probe of rank {enough['rank']} reaches {NEAR:.0%} of the best UUAS of ranks {rows[0]['rank']} to "
        f"{rows[-1]['rank']} ({enough['value']:.1f} of {most:.1f}%)."
    )


def _beside(tables: Mapping[str, Table], metric: str) -> str:
    """The scores of the chain of words and of the control, in brackets."""
    baselines = [(row["value"], "words left to right") for row in tables["structural"].where(source="linear", metric=metric)]
    if (control := control_of(tables)) is not None:
        baselines.append((control[metric], f"redrawn weights, layer {control['layer']}"))
    shown = "; ".join(f"{name} {value:.0f}%" if metric in ("UUAS", "Root%") else f"{name} {value:.2f}" for value, name in baselines)
    return f" ({shown})" if baselines else ""


def _called(layer: int) -> str:
    return "the embeddings" if layer == 0 else f"the output of block {layer}, hidden_states[{layer}]"


def _percent(row: Mapping[str, Any]) -> str:
    bounds = "" if row["low"] != row["low"] else f" [{row['low']:.0f} {row['high']:.0f}]"
    return f"{row['value']:.0f}%{bounds}"


def _plain(row: Mapping[str, Any]) -> str:
    bounds = "" if row["low"] != row["low"] else f" [{row['low']:.2f} {row['high']:.2f}]"
    return f"{row['value']:.2f}{bounds}"
