"""What a study of flow found, in plain words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from headscope.results.table import Table, interval
from headscope.stats.inference import reason
from headscope.studies.flow.paths import VARIANTS

NAMES = {
    "A": "attention",
    "G": "the gradient over one layer",
    "G*": "the gradient from the input on",
    "rollout": "attention rollout",
    "maxflow": "attention flow",
    "norms": "attention weighted by values",
}
SURE = 0.05


def sentences(tables: Mapping[str, Table]) -> list[str]:
    """The findings of each part, with what makes them sure or not."""
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
        told = _more(row, "mean_different", "if both mean the same thing than if not")
        test = _test(row, f"{row['n_same'] + row['n_different']} pairs")
        yield f"From a noun to a later pronoun, {named(row['measure'])} is {told}, with distance taken out ({test})."


def _classes(tables: Mapping[str, Table]) -> Iterator[str]:
    for row in tables["flow_class_headlines"].where(preset="recommended", test="paired", first="open", second="closed"):
        told, test = _more(row, "mean_second", "for open classes than for closed ones"), _test(row, f"{row['n_first']} sentences")
        yield f"What a word gives to all tokens, by {named(row['measure'])}, is {told} ({test})."


def _trees(tables: Mapping[str, Table]) -> Iterator[str]:
    wanted = {"variant": VARIANTS[0], "method": "pearson"}
    rows = [row for row in tables["flow_tree_distances"].where(**wanted) if row["layer"] is None and row["n"]]
    chain = next(iter(tables["flow_tree_distances_chains"].where(**wanted, chain="next word")), None)
    if rows and chain is not None:
        told = ", ".join(f"{named(row['measure'])} by r = {interval(row['value'], row['low'], row['high'])}" for row in rows)
        yield (
            f"The nearer in the dependency tree, the more flows: {told} in the best layer; distance in the sentence alone has "
            f"{interval(chain['value'])}."
        )


def _attachment(tables: Mapping[str, Table]) -> Iterator[str]:
    rows = tables["flow_attachment"].where(arcs="all", direction="directed")
    best = [row for row in rows if row["layer"] is None and row["n"]]
    told = ", ".join(f"{named(row['tree'])} {interval(row['value'], row['low'], row['high'])}" for row in best if row["tree"] in NAMES)
    chain = next((row["value"] for row in best if row["tree"] == "next word"), None)
    if told and chain is not None:
        yield (
            f"Of the annotated arcs, trees made of flow in the best layer have: {told}; a chain in which the next word is the head has "
            f"{interval(chain)}."
        )


def _agreement(tables: Mapping[str, Table]) -> Iterator[str]:
    for row in tables["flow_agreement"].where(over="entries"):
        if row["layer"] is None:
            one, other = named(row["first"]), named(row["second"])
            yield f"Over all tokens and layers, {one} and {other} correlate by r = {interval(row['value'], row['low'], row['high'])}."


def _more(row: Mapping[str, Any], base: str, than: str) -> str:
    """`12% higher` than what, or that neither is sure. Studies before 1.0 have no p over documents."""
    if not row.get("p_documents", row["p"]) < SURE or not row[base]:
        return f"not surely higher or lower {than}"
    share = row["difference"] / row[base]
    return f"{abs(share):.0%} {'higher' if share > 0 else 'lower'} {than}"


def _test(row: Mapping[str, Any], items: str) -> str:
    """The effect size, t and p of the row's test, which takes items as independent, and its p over documents."""
    if math.isnan(row["p"]):
        return f"too few to test: {items}"
    told = f"d = {interval(row['d'])}, t = {interval(row['t'])}, {_p(row['p'])} over {items}"
    if "p_documents" not in row:
        return told
    documents, p = row["documents"], row["p_documents"]
    return f"{told}; {reason(documents)}" if math.isnan(p) else f"{told}; {_p(p)} over {documents} documents"


def _p(p: float) -> str:
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".", 1)
