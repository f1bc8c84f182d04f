"""What a structural probe found, in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headscope.results.table import Table
from headscope.studies.structural_probe.summary import control_of

NEAR = 0.95  # of the full rank's score: what a smaller rank must reach


def sentences(tables: Mapping[str, Table], best: int) -> list[str]:
    """The findings: which layer holds trees best, what the baselines do, and how few dimensions are enough."""
    return [*_best(tables, best), *_depths(tables, best), *_ranks(tables)]


def _best(tables: Mapping[str, Table], best: int) -> Iterator[str]:
    rows = {row["metric"]: row for row in tables["structural"].where(source="model", layer=best)}
    yield (
        f"Under a linear map of layer {best} ({_called(best)}), {_percent(rows['UUAS'])} of the edges of trees come out of distances "
        f"between words{_beside(tables, 'UUAS')}; these and distances in the tree correlate by {_plain(rows['DSpr'])}"
        f"{_beside(tables, 'DSpr')}."
    )


def _depths(tables: Mapping[str, Table], best: int) -> Iterator[str]:
    rows = {row["metric"]: row for row in tables["structural"].where(source="model", layer=best)}
    yield (
        f"Under another one, the word of least length is the root in {_percent(rows['Root%'])} of sentences{_beside(tables, 'Root%')}, and "
        f"lengths and depths correlate by {_plain(rows['NSpr'])}{_beside(tables, 'NSpr')}."
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
        f"Of ranks {rows[0]['rank']} to {rows[-1]['rank']} in layer {rows[0]['layer']}, {enough['rank']} is enough for {NEAR:.0%} of the "
        f"best UUAS ({enough['value']:.1f} of {most:.1f}%)."
    )


def _beside(tables: Mapping[str, Table], metric: str) -> str:
    """What the chain of words and the control reach."""
    told = [(row["value"], "words left to right") for row in tables["structural"].where(source="linear", metric=metric)]
    if (control := control_of(tables)) is not None:
        told.append((control[metric], f"redrawn weights, layer {control['layer']}"))
    shown = "; ".join(f"{name} {value:.0f}%" if metric in ("UUAS", "Root%") else f"{name} {value:.2f}" for value, name in told)
    return f" ({shown})" if told else ""


def _called(layer: int) -> str:
    return "the embeddings" if layer == 0 else f"what block {layer} gives, hidden_states[{layer}]"


def _percent(row: Mapping[str, Any]) -> str:
    bounds = "" if row["low"] != row["low"] else f" [{row['low']:.0f} {row['high']:.0f}]"
    return f"{row['value']:.0f}%{bounds}"


def _plain(row: Mapping[str, Any]) -> str:
    bounds = "" if row["low"] != row["low"] else f" [{row['low']:.2f} {row['high']:.2f}]"
    return f"{row['value']:.2f}{bounds}"
