"""A run in the format of the views (frontend/src/types.ts, Run): numbers of heads, curves, best heads, its gallery."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headscope.core.heads import HeadId
from headscope.core.maps import WEIGHTS
from headscope.core.paths import printable
from headscope.errors import RunError, StaleError
from headscope.figures import RUN_FIGURES, curves
from headscope.figures.contests import WORDS
from headscope.gallery.texts import packed
from headscope.results.gallery import Gallery, Points
from headscope.results.head_labels import readable_labels
from headscope.results.results import BASELINES, Results, blame_folder
from headscope.views.alike import alike_data
from headscope.views.page import rounded
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
        "slices": slices_data(results),
        "contests": [_contest(results, measure) for measure in WORDS if f"{measure}_best" in results],
        "types": types_data(results),
        **gallery_data(results, readable_gallery(results)[0]),
        **alike_data(results),
    }


@blame_folder
def model_name(results: Results) -> str:
    """The name of a run's model on pages, with its weights and maps if they are not the default ones."""
    settings = results.manifest["settings"]
    name = printable(Path(settings["model"]).resolve().name) if "model" in settings else "given maps"
    unusual = {"random weights": settings.get("weights") == "random", f"{results.map} maps": results.map != WEIGHTS}
    wording = ", ".join(words for words, holds in unusual.items() if holds)
    return f"{name} ({wording})" if wording else name


@blame_folder
def corpus_name(results: Results) -> str:
    """The name of a run's corpus on pages, with its slice and its parser, if any."""
    name = printable(", ".join(Path(path).name for path in results.manifest["settings"].get("corpus", ())))
    name = f"{name}, {printable(part)}" if (part := results.manifest.get("slice")) else name
    return f"{name} ({results.annotation.partition(';')[0]} annotation)" if results.annotation is not None else name


def _quantities(results: Results, name: str, whole: Results | None = None) -> list[dict[str, Any]]:
    """The quantities of a table of heads, each as arrays over all heads. `whole` is the run of a slice."""
    table = results[name]
    place = {head: number for number, head in enumerate(results.layout.ids())}
    size = len(place)
    columns = {column: table[column] for column in table.columns}
    contested = "direction" in columns
    quantities: dict[str, dict[str, Any]] = {}
    for row, quantity in enumerate(columns["quantity"]):
        label = columns["label"][row] if contested else quantity
        direction = columns["direction"][row] if contested else ""
        quantity_data = quantities.setdefault(
            quantity,
            {
                **{"measure": name, "name": quantity, "label": label, "direction": direction},
                "about": (whole or results).spelled(about(label, direction, name)),
                "share": quantity not in UNBOUNDED and name != GRADIENTS,
                "baseline_name": "best rule" if contested else BASELINES.get(name, "even"),
                **{key: [None] * size for key in ("value", "low", "high", "baseline")},
                "n": [0] * size,
                "documents": [None] * size,
            },
        )
        at = place[HeadId(columns["kind"][row], columns["layer"][row] - 1, columns["head"][row] - 1)]
        quantity_data["n"][at] = columns["n"][row]
        quantity_data["documents"][at] = columns["documents"][row] if "documents" in columns else None
        if columns["n"][row]:
            for key in ("value", "low", "high", "baseline"):
                quantity_data[key][at] = rounded(columns[key][row])
    return [
        quantity_data
        for quantity_data in quantities.values()
        if any(quantity_data["n"]) and any(quantity_data["value"] + quantity_data["baseline"])
    ]


def types_data(results: Results) -> dict[str, Any] | None:
    """The significant labels of heads; None if the states of the run cannot be read."""
    if (found := readable_labels(results)) is None:
        return None
    place = {head: number for number, head in enumerate(found.heads)}
    labels = [
        {
            **{"head": place[label.head], "type": label.type.name, "what": results.spelled(label.what), "quantity": label.quantity},
            "about": results.spelled(label.sentence),
            **{name: rounded(getattr(label, name)) for name in ("value", "low", "high", "baseline", "survives")},
            **{"n": label.n, "documents": label.documents},
        }
        for label in found.sure
    ]
    return {"labels": labels, "rule": found.rule, "unmeasured": found.unmeasured}


