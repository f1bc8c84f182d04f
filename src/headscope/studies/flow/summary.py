"""A study in one table: what it found on each question, beside what Westera published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from headscope.results.table import Table
from headscope.studies.flow.paths import VARIANTS
from headscope.studies.flow.subsets import ARGUMENTS, POSITION

COLUMNS = ("part", "what", "measure", "value", "low", "high", "p_documents", "t", "p", "d", "n", "documents", "published")
OPEN_CLOSED = ("open", "closed (released)")
# Westera's released outputs and notes (METHODS §7.2-7.5): t pooled over layers; arcs found by the best layer, on 500
# sentences of EWT.
PUBLISHED: Mapping[tuple[str, str], str] = {
    ("coreference", "A"): "t 23.38",
    ("coreference", "G"): "t 19.01",
    ("coreference", "G*"): "t 13.46",
    ("classes", "A"): "t 5.19",
    ("classes", "G"): "t 10.40",
    ("classes", "G*"): "t 42.58",
    ("trees", "chain"): ".356",
    ("attachment", "A"): ".377",
    ("attachment", "G"): ".367",
    ("attachment", "G*"): ".396",
    ("attachment", "chain"): ".321",
    ("agreement", "A and G"): ".37",
}


def summary(tables: Mapping[str, Table]) -> Table:
    """One row a question and measure; what a part of the study did not look at has none."""
    makers = {
        "coreference_headline": _coreference,
        "class_headlines": _classes,
        "tree_distances": _trees,
        "tree_distances_subsets": _subsets,
        "attachment": _attachment,
        "agreement": _agreement,
    }
    rows = [row for name, make in makers.items() if name in tables for row in make(tables)]
    return Table.from_rows([{**dict.fromkeys(COLUMNS), **row} for row in rows], COLUMNS)


def _coreference(tables: Mapping[str, Table]) -> Iterator[dict[str, Any]]:
    names = {"welch": "same entity minus other", "matched": "the same, at equal distance", "regression": "the same, distance taken out"}
    for row in tables["coreference_headline"]:
        what, n = names[row["test"]], row["n_same"] + row["n_different"]
        if row["preset"] == "recommended":
            yield {"part": "coreference", "what": what, **_compared(row, n)}
        elif row["test"] == "welch":
            published = PUBLISHED.get(("coreference", row["measure"]))
            yield {"part": "coreference", "what": f"{what}, layers pooled", **_compared(row, n), "published": published}


def _classes(tables: Mapping[str, Table]) -> Iterator[dict[str, Any]]:
    for row in tables["class_headlines"]:
        what = f"{row['first']} minus {row['second']}"
        if row["preset"] == "recommended" and row["test"] == "paired" and row["first"] == "open":
            yield {"part": "classes", "what": f"{what}, by sentence", **_compared(row, row["n_first"])}
        elif row["preset"] == "reference" and row["test"] == "welch" and (row["first"], row["second"]) == OPEN_CLOSED:
            published = PUBLISHED.get(("classes", row["measure"]))
            yield {"part": "classes", "what": f"{what}, layers pooled", **_compared(row, row["n_first"]), "published": published}


def _trees(tables: Mapping[str, Table]) -> Iterator[dict[str, Any]]:
    wanted = {"variant": VARIANTS[0], "method": "pearson"}
    for row in tables["tree_distances"].where(**wanted):
        if row["layer"] is None:
            yield {"part": "trees", "what": "r with minus tree distance, best layer", "measure": row["measure"], **_estimate(row)}
    for row in tables["tree_distances_chains"].where(**wanted, chain="next word"):
        yield {"part": "trees", "what": "r of distance in the sentence", "measure": "chain", **_estimate(row), **_said("trees", "chain")}


def _subsets(tables: Mapping[str, Table]) -> Iterator[dict[str, Any]]:
    """Verbs with their core arguments, the class that the paper names; the table has the others."""
    for row in tables["tree_distances_subsets"].where(variant=VARIANTS[0], method="pearson", tokens=ARGUMENTS):
        if row["layer"] is None:
            measure, what = (
                ("chain", "distance in the sentence") if row["measure"] == POSITION else (row["measure"], "minus tree distance, best layer")
            )
            yield {"part": "trees", "what": f"{ARGUMENTS}: r with {what}", "measure": measure, **_estimate(row)}


def _attachment(tables: Mapping[str, Table]) -> Iterator[dict[str, Any]]:
    for row in tables["attachment"].where(arcs="all", direction="directed"):
        if row["layer"] is None and row["tree"] != "previous word":
            name = "chain" if row["tree"] == "next word" else row["tree"]
            what = "arcs of the chain of next words" if name == "chain" else "arcs of the spanning tree, best layer"
            yield {"part": "attachment", "what": what, "measure": name, **_estimate(row), **_said("attachment", name)}


def _agreement(tables: Mapping[str, Table]) -> Iterator[dict[str, Any]]:
    for row in tables["agreement"]:
        if row["layer"] is None and row["over"] == "entries":
            pair = f"{row['first']} and {row['second']}"
            yield {
                "part": "agreement",
                "what": "r over all entries and layers",
                "measure": pair,
                **_estimate(row),
                **_said("agreement", pair),
            }


def _compared(row: Mapping[str, Any], n: int) -> dict[str, Any]:
    numbers = {name: row[name] for name in ("low", "high", "p_documents", "t", "p", "d", "documents")}
    return {"measure": row["measure"], "value": row["difference"], **numbers, "n": n}


def _estimate(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("value", "low", "high", "n", "documents")}


def _said(part: str, name: str) -> dict[str, str | None]:
    return {"published": PUBLISHED.get((part, name))}
