"""The part of a report about heads as classifiers: the best head of each label, and the best label of each head."""

from __future__ import annotations

import math
from typing import Any

from headscope.core.maps import WEIGHTS
from headscope.report.published import RULES, TABLE1_SOURCE, table1
from headscope.results.notes import choice_note, counted, cut_sentence, note
from headscope.results.results import Results
from headscope.results.table import interval, with_error

ABOUT = {
    "relations": "How often the word that a word attends to most (dependent to governor), or that attends to it most (governor to "
    "dependent), is its syntactic governor. Special tokens and the word itself are excluded from the choice. The rule is a fixed offset, "
    "such as the next word (+1).",
    "coreference": "How often the earlier mention that a mention attends to most (mention-to-antecedent), or that attends to it most "
    "(antecedent-to-mention), is of the same entity. The rules are the nearest mention, the nearest mention with the same head word, "
    "and four sieves.",
    "pronouns": "How often the mention that a pronoun attends to most (pronoun-to-candidate), or that attends to it most "
    "(candidate-to-pronoun), is what it refers to. The rules are the first mention, the nearest mention, and the nearest one before it.",
}
CAUSAL = " In a causal model only the later one of a word and its governor can attend to the other."


def contests(results: Results) -> list[dict[str, Any]]:
    """For each such measure, its best heads, and for every head the label with the largest lift over the rule."""
    return [_contest(results, name) for name in results if f"{name}_best" in results]


def _contest(results: Results, name: str) -> dict[str, Any]:
    found: dict[tuple[str, int, int], dict[str, Any]] = {}
    for row in results[name]:
        place = (row["kind"], row["layer"], row["head"])
        # If there are intervals, only significant lifts count.
        sure = row["lift"] if math.isnan(row["low"]) or row["low"] > row["baseline"] else 0.0
        if row["label"] != "all" and sure > found.get(place, {"lift": 0.0})["lift"]:
            found[place] = row
    layers: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for site in results.manifest["sites"]:
        heads = [(site["kind"], site["layer"], head + 1) for head in range(site["heads"])]
        layers[site["kind"], site["layer"]] = [found.get(place, {"layer": place[1], "head": place[2]}) for place in heads]
    kinds = {row["kind"] for row in results[name]}
    good_at = [{"kind": kind, "layer": layer, "heads": heads} for (kind, layer), heads in layers.items() if kind in kinds]
    best = [_written(row, name, results.map == WEIGHTS) for row in results[f"{name}_best"]]
    return {
        "name": name,
        "about": ABOUT.get(name, "") + (CAUSAL if results.layout.causal and name == "relations" else ""),
        "cut": cut_sentence(results, name),
        "choice": choice_note(results, name),
        "best": best,
        "few": note(row.get("documents") for row in results[f"{name}_best"]),
        "published": TABLE1_SOURCE if any(row["published"] for row in best) else "",
        "good_at": good_at,
        "rules": _rules(results, name),
    }


def towards(direction: str) -> str:
    """A direction in words: `dep-to-head` is from the dependent to the governor."""
    words = direction.replace("dep-to-head", "dependent → governor").replace("head-to-dep", "governor → dependent")
    return words.replace("-to-", " → ").replace(" | ", ", ")


def _rules(results: Results, name: str) -> dict[str, Any] | None:
    """Every rule on every label, with published numbers; None if the measure has no table of rules."""
    if f"{name}_rules" not in results:
        return None
    table = results[f"{name}_rules"]
    labels = list(dict.fromkeys(table["label"]))
    rows: dict[str, dict[str, str]] = {}
    for row in table:
        rule = row["rule"] if results.layout.one_kind else f"{row['kind']} {row['rule']}"
        rows.setdefault(rule, {})[row["label"]] = interval(row["value"], row["low"], row["high"])
    source, published = RULES.get(name, ("", {}))
    known = {rule: {label: f"{value / 100:.2f}" for label, value in values.items()} for rule, values in published.items()}
    documents = {row["label"]: counted(row.get("documents")) for row in table}
    return {"labels": labels, "rows": rows, "documents": documents, "source": source, "published": known}


def _written(row: dict[str, Any], measure: str, beside: bool) -> dict[str, Any]:
    """A row with its numbers as text: values with intervals, and if `beside` the paper's numbers."""
    known = table1(row["label"]) if beside and measure == "relations" and row["kind"] == "encoder" else None
    return {
        **row,
        "documents": counted(row.get("documents")),
        "accuracy": interval(row["value"], row["low"], row["high"]),
        "rule_accuracy": interval(row["baseline"], row["baseline_low"], row["baseline_high"]),
        "lifted": interval(row["lift"], row["lift_low"], row["lift_high"]),
        "seen": f"{row['in_sample']:.2f} ({row['in_sample_head']})",
        "selection_bias": interval(row["in_sample"] - row["crossfit"]),
        "by_chance": with_error(row["chance"], row.get("chance_error")),
        "published": f"{known[1]:.1f} %, {known[2]:.1f} %" if known else "",
        "published_head": known[0] if known else "",
        "towards": towards(row["direction"]),
    }
