"""The parts of a report about surface patterns: what each head does most, the curves by layer, the first heads of
each quantity.
"""

from __future__ import annotations

from typing import Any

from headscope.figures import curves
from headscope.report.published import LAYERS
from headscope.results.results import BASELINES, Results
from headscope.views.words import about

_GLANCE = {"previous": "previous", "next": "next", "self": "itself", "to_cls": "[CLS]", "to_sep": "[SEP]", "to_punct": ". ,"}
# What each figure of curves asks, and how to read it.
_CURVES = {
    "clark2": (
        "Surface patterns",
        "Before any linguistics: does a layer look at [CLS], [SEP], punctuation, or at neighbouring tokens? A point is a head, a line the "
        "mean of a layer with its interval. A mean can hide a few heads that do all of it: look at the points. Attention to [SEP] that "
        "stays high whatever the text says is often read as a head with nothing to do; whether that is so needs more than averages.",
    ),
    "clark3": (
        "What attention is worth to the model",
        "How much would the model's own loss change if a little more attention went to a token? Sizes change from layer to layer whatever "
        "attention does; what counts is how the groups compare within a layer. Where much attention goes to [SEP] and little depends on "
        "it, a head may have nothing to do there.",
    ),
    "clark4": (
        "Focus",
        "Is attention focused or broad? e to the power of the entropy in nats, or 2 to that in bits, is about the number of tokens that a "
        "head spreads over; the dashed line is what even attention would give.",
    ),
}


def glance(results: Results) -> list[dict[str, Any]]:
    """For every head the surface quantity that takes most of its attention: what it does, in one word."""
    best: dict[tuple[str, int, int], dict[str, Any]] = {}
    for table in (results[name] for name in ("positions", "tokens") if name in results):
        for row in table:
            place = (row["kind"], row["layer"], row["head"])
            if row["quantity"] in _GLANCE and row["n"] and row["value"] > best.get(place, {"value": -1.0})["value"]:
                best[place] = row
    layers = []
    for site in results.manifest["sites"]:
        rows = [best.get((site["kind"], site["layer"], head + 1)) for head in range(site["heads"])]
        if any(rows):
            heads = [{**row, "word": results.spelled(_GLANCE[row["quantity"]])} if row else None for row in rows]
            layers.append({"kind": site["kind"], "layer": site["layer"], "heads": heads})
    return layers


def figures(results: Results) -> list[dict[str, Any]]:
    """The figures of curves, one for each kind of attention, each with what was published of the same."""
    found = []
    kinds = dict.fromkeys(site["kind"] for site in results.manifest["sites"])
    for name, (heading, text) in _CURVES.items():
        shown = [kind for kind in kinds if curves.described(name, results, kind)]
        for kind in shown:
            title = heading if len(shown) == 1 else f"{heading}: {kind} attention"
            found.append(
                {"name": name, "kind": kind, "title": title, "about": results.spelled(text), "published": _published(results, name, kind)}
            )
    return found


def _published(results: Results, name: str, kind: str) -> dict[str, Any] | None:
    """The paper's layer means beside ours; None for attention the paper does not speak of."""
    if kind != "encoder" or name not in LAYERS or not _in_nats(results):
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
                own = dict(zip(ours["layer"], ours["value"], strict=True))
                rows.append({"name": quantity, "theirs": False, "cells": [_cell(own.get(layer)) for layer in layers]})
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
