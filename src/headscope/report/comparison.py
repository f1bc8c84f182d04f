"""The comparison of runs, or of studies of one kind, as one offline page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from headscope.comparison.base import Comparison
from headscope.figures.compared import draw
from headscope.report import style
from headscope.report.pictures import image
from headscope.results.folder import write_atomically
from headscope.results.formats import display
from headscope.studies.registry import REGISTRY
from headscope.views.compare import described
from headscope.views.page import shell

_ROWS = 60  # of a table; the rest is in --format csv
_OPEN = 40  # rows of a table that is open from the start
_DRAWN = ("overall", "best", "layers")  # tables of runs that have a figure
_NUMBERS = (
    "Every difference is the second minus the first, with its 95% interval over resampled documents. Among many "
    "differences some intervals exclude 0 by chance: a star marks a difference that is significant after correction for its table."
)


def write_comparison(comparison: Comparison, path: Path) -> Path:
    """Write the page and return its path."""
    title = f"headscope: {' and '.join(comparison.names)}"
    write_atomically(path, shell(title, body(comparison), data(comparison), style=style()).encode())
    return path


def data(comparison: Comparison, names: tuple[str, str] | None = None) -> dict[str, Any]:
    """The data of the view of two runs; empty for more runs, or for studies."""
    return {"comparison": described(comparison, names)} if _two_runs(comparison) else {}


def body(comparison: Comparison) -> str:
    """The body of the page: what is compared, caveats, tables, figures, and for two runs a place for the view."""
    number, what = len(comparison.results), "runs" if comparison.results[0].study is None else "studies"
    word = {2: "Two", 3: "Three", 4: "Four"}.get(number, str(number))
    view = Markup("<section><h2>Head by head</h2><div data-view='compare'></div></section>") if _two_runs(comparison) else Markup()
    return Markup(
        "<div class='page'><div class='content'><header><h1>{word} {what} side by side</h1>{runs}{mind}</header><main>"
        "<p>{numbers}</p><p class='note'>Intervals of differences: "
        "{how}.</p>{tables}{view}<section><h2>Skipped</h2>{left_out}</section></main></div></div>"
    ).format(
        word=word,
        what=what,
        runs=Markup("<ol class='compared'>") + Markup().join(map(_run, comparison.names, comparison.results)) + Markup("</ol>"),
        mind=_differences_note(comparison),
        numbers=_NUMBERS,
        how=comparison.how,
        tables=Markup().join(_section(comparison, name) for name in comparison.differences if not view or name not in ("heads", "layers")),
        view=view,
        left_out=_list(comparison.left_out) if comparison.left_out else Markup("<p>Nothing.</p>"),
    )


def _two_runs(comparison: Comparison) -> bool:
    return len(comparison.results) == 2 and comparison.results[0].study is None


def _run(name: str, results: Any) -> Markup:
    return Markup("<li>{}<br><span class='signature'>{}</span></li>").format(name, results.signature)


def _differences_note(comparison: Comparison) -> Markup:
    """A visible note on other differences between the runs."""
    if not comparison.unlike:
        return Markup()
    return Markup("<div class='mind' role='note'>They differ in more than model and corpus, which may explain differences:{}</div>").format(
        _list(comparison.unlike)
    )


def _list(lines: tuple[str, ...]) -> Markup:
    return Markup("<ul>") + Markup().join(Markup("<li>{}</li>").format(line) for line in lines) + Markup("</ul>")


def _section(comparison: Comparison, name: str) -> Markup:
    """A section with a table, and with its figure if it has one."""
    rows = (
        comparison.furthest(name, ("measure", "quantity")) if name in ("heads", "layers") and comparison.results[0].study is None else None
    )
    table = comparison.wide(name, rows)
    shown = table.head(_ROWS)
    numbers = set(comparison.keys[name])
    head = Markup().join(Markup("<th scope='col'{}>{}</th>").format(_text_class(column in numbers), column) for column in table.columns)
    cells = Markup().join(
        Markup("<tr>{}</tr>").format(
            Markup().join(Markup("<td{}>{}</td>").format(_text_class(column in numbers), display(value)) for column, value in row.items())
        )
        for row in shown
    )
    which = " (the largest difference of each quantity)" if rows is not None else ""
    more = f"; {len(table) - len(shown)} more rows with --format csv" if len(table) > len(shown) else ""
    title = f"{comparison.titles[name][:1].upper()}{comparison.titles[name][1:]}{which}"
    picture = Markup()
    if _is_drawn(comparison, name) and not (name == "best" and _two_runs(comparison)):  # the view draws it
        first = name == next(iter(comparison.values))
        alt = f"{comparison.titles[name]}; the numbers are in the table"
        picture = Markup("<img class='drawn' alt='{}' src='{}'>").format(alt, image(draw(comparison, None if first else name)))
    return Markup(
        "<section id='{}'><h2>{}</h2>{}<details{}><summary>In numbers: {}{}</summary><div class='scroll' tabindex='0' role='region' "
        "aria-label='{}'><table class='best' data-table='{}'><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div></details></section>"
    ).format(
        name,
        title,
        picture,
        Markup(" open" if len(shown) <= _OPEN else ""),
        comparison.counted(name),
        more,
        escape(title),
        name,
        head,
        cells,
    )


def _is_drawn(comparison: Comparison, name: str) -> bool:
    """Whether a table has a figure."""
    study = comparison.results[0].study
    return name in (
        _DRAWN if study is None else [table.table for table in REGISTRY[study].compared if table.drawn] if study in REGISTRY else ()
    )


def _text_class(text: bool) -> Markup:
    return Markup(" class='as-text'") if text else Markup()
