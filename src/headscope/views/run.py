"""A run as the views read it (frontend/src/types.ts, Run): every number a head, the curves, the best heads, texts to
look at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from headscope.core.heads import HeadId
from headscope.core.names import printable
from headscope.figures import RUN_FIGURES, curves
from headscope.figures.contests import WORDS
from headscope.results.errors import blame_folder
from headscope.results.results import BASELINES, Results
from headscope.views.alike import alike_data
from headscope.views.gallery import gallery_data, readable
from headscope.views.numbers import rounded
from headscope.views.words import GRADIENTS, UNBOUNDED, about


@blame_folder
def run_data(results: Results, name: str | None = None) -> dict[str, Any]:
    """Everything that the views show of a run."""
    return {
        "name": name or (results.path.resolve().name if results.path is not None else "run"),
        "model": model_name(results),
        "corpus": corpus_name(results),
        "signature": results.signature,
        "counts": {key: value for key, value in results.manifest["counts"].items() if isinstance(value, int)},
        "sites": results.manifest["sites"],
        "quantities": [quantity for table in results.of_heads() for quantity in _quantities(results, table)],
        "layers": [curve for table in results if table.endswith("_layers") for curve in _layers(results, table)],
        "curves": [figure for known in curves.CURVES for figure in _figures(results, known)],
        "contests": [_contest(results, measure) for measure in WORDS if f"{measure}_best" in results],
        **gallery_data(readable(results)[0]),
        **alike_data(results),
    }


@blame_folder
def model_name(results: Results) -> str:
    """What a run's model is called on pages."""
    settings = results.manifest["settings"]
    name = printable(Path(settings["model"]).resolve().name) if "model" in settings else "given maps"
    return f"{name} (random weights)" if settings.get("weights") == "random" else name


@blame_folder
def corpus_name(results: Results) -> str:
    """What its corpus is called, and whether a parser annotated it."""
    name = printable(", ".join(Path(path).name for path in results.manifest["settings"].get("corpus", ())))
    return f"{name} ({results.annotation.partition(';')[0]} annotation)" if results.annotation is not None else name


def flat_heads(sites: Iterable[Mapping[str, Any]]) -> list[HeadId]:
    """The heads in the order of the views' arrays."""
    return [HeadId(site["kind"], site["layer"] - 1, head) for site in sites for head in range(site["heads"])]


def _quantities(results: Results, name: str) -> list[dict[str, Any]]:
    """The quantities of a table of heads, each as arrays over all heads."""
    table = results[name]
    place = {head: number for number, head in enumerate(flat_heads(results.manifest["sites"]))}
    size = len(place)
    columns = {column: table[column] for column in table.columns}
    contested = "direction" in columns
    found: dict[str, dict[str, Any]] = {}
    for row, quantity in enumerate(columns["quantity"]):
        label = columns["label"][row] if contested else quantity
        direction = columns["direction"][row] if contested else ""
        one = found.setdefault(
            quantity,
            {
                **{"measure": name, "name": quantity, "label": label, "direction": direction},
                "about": results.spelled(about(label, direction, name)),
                "share": quantity not in UNBOUNDED and name != GRADIENTS,
                "baseline_name": "best rule" if contested else BASELINES.get(name, "even"),
                **{key: [None] * size for key in ("value", "low", "high", "baseline")},
                "n": [0] * size,
                "documents": [None] * size,
            },
        )
        at = place[HeadId(columns["kind"][row], columns["layer"][row] - 1, columns["head"][row] - 1)]
        one["n"][at] = columns["n"][row]
        one["documents"][at] = columns["documents"][row] if "documents" in columns else None
        if columns["n"][row]:
            for key in ("value", "low", "high", "baseline"):
                one[key][at] = rounded(columns[key][row])
    return [one for one in found.values() if any(one["n"]) and any(one["value"] + one["baseline"])]


def _layers(results: Results, name: str) -> list[dict[str, Any]]:
    table = results[name]
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for row in table:
        if row["n"]:
            keys = ("layer", "value", "low", "high", "baseline")
            one = found.setdefault((row["quantity"], row["kind"]), {key: [] for key in keys})
            for key in keys:
                one[key].append(row[key] if key == "layer" else rounded(row[key]))
    measure = name.removesuffix("_layers")
    return [{"measure": measure, "name": quantity, "kind": kind, **one} for (quantity, kind), one in found.items()]


def _figures(results: Results, name: str) -> list[dict[str, Any]]:
    """A figure of curves for each kind of attention that has any."""
    found = []
    for kind in dict.fromkeys(site["kind"] for site in results.manifest["sites"]):
        if panels := curves.described(name, results, kind):
            found.append(
                {
                    **{"name": name, "kind": kind, "caption": RUN_FIGURES[name], "n": curves.sizes(name, results, kind)},
                    "panels": [
                        {
                            **{"title": panel.title, "ylabel": panel.ylabel, "measure": panel.measure},
                            # The page draws the baseline of the first series alone: several have their own.
                            **{"limits": panel.limits, "baseline": panel.baseline if len(panel.series) == 1 else None},
                            "series": [{"quantity": quantity, "label": label} for quantity, label in panel.series],
                        }
                        for panel in panels
                    ],
                }
            )
    return found


def _contest(results: Results, measure: str) -> dict[str, Any]:
    counted, axis, rule = WORDS[measure]
    best = results[f"{measure}_best"]
    rows = [{key: rounded(value) if isinstance(value, float) else value for key, value in row.items()} for row in best]
    fair = results.measures[measure].get("selection") == "crossfit"
    return {"measure": measure, "counted": counted, "axis": axis, "rule": rule, "fair": fair, "rows": rows}
