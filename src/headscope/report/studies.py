"""The parts of a report about studies: what each found, its figures, and its summary beside what was published."""

from __future__ import annotations

import base64
from typing import Any

from headscope.drawing.saving import render
from headscope.figures import draw
from headscope.results.few_documents import counted
from headscope.results.results import Results
from headscope.results.table import display
from headscope.studies.registry import REGISTRY
from headscope.views.findings import findings


def study_title(results: Results) -> str:
    """What a study is called on pages."""
    return REGISTRY[results.study or ""].title


def study_section(results: Results) -> dict[str, Any]:
    """What a page says of a study."""
    study = REGISTRY[results.study or ""]
    table = results["summary"]
    columns = [name for name in table.columns if any(value is not None for value in table[name])]
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
        "told": [isinstance(next((value for value in table[name] if value is not None), None), str) for name in columns],
        "rows": [[counted(row[name]) if name == "documents" else display(row[name]) for name in columns] for row in table],
        "notes": [*results.manifest.get("notes", ()), *results.manifest.get("read", ()), *results.manifest["dropped"]],
    }


def picture(results: Results, name: str) -> str:
    """A figure as the address of an image that holds it."""
    return "data:image/svg+xml;base64," + base64.b64encode(render(draw(name, results), "svg")).decode("ascii")
