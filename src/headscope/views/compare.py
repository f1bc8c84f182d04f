"""Two runs in the format of the comparison view (frontend/src/types.ts, Comparison)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headscope.comparison.base import Comparison
from headscope.comparison.runs import compare
from headscope.core.heads import HeadId
from headscope.results.results import Results, blame_folder
from headscope.results.table import Table
from headscope.views.page import rounded
from headscope.views.run import corpus_name, model_name
from headscope.views.words import about

_NUMBERS = ("a", "b", "difference", "low", "high")


@blame_folder
def comparison(a: Results, b: Results, names: tuple[str, str] | None = None) -> dict[str, Any]:
    """Everything that the view shows of two runs."""
    compared = compare([a, b], names=names)
    return described(compared)


def described(compared: Comparison, names: tuple[str, str] | None = None) -> dict[str, Any]:
    """Everything that the view shows of a finished comparison of two runs."""
    (a, b), called, heads = compared.results, names or compared.names, compared.differences.get("heads")
    layers, best = (compared.differences.get(name, ()) for name in ("layers", "best"))
    return {
        "a": _run(a, called[0]),
        "b": _run(b, called[1]),
        "how": compared.how,
        "unlike": list(compared.unlike),
        "left_out": list(compared.left_out),
        "sites": a.manifest["sites"] if heads is not None else None,
        "quantities": _quantities(a, heads) if heads is not None else [],
        "layers": _layers(layers),
        "best": [
            {
                **{key: row[key] for key in ("measure", "label", "kind")},
                **{"a_head": row["a_heads"], "b_head": row["b_heads"], "n": [row["a_n"], row["b_n"]]},
                **{key: rounded(row[key]) for key in _NUMBERS},
            }
            for row in best
        ],
    }


def _run(results: Results, name: str) -> dict[str, str]:
    return {"name": name, "model": model_name(results), "corpus": corpus_name(results), "signature": results.signature}


def _quantities(a: Results, heads: Table) -> list[dict[str, Any]]:
    """The quantities, each as arrays over all heads."""
    place = {head: number for number, head in enumerate(a.layout.ids())}
    labels = {
        (measure, row["quantity"]): (row["label"], row["direction"])
        for measure, table in a.of_heads().items()
        if "direction" in table.columns
        for row in table.first("quantity")
    }
    described: dict[tuple[str, str], dict[str, Any]] = {}
    for row in heads:
        key = (row["measure"], row["quantity"])
        if key not in described:
            label, direction = labels.get(key, (row["quantity"], ""))
            words = a.spelled(about(label, direction, row["measure"]))
            described[key] = {**dict(zip(("measure", "name"), key, strict=True)), "about": words}
            described[key] |= {name: [None] * len(place) for name in _NUMBERS}
        at = place[HeadId.of_row(row)]
        for name in _NUMBERS:
            described[key][name][at] = rounded(row[name])
    return list(described.values())


def _layers(table: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    described: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in table:
        key = (row["measure"], row["quantity"], row["kind"])
        curve = described.setdefault(key, {name: [] for name in ("layer", *_NUMBERS)})
        curve["layer"].append(row["layer"])
        for name in _NUMBERS:
            curve[name].append(rounded(row[name]))
    return [{"measure": measure, "name": name, "kind": kind, **curve} for (measure, name, kind), curve in described.items()]