def slices_data(results: Results) -> dict[str, Any] | None:
    """The slices of a run with the quantities of each; None for a run without slices."""
    if (said := results.manifest.get("slices")) is None:
        return None
    parts = {value: results.slice(**{said["by"]: value}) for value in said["values"]}
    return {
        "by": said["by"],
        "values": [
            {
                **{"name": value, "documents": said["values"][value]["documents"], "signature": part.signature},
                "quantities": [quantity for table in part.of_heads() for quantity in _quantities(part, table, results)],
            }
            for value, part in parts.items()
        ],
    }


def _layers(results: Results, name: str) -> list[dict[str, Any]]:
    table = results[name]
    layers: dict[tuple[str, str], dict[str, Any]] = {}
    for row in table:
        if row["n"]:
            keys = ("layer", "value", "low", "high", "baseline")
            curve = layers.setdefault((row["quantity"], row["kind"]), {key: [] for key in keys})
            for key in keys:
                curve[key].append(row[key] if key == "layer" else rounded(row[key]))
    measure = name.removesuffix("_layers")
    return [{"measure": measure, "name": quantity, "kind": kind, **curve} for (quantity, kind), curve in layers.items()]


def _figures(results: Results, name: str) -> list[dict[str, Any]]:
    """A figure of curves for each kind of attention that has any."""
    figures = []
    for kind in dict.fromkeys(site["kind"] for site in results.manifest["sites"]):
        if panels := curves.described(name, results, kind):
            figures.append(
                {
                    **{"name": name, "kind": kind, "caption": RUN_FIGURES[name], "n": curves.sizes(name, results, kind)},
                    "panels": [
                        {
                            **{"title": panel.title, "ylabel": panel.ylabel, "measure": panel.measure},
                            # The page draws a baseline only for a single series, because each series has a separate
                            # one.
                            **{"limits": panel.limits, "baseline": panel.baseline if len(panel.series) == 1 else None},
                            "series": [{"quantity": quantity, "label": label} for quantity, label in panel.series],
                        }
                        for panel in panels
                    ],
                }
            )
    return figures


def _contest(results: Results, measure: str) -> dict[str, Any]:
    counted, axis, rule = WORDS[measure]
    best = results[f"{measure}_best"]
    rows = [{key: rounded(value) if isinstance(value, float) else value for key, value in row.items()} for row in best]
    fair = results.measures[measure].get("selection") == "crossfit"
    return {"measure": measure, "counted": counted, "axis": axis, "rule": rule, "fair": fair, "rows": rows}


def readable_gallery(results: Results) -> tuple[Gallery | None, str]:
    """A run's gallery and "", or None and a message if its file is damaged; the run is complete without it."""
    try:
        return results.gallery, ""
    except StaleError:
        raise
    except RunError:
        return None, "its gallery cannot be read"


def gallery_data(results: Results, gallery: Gallery | None) -> dict[str, Any]:
    """Texts with maps of all heads, examples of what heads are best at, and heads as points; all may be missing."""
    if gallery is None:
        return {"texts": [], "stacks": [], "examples": [], "map": None}
    return {
        "texts": gallery.texts,
        "stacks": [{"text": text, "maps": {str(head): packed(map) for head, map in maps.items()}} for text, maps in gallery.stacks],
        "examples": [
            {
                **{"head": str(example.head), "measure": example.measure, "quantity": example.quantity},
                **{"value": rounded(example.value), "n": example.n, "text": example.text, "map": packed(example.map)},
            }
            for example in gallery.examples
        ],
        "map": _map(results, gallery.points) if gallery.points is not None else None,
    }


def _map(results: Results, points: Points) -> dict[str, Any]:
    return {
        "x": list(map(rounded, points.x.tolist())),
        "y": list(map(rounded, points.y.tolist())),
        "behaviour": list(map(results.spelled, points.behaviour)),
        "stress": rounded(points.stress),
        "about": f"mean Jensen–Shannon divergence in nats over {points.rows:,} rows of attention of texts that the run kept",
        "neighbours": [[[head, rounded(distance)] for head, distance in nearest] for nearest in points.neighbours],
    }
