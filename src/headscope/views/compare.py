"""Two runs as the comparison view reads them (frontend/src/types.ts, Comparison)."""

from __future__ import annotations

from typing import Any

from headscope.core.heads import HeadId
from headscope.runs.compare import Comparison, compare
from headscope.runs.results import Results
from headscope.runs.table import Table
from headscope.views.numbers import rounded
from headscope.views.run import corpus_name, flat_heads, model_name
from headscope.views.words import about

_NUMBERS = ("a", "b", "difference", "low", "high")


def comparison(a: Results, b: Results, names: tuple[str, str] | None = None) -> dict[str, Any]:
    """Everything that the view shows of two runs."""
    found = compare(a, b)
    called = names or tuple(results.path.resolve().name if results.path is not None else letter for results, letter in ((a, "a"), (b, "b")))
    return {
        "a": _run(a, called[0]),
        "b": _run(b, called[1]),
        "how": found.how,
        "unlike": list(found.unlike),
        "left_out": list(found.left_out),
        "sites": a.manifest["sites"] if found.heads is not None else None,
        "quantities": _quantities(found) if found.heads is not None else [],
        "layers": _layers(found.layers),
        "best": [
            {
                **{key: row[key] for key in ("measure", "label", "kind")},
                **{"a_head": row["a_heads"], "b_head": row["b_heads"], "n": [row["a_n"], row["b_n"]]},
                **{key: rounded(row[key]) for key in _NUMBERS},
            }
            for row in found.best
        ],
    }


def _run(results: Results, name: str) -> dict[str, str]:
    return {"name": name, "model": model_name(results), "corpus": corpus_name(results), "signature": results.signature}


def _quantities(found: Comparison) -> list[dict[str, Any]]:
    """The quantities, each as arrays over all heads."""
    assert found.heads is not None
    place = {head: number for number, head in enumerate(flat_heads(found.a.manifest["sites"]))}
    labels = {
        (measure, row["quantity"]): (row["label"], row["direction"])
        for measure, table in found.a.of_heads().items()
        if "direction" in table.columns
        for row in table.first("quantity")
    }
    described: dict[tuple[str, str], dict[str, Any]] = {}
    for row in found.heads:
        key = (row["measure"], row["quantity"])
        if key not in described:
            label, direction = labels.get(key, (row["quantity"], ""))
            words = found.a.spelled(about(label, direction, row["measure"]))
            described[key] = {**dict(zip(("measure", "name"), key, strict=True)), "about": words}
            described[key] |= {name: [None] * len(place) for name in _NUMBERS}
        at = place[HeadId(row["kind"], row["layer"] - 1, row["head"] - 1)]
        for name in _NUMBERS:
            described[key][name][at] = rounded(row[name])
    return list(described.values())


def _layers(table: Table) -> list[dict[str, Any]]:
    described: dict[tuple[str, str, str], dict[str, Any]] = {}
    for row in table:
        key = (row["measure"], row["quantity"], row["kind"])
        one = described.setdefault(key, {name: [] for name in ("layer", *_NUMBERS)})
        one["layer"].append(row["layer"])
        for name in _NUMBERS:
            one[name].append(rounded(row[name]))
    return [{"measure": measure, "name": name, "kind": kind, **one} for (measure, name, kind), one in described.items()]
