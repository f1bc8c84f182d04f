"""Findings of a study of flow: sentences, and a table with the values published by Westera."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from headscope.results.table import Table, interval
from headscope.stats.inference import reason
from headscope.studies.flow.paths import ARGUMENTS, POSITION, VARIANTS

COLUMNS = ("part", "what", "measure", "value", "low", "high", "p_documents", "t", "p", "d", "n", "documents", "published")
OPEN_CLOSED = ("open", "closed (released)")
# Westera's released outputs and notes: t pooled over layers; arcs found by the best layer, on 500 sentences of EWT.
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
NAMES = {
    "A": "attention",
    "G": "the gradient over one layer",
    "G*": "the gradient with respect to the input",
    "rollout": "attention rollout",
    "maxflow": "attention flow",
    "norms": "attention weighted by values",
}
SURE = 0.05


def summary(tables: Mapping[str, Table]) -> Table:
    """One row per question and measure; parts that the study does not have are omitted."""
    makers = {
        "coreference_headline": _coreference_rows,
        "class_headlines": _class_rows,
        "tree_distances": _tree_rows,
        "tree_distances_subsets": _subset_rows,
        "attachment": _attachment_rows,
        "agreement": _agreement_rows,
    }
    rows = [row for name, make in makers.items() if name in tables for row in make(tables)]
    return Table.from_rows([{**dict.fromkeys(COLUMNS), **row} for row in rows], COLUMNS)


def _coreference_rows(tables: Mapping[str, Table]) -> Iterator[dict[str, Any]]:
    names = {
        "welch": "same entity minus other",
        "matched": "the same, at equal distance",
        "regression": "the same, controlling for distance",
    }
    for row in tables["coreference_headline"]:
        what, n = names[row["test"]], row["n_same"] + row["n_different"]
        if row["preset"] == "recommended":
            yield {"part": "coreference", "what": what, **_compared(row, n)}
        elif row["test"] == "welch":
            published = PUBLISHED.get(("coreference", row["measure"]))
            yield {"part": "coreference", "what": f"{what}, layers pooled", **_compared(row, n), "published": published}


def _class_rows(tables: Mapping[str, Table]) -> Iterator[dict[str, Any]]:
    for row in tables["class_headlines"]:
        what = f"{row['first']} minus {row['second']}"
        if row["preset"] == "recommended" and row["test"] == "paired" and row["first"] == "open":
            yield {"part": "classes", "what": f"{what}, by sentence", **_compared(row, row["n_first"])}
        elif row["preset"] == "reference" and row["test"] == "welch" and (row["first"], row["second"]) == OPEN_CLOSED:
            published = PUBLISHED.get(("classes", row["measure"]))
            yield {"part": "classes", "what": f"{what}, layers pooled", **_compared(row, row["n_first"]), "published": published}


def _tree_rows(tables: Mapping[str, Table]) -> Iterator[dict[str, Any]]:
    wanted = {"variant": VARIANTS[0], "method": "pearson"}
    for row in tables["tree_distances"].where(**wanted):
        if row["layer"] is None:
            yield {"part": "trees", "what": "r with minus tree distance, best layer", "measure": row["measure"], **_estimate(row)}
    for row in tables["tree_distances_chains"].where(**wanted, chain="next word"):
        yield {
            "part": "trees",
            "what": "r of distance in the sentence",
            "measure": "chain",
            **_estimate(row),
            **_published("trees", "chain"),
        }


def _subset_rows(tables: Mapping[str, Table]) -> Iterator[dict[str, Any]]:
    """Rows for verbs with their core arguments, the class that the paper names; the table has the others."""
    for row in tables["tree_distances_subsets"].where(variant=VARIANTS[0], method="pearson", tokens=ARGUMENTS):
        if row["layer"] is None:
            measure, what = (
                ("chain", "distance in the sentence") if row["measure"] == POSITION else (row["measure"], "minus tree distance, best layer")
            )
            yield {"part": "trees", "what": f"{ARGUMENTS}: r with {what}", "measure": measure, **_estimate(row)}


def _attachment_rows(tables: Mapping[str, Table]) -> Iterator[dict[str, Any]]:
    for row in tables["attachment"].where(arcs="all", direction="directed"):
        if row["layer"] is None and row["tree"] != "previous word":
            name = "chain" if row["tree"] == "next word" else row["tree"]
            what = "arcs of the chain of next words" if name == "chain" else "arcs of the spanning tree, best layer"
            yield {"part": "attachment", "what": what, "measure": name, **_estimate(row), **_published("attachment", name)}


def _agreement_rows(tables: Mapping[str, Table]) -> Iterator[dict[str, Any]]:
    for row in tables["agreement"]:
        if row["layer"] is None and row["over"] == "entries":
            pair = f"{row['first']} and {row['second']}"
            yield {
                "part": "agreement",
                "what": "r over all entries and layers",
                "measure": pair,
                **_estimate(row),
                **_published("agreement", pair),
            }


def _compared(row: Mapping[str, Any], n: int) -> dict[str, Any]:
    numbers = {name: row[name] for name in ("low", "high", "p_documents", "t", "p", "d", "documents")}
    return {"measure": row["measure"], "value": row["difference"], **numbers, "n": n}


def _estimate(row: Mapping[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in ("value", "low", "high", "n", "documents")}


def _published(part: str, name: str) -> dict[str, str | None]:
    return {"published": PUBLISHED.get((part, name))}


def sentences(tables: Mapping[str, Table]) -> list[str]:
    """The findings of each part, with their tests, as sentences."""
    makers = {
        "flow_coreference_headline": _coreference,
        "flow_class_headlines": _classes,
        "flow_tree_distances": _trees,
        "flow_attachment": _attachment,
        "flow_agreement": _agreement,
    }
    return [line for name, make in makers.items() if name in tables for line in make(tables)]


def named(measure: str) -> str:
    """A measure in words."""
    return f"{NAMES[measure]} ({measure})" if measure in NAMES else measure


def _coreference(tables: Mapping[str, Table]) -> Iterator[str]:
    for row in tables["flow_coreference_headline"].where(preset="recommended", test="regression"):
        wording = _more(row, "mean_different", "between mentions of the same entity than between others")
        test = _test(row, f"{row['n_same'] + row['n_different']} pairs")
        yield f"Influence from a noun to a later pronoun, by {named(row['measure'])}, is {wording}, controlling for distance ({test})."


def _classes(tables: Mapping[str, Table]) -> Iterator[str]:
    for row in tables["flow_class_headlines"].where(preset="recommended", test="paired", first="open", second="closed"):
        wording, test = _more(row, "mean_second", "for open classes than for closed classes"), _test(row, f"{row['n_first']} sentences")
        yield f"The influence of a word on all tokens of its sentence, by {named(row['measure'])}, is {wording} ({test})."


def _trees(tables: Mapping[str, Table]) -> Iterator[str]:
    wanted = {"variant": VARIANTS[0], "method": "pearson"}
    rows = [row for row in tables["flow_tree_distances"].where(**wanted) if row["layer"] is None and row["n"]]
    chain = next(iter(tables["flow_tree_distances_chains"].where(**wanted, chain="next word")), None)
    if rows and chain is not None:
        wording = ", ".join(f"r = {interval(row['value'], row['low'], row['high'])} for {named(row['measure'])}" for row in rows)
        yield (
            f"Influence between words correlates with closeness in the dependency tree: {wording}, in the best layer; closeness in the "
            f"sentence alone has r = {interval(chain['value'])}."
        )


def _attachment(tables: Mapping[str, Table]) -> Iterator[str]:
    rows = tables["flow_attachment"].where(arcs="all", direction="directed")
    best = [row for row in rows if row["layer"] is None and row["n"]]
    wording = ", ".join(f"{named(row['tree'])} {interval(row['value'], row['low'], row['high'])}" for row in best if row["tree"] in NAMES)
    chain = next((row["value"] for row in best if row["tree"] == "next word"), None)
    if wording and chain is not None:
        yield (
            f"Spanning trees of influence, in the best layer, recover these shares of the annotated arcs: {wording}; a chain in which the "
            f"next word is the head recovers {interval(chain)}."
        )


def _agreement(tables: Mapping[str, Table]) -> Iterator[str]:
    for row in tables["flow_agreement"].where(over="entries"):
        if row["layer"] is None:
            first, other = named(row["first"]), named(row["second"])
            yield (
                f"Over all pairs of tokens and all layers, {first} and {other} correlate with r = "
                f"{interval(row['value'], row['low'], row['high'])}."
            )


def _more(row: Mapping[str, Any], base: str, than: str) -> str:
    """`12% higher ...` for a significant difference, in percent of the base; else a phrase that it is not significant.

    Studies before 1.0 have no p over documents.
    """
    if not row.get("p_documents", row["p"]) < SURE or not row[base]:
        return f"not significantly higher or lower {than}"
    share = row["difference"] / row[base]
    return f"{abs(share):.0%} {'higher' if share > 0 else 'lower'} {than}"


def _test(row: Mapping[str, Any], items: str) -> str:
    """The effect size, t and p of the row's test, which treats items as independent, and its p over documents."""
    if math.isnan(row["p"]):
        return f"too few to test: {items}"
    wording = f"d = {interval(row['d'])}, t = {interval(row['t'])}, {_p(row['p'])} over {items}"
    if "p_documents" not in row:
        return wording
    documents, p = row["documents"], row["p_documents"]
    return f"{wording}; {reason(documents)}" if math.isnan(p) else f"{wording}; {_p(p)} over {documents} documents"


def _p(p: float) -> str:
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".", 1)
