"""The parts of a report: surface patterns, curves, highest heads of quantities, similar heads, and studies."""

from __future__ import annotations

from typing import Any

from headscope.comparison.alike import (
    STRUCTURE,
    Alike,
    alike,
    group_table,
    groups_sentence,
    layers_sentence,
    pairs_sentence,
    twins_sentence,
)
from headscope.core.maps import WEIGHTS
from headscope.figures import curves
from headscope.report.pictures import picture
from headscope.report.published import BEHAVIOURS, BEHAVIOURS_SOURCE, LAYERS
from headscope.results.formats import display
from headscope.results.notes import counted
from headscope.results.results import BASELINES, Results
from headscope.results.table import interval
from headscope.studies.registry import REGISTRY
from headscope.views.alike import measured
from headscope.views.words import about, findings, has_published, shown_columns

_GLANCE = {
    **{"previous": "previous", "next": "next", "self": "itself"},
    **{"to_cls": "[CLS]", "to_first": "first token", "to_sep": "[SEP]", "to_punct": ". ,"},
}
# For each figure of curves: its title, how to read it, and a sentence for models with special tokens.
_CURVES: dict[str, tuple[str, str, str]] = {
    "clark2": (
        "Surface patterns",
        "How much does a layer attend to {specials}punctuation and neighbouring tokens? One point per head; lines are means of layers "
        "with intervals. A mean can rest on a few heads: look at the points.",
        " High attention to {idle}, whatever the text says, is often read as a head with nothing to do{sink}; averages alone do not "
        "show that.",
    ),
    "clark3": (
        "Gradients with respect to attention",
        "How much would the model's loss change if a little more attention went to a token? Compare groups within a layer: the size of "
        "gradients changes from layer to layer for other reasons.",
        " If much attention goes to {idle} and little depends on it, a head may have nothing to do there.",
    ),
    "clark4": (
        "Focus",
        "Is attention focused or broad? exp(entropy in nats), or 2 to the power of the entropy in bits, is the effective number of "
        "tokens; the dashed line is even attention.",
        "",
    ),
    "sinks": (
        "Sinks",
        "Which token do heads rest on when they have nothing to do? The first panel shows the weight on the first token from all tokens "
        "after it. The second shows the share of texts in which the most attended token receives more than the threshold, by the kind of "
        "that token. A head that rests on one token in most texts may still be active in others.",
        "",
    ),
    "sequences": (
        "Sequence heads",
        "Which heads follow repeated text? An induction head attends to the token after an earlier copy of the current token, and so "
        "predicts what came next. A duplicate-token head attends to the copy. A previous-token head, one layer or more below, makes "
        "induction possible. One point per head.",
        "",
    ),
}
LISTED = 36  # most listed heads of a group; the tree has all
# The measure that gives each of the paper's labels.
_TOLD = {"next": "positions", "previous": "positions", "broad": "entropy", "[CLS]": "tokens", "[SEP]": "tokens", "punctuation": "tokens"}


def absent_quantities(results: Results) -> frozenset[str]:
    """Quantities that mean nothing to the model: the next token of a causal one, and special tokens that it lacks."""
    special = results.special_tokens
    absent = {"next": results.layout.causal, "to_cls": special.opening is None, "to_sep": special.closing is None}
    return frozenset(quantity for quantity, is_absent in absent.items() if is_absent)


def glance(results: Results) -> list[dict[str, Any]]:
    """For every head, the surface quantity with most of its attention, in one word."""
    best: dict[tuple[str, int, int], dict[str, Any]] = {}
    quantities = _GLANCE.keys() - results.special_tokens.uncounted
    for table in (results[name] for name in ("positions", "tokens") if name in results):
        for row in table:
            place = (row["kind"], row["layer"], row["head"])
            if row["quantity"] in quantities and row["n"] and row["value"] > best.get(place, {"value": -1.0})["value"]:
                best[place] = row
    layers = []
    for site in results.manifest["sites"]:
        rows = [best.get((site["kind"], site["layer"], head + 1)) for head in range(site["heads"])]
        if any(rows):
            heads = [{**row, "word": results.spelled(_GLANCE[row["quantity"]])} if row else None for row in rows]
            layers.append({"kind": site["kind"], "layer": site["layer"], "heads": heads})
    return layers


def figures(results: Results) -> list[dict[str, Any]]:
    """The figures of curves, one for each kind of attention, each with the published numbers."""
    drawn = []
    kinds = dict.fromkeys(site["kind"] for site in results.manifest["sites"])
    special = results.special_tokens
    words = {
        "specials": "".join(f"{token}, " for token in special.names),
        "idle": special.idle,
        "sink": " (an attention sink)" if special.first else "",
    }
    for name, (heading, text, of_specials) in _CURVES.items():
        wording = (text + (of_specials if special.idle is not None else "")).format(**words)
        shown = [kind for kind in kinds if curves.described(name, results, kind)]
        for kind in shown:
            title = heading if len(shown) == 1 else f"{heading}: {kind} attention"
            drawn.append({"name": name, "kind": kind, "title": title, "about": wording, "published": _published(results, name, kind)})
    return drawn


