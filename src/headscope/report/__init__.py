"""A run as one HTML page that needs no network: what was measured, figures, and every number."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from headscope.errors import RunError
from headscope.figures import FIGURES, draw, render
from headscope.report.contests import contests
from headscope.runs.results import BASELINES, Results
from headscope.runs.store import write_atomically
from headscope.runs.table import Table, display

# What to say of each quantity. The names are documented in docs/quantities.md.
QUANTITIES = {
    "previous": "to the previous token",
    "next": "to the next token",
    "self": "to the token itself",
    "to_cls": "to the opening special token ([CLS])",
    "to_sep": "to the closing or parting special tokens ([SEP])",
    "to_punct": "to periods and commas",
    "sep_to_sep": "from [SEP] to [SEP]",
    "other_to_sep": "from all other tokens to [SEP]",
    "entropy": "entropy of the rows, in nats: low is focused, high is broad",
    "entropy_cls": "entropy of the [CLS] row",
    "max_weight": "largest weight of a row",
    "sink_mass": "weight that goes to no token",
    "uuas": "share of annotated edges, directions aside, that the maximum spanning tree of the head has",
}


GLANCE = {"previous": "previous", "next": "next", "self": "itself", "to_cls": "[CLS]", "to_sep": "[SEP]", "to_punct": ". ,"}


def write_report(results: Results, path: Path | None = None) -> Path:
    """Write the page, by default as `report.html` in the run's folder, and return its path."""
    if path is None:
        if results.path is None:
            raise RunError("this run has no folder to put a report in", "Name a file")
        path = results.path / "report.html"
    write_atomically(path, page(results).encode())
    return path


def page(results: Results) -> str:
    """The page's HTML."""
    from jinja2 import Environment

    template = (files("headscope.report") / "page.html.jinja").read_text(encoding="utf-8")
    settings = results.manifest["settings"]
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(template).render(
        manifest=results.manifest,
        model=Path(settings.get("model", "")).name,
        corpus=", ".join(Path(name).name for name in settings.get("corpus", ())),
        settings=settings,
        signature=results.signature,
        figures=_figures(results),
        sections=[_section(name, table) for name, table in results.of_heads().items() if f"{name}_best" not in results],
        contests=contests(results),
        glance=_glance(results),
        heads=sum(site["heads"] for site in results.manifest["sites"]),
        display=display,
    )


def _figures(results: Results) -> list[dict[str, str]]:
    kinds = dict.fromkeys(site["kind"] for site in results.manifest["sites"])
    found = []
    for name in ("clark2", "clark4", "table1", "matrix", "table2", "pronouns"):
        for kind in kinds:
            try:
                svg = render(draw(name, results, kind), "svg").decode()
            except RunError:  # the run lacks what this figure shows
                continue
            caption = FIGURES[name] if len(kinds) == 1 else f"{FIGURES[name]}; {kind} attention"
            found.append({"caption": caption, "svg": svg[svg.index("<svg") :]})
    return found


def _glance(results: Results) -> list[dict[str, Any]]:
    """For every head the surface quantity that takes most of its attention: what it does, in one word."""
    best: dict[tuple[str, int, int], dict[str, Any]] = {}
    for table in (results[name] for name in ("positions", "tokens") if name in results):
        for row in table:
            place = (row["kind"], row["layer"], row["head"])
            if row["quantity"] in GLANCE and row["n"] and row["value"] > best.get(place, {"value": -1.0})["value"]:
                best[place] = row
    layers: dict[tuple[str, int], list[dict[str, Any]]] = {}
    for (kind, layer, _), row in sorted(best.items()):
        layers.setdefault((kind, layer), []).append({**row, "word": GLANCE[row["quantity"]]})
    return [{"kind": kind, "layer": layer, "heads": heads} for (kind, layer), heads in layers.items()]


def _section(name: str, table: Table) -> dict[str, Any]:
    measured = [quantity for quantity in dict.fromkeys(table["quantity"]) if any(table.where(quantity=quantity)["n"])]
    return {
        "name": name,
        "baseline": BASELINES.get(name, "even"),
        "quantities": [_quantity(quantity, table.where(quantity=quantity)) for quantity in measured],
    }


def _quantity(quantity: str, rows: Table) -> dict[str, Any]:
    counted = [row for row in rows.sort("value", descending=True) if row["n"]]
    low, high = min(0.0, counted[-1]["value"]), counted[0]["value"]
    grids: dict[str, dict[int, list[dict[str, Any]]]] = {}
    for row in rows:
        if row["n"]:
            shade = 0.0 if high == low else (row["value"] - low) / (high - low)
            grids.setdefault(row["kind"], {}).setdefault(row["layer"], []).append({**row, "shade": round(shade, 3)})
    return {"name": quantity, "about": QUANTITIES.get(quantity, ""), "top": counted[:5], "grids": grids}
