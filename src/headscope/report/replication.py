"""A replication as one page: every claim of a paper with our number, then each step with its figures."""

from __future__ import annotations

from importlib.resources import files
from itertools import groupby
from pathlib import Path
from typing import Any

from headscope.errors import RunError
from headscope.figures import known_figures
from headscope.report.pictures import picture
from headscope.report.summary import sentences
from headscope.results.notes import counted
from headscope.results.results import Results
from headscope.views.page import shell, templates
from headscope.views.run import model_name
from headscope.views.words import findings

STUDY = "replication"
LEGEND = (
    ("same direction", "Our number is on the same side as the paper's, and its interval (and p, if there is one) excludes the other side."),
    ("same order", "Every pair of numbers that the paper puts in an order has that order here, significantly."),
    ("in our interval", "The published number lies in our interval. With other data, this shows no more than that."),
    ("outside our interval", "The published number lies outside our interval. With other data, that is no contradiction."),
    ("unclear", "Our interval, or p, allows both directions."),
    ("differs", "Our number is significantly on the other side, or the order of a pair is significantly reversed."),
    ("not tested", "Our number has neither an interval nor a p value to base a verdict on; the row says why."),
    ("cannot be compared", "There is no reason to expect the two numbers to agree; the row says why."),
    ("not done", "The step needs something that was not provided."),
    ("property of the data", "The number does not depend on a model: it shows how similar the data are, and does not count as a claim."),
)


def replication_page(results: Results) -> str:
    """The whole page."""
    style = "".join((files("headscope.report") / name).read_text(encoding="utf-8") for name in ("style.css", "replication.css"))
    return shell(f"headscope: {results.manifest['paper']['name']}", _body(results), {}, style=style)


def _body(results: Results) -> str:
    present = set(results["claims"]["verdict"])
    return (
        templates("headscope.report")
        .get_template("replication.html.jinja")
        .render(
            paper=results.manifest["paper"],
            model=model_name(results),
            signature=results.signature,
            findings=results.manifest["findings"],
            legend=[line for line in LEGEND if line[0] in present],
            groups=[group(list(rows), results) for _, rows in groupby(results["claims"], key=lambda row: row["step"])],
            steps=[_step(row, results) for row in results["steps"]],
            manifest=results.manifest,
            contents=[
                ("summary", "In short"),
                ("claims", "Claims"),
                *((f"step-{row['step']}", row["title"]) for row in results["steps"]),
                ("made", "How it was made"),
            ],
            counted=counted,
        )
    )


def group(rows: list[dict[str, Any]], results: Results) -> dict[str, Any]:
    """The claims of one step: differences that all of them share are listed once, others in their rows."""
    titles = {row["step"]: row["title"] for row in results["steps"]}
    parted = [row["differs"].split("; ") for row in rows]
    common = [part for part in parted[0] if part and all(part in other for other in parted)]
    claims = [
        {**row, "said": "; ".join(dict.fromkeys(filter(None, [row["why"], *(part for part in parts if part not in common)])))}
        for row, parts in zip(rows, parted, strict=True)
    ]
    names = rows[0]["step"].split(", ")
    return {"steps": [(name, titles[name]) for name in names], "common": "; ".join(common), "rows": claims}


def _step(row: dict[str, Any], results: Results) -> dict[str, Any]:
    """The page's data of a step."""
    shown = {"name": row["step"], "title": row["title"], "why": row["why"], "verb": row["verb"], "signature": row["signature"]}
    if row["why"] or not row["signature"]:
        return {**shown, "findings": [], "figures": [], "notes": []}
    assert results.path is not None
    step_results = Results.open(Path(results.path) / row["step"])
    more = [*step_results.manifest.get("notes", ()), *step_results.manifest.get("read", ()), *step_results.manifest["dropped"]]
    notes = [*(f"Warning: {line}" for line in step_results.warnings), *more]
    lines = sentences(step_results) if step_results.study is None else findings(step_results)
    return {**shown, "findings": lines, "figures": _figures(step_results, results.manifest["figures"][row["step"]]), "notes": notes}


def _figures(results: Results, wanted: list[dict[str, str]]) -> list[dict[str, str]]:
    """The figures that can be drawn of a step."""
    figures = []
    for figure in wanted:
        try:
            figures.append(
                {"place": figure["place"], "about": known_figures()[figure["name"]], "picture": picture(results, figure["name"])}
            )
        except RunError:  # its table is empty, because the annotation does not allow it
            continue
    return figures
