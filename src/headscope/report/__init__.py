"""Reports: a run or studies as one HTML page that needs no network."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Sequence
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from headscope.core.heads import find_head
from headscope.errors import RunError
from headscope.measures import REGISTRY
from headscope.report.contests import contests
from headscope.report.opening import opening
from headscope.report.sections import absent_quantities, alike_section, figures, glance, section, study_section
from headscope.report.summary import sentences
from headscope.results.folder import write_atomically
from headscope.results.formats import display
from headscope.results.head_types import TYPES
from headscope.results.notes import counted, few_documents
from headscope.results.results import Results, blame_folder
from headscope.views.alike import measured
from headscope.views.page import shell, templates
from headscope.views.run import corpus_name, model_name, readable_gallery, run_data
from headscope.views.words import whose

_HEAD = re.compile(r"\b(?:(?:encoder|decoder|cross)/)?[0-9]+-[0-9]+\b")
_TITLES = {
    "relations": "Heads as parsers: dependency relations",
    "coreference": "Heads as resolvers: coreference",
    "pronouns": "Heads as resolvers: pronouns",
}


def write_report(results: Results, path: Path | None = None, studies: Sequence[Results] = ()) -> Path:
    """Write the page, by default `report.html` in the run's folder, with parts for `studies`; return its path."""
    if path is None:
        if results.path is None:
            raise RunError("this run has no folder for a report", "Name a file")
        path = results.path / "report.html"
    write_atomically(path, page(results, studies).encode())
    return path


def page(results: Results, studies: Sequence[Results] = ()) -> str:
    """The whole page, with its data and code."""
    for part in (results, *studies) if studies else ():
        if part.study == "replication":
            raise RunError(f"{part.path} is a replication, which has a separate page", f"headscope report {part.path}")
    if results.study == "replication":
        from headscope.report.replication import replication_page

        return replication_page(results)
    data = {"run": run_data(results)} if results.study is None else {}  # a study has no views of heads
    return shell(title(results), body(results, studies), data, style=style())


def title(results: Results) -> str:
    """The title of the page."""
    return f"headscope: {model_name(results)}"


def style() -> str:
    """The style sheet of the page's text."""
    return (files("headscope.report") / "style.css").read_text(encoding="utf-8")


@blame_folder
def body(results: Results, studies: Sequence[Results] = ()) -> str:
    """The body of the page as HTML: text, tables, and places for the views."""
    for study in studies:
        if study.study is None:
            raise RunError(f"{study.path} is a run, not a study", "Name the run first, then studies, such as those of headscope flow")
    looked_at = [*([results] if results.study is not None else []), *studies]
    environment = templates("headscope.report")
    environment.filters["linked"] = partial(_linked, set(map(str, results.layout.ids())))
    gallery, damaged = readable_gallery(results)
    parts: dict[str, Any] = {
        "opening": opening(results, gallery) if results.study is None else None,
        "findings": sentences(results) if results.study is None else [],
        "explore": results.study is None,
        "studies": [study_section(study) for study in looked_at],
        "types": [type for type in TYPES if type.measure in REGISTRY] if results.study is None else [],
        "glance": glance(results),
        "figures": figures(results),
        "contests": [{**contest, "title": _TITLES.get(contest["name"], contest["name"])} for contest in contests(results)],
        "sections": [section(results, name) for name in results.of_heads() if f"{name}_best" not in results],
        "map": measured(results) or (gallery is not None and gallery.points is not None),
        "alike": alike_section(results),
    }
    return environment.get_template("body.html.jinja").render(
        spelled=results.spelled,
        meaningless=results.special_tokens.uncounted | absent_quantities(results),
        manifest={**results.manifest, "dropped": [*results.manifest.get("dropped", ()), *([damaged] if damaged else [])]},
        model=model_name(results),
        corpus=corpus_name(results),
        readings=results.manifest.get("readings", ()),
        signature=results.signature,
        few=few_documents({f"{number}/{name}": part[name] for number, part in enumerate((results, *studies)) for name in part}),
        warnings=list(dict.fromkeys(line for each in (results, *studies) for line in each.warnings)),
        whose=list(dict.fromkeys(line for each in (results, *studies) for line in whose(each))),
        heads=_heads(results),
        kinds=len({site["kind"] for site in results.manifest["sites"]}),
        special=results.special_tokens,
        causal=results.layout.causal,
        example=_example(results),
        head_of=results.head_of,
        display=display,
        counted=counted,
        contents=_contents(parts),
        **parts,
    )


def _linked(known: Collection[str], text: str) -> Markup:
    """A text in which every name of a head is a link to the head."""
    link = '<a href="#head={0}">{0}</a>'
    return Markup(_HEAD.sub(lambda name: link.format(name.group()) if name.group() in known else name.group(), escape(text)))


def _heads(results: Results) -> str:
    """How many heads there are in how many layers, by kind of attention if there are several."""
    sites = results.manifest["sites"]
    layers = Counter(site["kind"] for site in sites)
    if len(layers) == 1:
        layers_text = f"{len(sites)} layers"
    else:
        layers_text = ", ".join(f"{number} {kind}" for kind, number in layers.items()) + " layers of attention"
    return f"{sum(site['heads'] for site in sites)} in {layers_text}"


def _example(results: Results) -> str:
    """An explanation of the names of heads, for a head that the model has."""
    heads = results.layout.ids()
    if str(heads[0]) == "1-1" and find_head("8-10", heads) is not None:
        return "8-10 is the tenth head of the eighth layer"
    last = heads[-1]
    kind = "" if results.layout.one_kind else f" of {last.kind} attention"
    return f"{last} is head {last.head + 1} of layer {last.layer + 1}{kind}"


def _contents(parts: dict[str, Any]) -> list[tuple[str, str]]:
    """The links at the top: an anchor and its text."""
    return [
        *([("strongest", "The strongest finding")] if parts["opening"] else []),
        *([("explore", "Every head")] if parts["explore"] else []),
        *([("summary", "All findings")] if parts["explore"] else []),
        *([("types", "Types")] if parts["types"] else []),
        *([("glance", "At a glance")] if parts["glance"] else []),
        *((f"{figure['name']}-{figure['kind']}", figure["title"]) for figure in parts["figures"]),
        *((contest["name"], contest["name"].capitalize()) for contest in parts["contests"]),
        *([("map", "Alike")] if parts["map"] else []),
        *((f"study-{number}", study["title"]) for number, study in enumerate(parts["studies"], 1)),
        *((part["name"], "In numbers") for part in parts["sections"][:1]),
        ("made", "How it was made"),
    ]