def _published(results: Results, name: str, kind: str) -> dict[str, Any] | None:
    """The paper's layer means and ours; None for kinds of attention and maps that are not in the paper."""
    if results.map != WEIGHTS or kind != "encoder" or name not in LAYERS or not _in_nats(results):
        return None
    rows: list[dict[str, Any]] = []
    layers: list[int] = []
    for panel in curves.described(name, results, kind):
        table = results[f"{panel.measure}_layers"].where(kind=kind)
        for quantity, _ in panel.series:
            theirs = LAYERS[name].rows.get(quantity)
            if theirs is not None:
                ours = table.where(quantity=quantity)
                layers = sorted({*layers, *ours["layer"], *range(1, len(theirs) + 1)})
                by_layer = dict(zip(ours["layer"], ours["value"], strict=True))
                rows.append({"name": quantity, "theirs": False, "cells": [_cell(by_layer.get(layer)) for layer in layers]})
                paper = dict(enumerate(theirs, 1))
                rows.append({"name": f"{quantity}, published", "theirs": True, "cells": [_cell(paper.get(layer)) for layer in layers]})
    return {"layers": layers, "rows": rows, "source": LAYERS[name].source} if rows else None


def _in_nats(results: Results) -> bool:
    return bool(results.measures.get("entropy", {}).get("base", "nats") == "nats")


def _cell(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def section(results: Results, name: str) -> dict[str, Any]:
    """The highest heads of each quantity of a table."""
    table = results[name]
    measured = [quantity for quantity in dict.fromkeys(table["quantity"]) if any(table.where(quantity=quantity)["n"])]
    return {
        "name": name,
        "baseline": BASELINES.get(name, "even") if any(value == value for value in table["baseline"]) else "",
        "quantities": [
            {
                "name": quantity,
                "about": results.spelled(about(quantity, measure=name)),
                "top": [row for row in table.where(quantity=quantity).sort("value", descending=True) if row["n"]][:5],
            }
            for quantity in measured
        ],
    }


def study_title(results: Results) -> str:
    """The title of a study on pages."""
    return REGISTRY[results.study or ""].title


def study_section(results: Results) -> dict[str, Any]:
    """A page's data of a study."""
    study = REGISTRY[results.study or ""]
    table = results["summary"]
    columns = shown_columns(table)
    return {
        "name": results.study,
        "title": study.title,
        "about": study.about,
        "published": study.published,
        "signature": results.signature,
        "findings": findings(results),
        "figures": [
            {"name": figure.name, "title": figure.title, "about": figure.about, "picture": picture(results, figure.name)}
            for figure in study.figures
            if figure.title and figure.table in results and len(results[figure.table])
        ],
        "columns": columns,
        "beside": has_published(columns),
        "is_text": [isinstance(next((value for value in table[name] if value is not None), None), str) for name in columns],
        "rows": [[counted(row[name]) if name == "documents" else display(row[name]) for name in columns] for row in table],
        "notes": [*results.manifest.get("notes", ()), *results.manifest.get("read", ()), *results.manifest["dropped"]],
    }


def alike_section(results: Results) -> dict[str, Any] | None:
    """Findings, groups and counts of similar heads; None for a run that did not measure distances."""
    if not measured(results):
        return None
    likeness = alike(results)
    grouping = likeness.groups()
    kinds = list(dict.fromkeys(results[STRUCTURE]["kind"]))
    findings = []
    for kind in kinds:
        sentences = (layers_sentence(results, kind), twins_sentence(results, kind), pairs_sentence(results, kind))
        findings += [line if len(kinds) == 1 else f"{kind.capitalize()} attention: {line}" for line in filter(None, sentences)]
    groups = [
        {
            **row,
            "silhouette": interval(row["silhouette"]) if row["heads"] > 1 else "–",
            "behaviours": results.spelled(row["behaviours"]),
            "members": _some(row["members"].split()),
        }
        for row in group_table(likeness, grouping)
    ]
    return {
        "findings": [*findings, results.spelled(groups_sentence(likeness, grouping))],
        "kind": likeness.kind if len(kinds) > 1 else "",
        "groups": groups,
        "counts": _counts(results, likeness),
        "source": BEHAVIOURS_SOURCE,
    }


def _counts(results: Results, likeness: Alike) -> list[dict[str, str]]:
    """How many heads have each label, and how many in the paper's figure, for labels that the run can give."""
    if results.map != WEIGHTS or likeness.kind != "encoder":
        return []
    return [
        {
            "label": results.spelled(label),
            "shown": str(likeness.labels.count(label)),
            "any": str(sum(label in labels for labels in likeness.behaviours)),
            "published": published,
        }
        for label, published in BEHAVIOURS.items()
        if _TOLD[label] in results
    ]


def _some(members: list[str]) -> str:
    return " ".join(members) if len(members) <= LISTED else f"{' '.join(members[:LISTED])} and {len(members) - LISTED} more"
