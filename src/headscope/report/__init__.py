"""A run as one HTML page that needs no network: what was found in plain words, then each analysis with its numbers."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path
from typing import Any

from headscope.errors import RunError
from headscope.report.contests import contests
from headscope.report.sections import figures, glance, section
from headscope.report.summary import sentences
from headscope.runs.results import Results
from headscope.runs.store import write_atomically
from headscope.runs.table import display
from headscope.views.page import shell
from headscope.views.run import corpus_name, model_name, run_data

_TITLES = {
    "relations": "Heads as parsers: dependency relations",
    "coreference": "Heads as resolvers: coreference",
    "pronouns": "Heads as resolvers: pronouns",
}


def write_report(results: Results, path: Path | None = None) -> Path:
    """Write the page, by default as `report.html` in the run's folder, and return its path."""
    if path is None:
        if results.path is None:
            raise RunError("this run has no folder to put a report in", "Name a file")
        path = results.path / "report.html"
    write_atomically(path, page(results).encode())
    return path


def page(results: Results) -> str:
    """The whole page: it holds its data and its code."""
    return shell(title(results), body(results), {"run": run_data(results)}, style=style())


def title(results: Results) -> str:
    """What the page is called."""
    return f"headscope: {model_name(results)}"


def style() -> str:
    """The style sheet of the page's text."""
    return (files("headscope.report") / "style.css").read_text(encoding="utf-8")


def body(results: Results) -> str:
    """The inside of the page, as HTML: text and tables, and places for the views to be drawn in."""
    from jinja2 import Environment

    template = (files("headscope.report") / "body.html.jinja").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    parts: dict[str, Any] = {
        "findings": sentences(results),
        "glance": glance(results),
        "figures": figures(results),
        "contests": [{**contest, "title": _TITLES.get(contest["name"], contest["name"])} for contest in contests(results)],
        "sections": [section(name, table) for name, table in results.of_heads().items() if f"{name}_best" not in results],
        "map": results.gallery is not None and results.gallery.points is not None,
    }
    return environment.from_string(template).render(
        manifest=results.manifest,
        model=model_name(results),
        corpus=corpus_name(results),
        settings=results.manifest["settings"],
        signature=results.signature,
        heads=sum(site["heads"] for site in results.manifest["sites"]),
        display=display,
        contents=_contents(parts),
        **parts,
    )


def _contents(parts: dict[str, Any]) -> list[tuple[str, str]]:
    """The links at the top: an anchor and its text."""
    return [
        ("summary", "In short"),
        ("explore", "Every head"),
        *([("glance", "At a glance")] if parts["glance"] else []),
        *((f"{figure['name']}-{figure['kind']}", figure["title"]) for figure in parts["figures"]),
        *((contest["name"], contest["name"].capitalize()) for contest in parts["contests"]),
        *([("map", "Alike")] if parts["map"] else []),
        *((part["name"], "In numbers") for part in parts["sections"][:1]),
        ("made", "How it was made"),
    ]
