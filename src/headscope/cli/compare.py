"""`headscope compare`: runs, or studies of one kind, side by side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headscope.cli.figure_options import FontSize, Signature, Style, Width, figure_options
from headscope.core.suggest import choose_from

if TYPE_CHECKING:
    from headscope.comparison.base import Comparison
    from headscope.results.results import Results

_LONG = ("heads", "layers")  # tables of runs that would fill many screens


def compare(
    runs: Annotated[
        list[str],
        typer.Argument(help="two or more folders, of headscope run or of studies of one kind; or a run and slices of it: genre=news"),
    ],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="write a page, compare.html, or a figure: .svg, .pdf, .png")] = None,
    to: Annotated[int, typer.Option(help="number of the run that the others are compared with, counted from 1", min=1)] = 1,
    pairs: Annotated[bool, typer.Option("--pairs", help="compare all with all")] = False,
    table: Annotated[
        str | None, typer.Option(help="only this table: overall, best, layers, heads or types; for studies, one of their tables")
    ] = None,
    quantity: Annotated[str | None, typer.Option(help="list heads by their difference in this quantity")] = None,
    limit: Annotated[int, typer.Option(help="rows to print of each table", min=1)] = 20,
    change: Annotated[bool, typer.Option("--change", help="figure of ablations: the loss in percent instead of scores")] = False,
    width: Width = None,
    font_size: FontSize = None,
    style: Style = "colour",
    signature: Signature = False,
    format: Annotated[
        str | None, typer.Option(help="csv, tsv, json, markdown, latex, parquet or arrow: a table to standard output [default: of heads]")
    ] = None,
) -> None:
    """Compare runs: their numbers side by side, and their differences with intervals. Runs over the same corpus are
    compared document by document.

    headscope compare TRAINED RANDOM
    headscope compare BERT ROBERTA ELECTRA --pairs
    headscope compare A B --quantity to_sep
    headscope compare A B C -o compare.html
    headscope compare RUN genre=news genre=fiction --quantity entropy  # of headscope run --by genre
    headscope compare RUN                                              # all its slices with the first
    headscope compare A B --format csv > differences.csv
    headscope compare PROBE1 PROBE2 PROBE3 --table summary --format latex
    headscope compare ABLATED1 ABLATED2 ABLATED3 -o tasks.svg # Michel et al., Figure 2: the same heads on several tasks
    headscope compare ABLATED1 ABLATED2 --change -o tasks.svg       # in percent of the score
    """
    from headscope.cli.printing.tables import table_format
    from headscope.comparison.studies import compare_any
    from headscope.errors import RunError

    if out is not None and (quantity is not None or format is not None):
        raise RunError("a page always shows all quantities", "Omit --quantity and --format, or --out")
    if change and (out is None or out.suffix.lower() not in (".svg", ".pdf", ".png")):
        raise RunError("--change is only for figures", "Name a file, as in -o tasks.svg, or omit --change")
    format = table_format(format, None)
    comparison = compare_any(_compared(runs), to, pairs)
    study = comparison.results[0].study
    if study is not None and quantity is not None:
        raise RunError("a study has no quantities: its tables are compared", "Omit --quantity, or name a --table")
    if table is not None and table not in comparison.differences:
        raise RunError(f"there is no table {table!r} to compare", choose_from(table, comparison.differences, "There are"))
    if out is not None:
        _write(comparison, out, table, change, figure_options(width, font_size, style, signature))
    elif format is not None:
        _print_text(comparison, table or ("heads" if study is None else next(iter(comparison.differences))), quantity, format)
    else:
        _print(comparison, table, quantity, limit)


def _compared(named: list[str]) -> list[Results]:
    """The results to compare: the runs, the named slices of each run, or all slices of a single run."""
    from headscope.cli.options import choices
    from headscope.results.results import Results

    slices = [name for name in named if "=" in name and not Path(name).exists()]
    runs = [Results.open(Path(name)) for name in named if name not in slices]
    if len(runs) == 1 and not slices and (divided := runs[0].manifest.get("slices")) is not None:
        slices = [f"{divided['by']}={value}" for value in divided["values"]]
    return [run.slice(**choices([choice])) for run in runs for choice in slices] if slices else runs


def _write(comparison: Comparison, out: Path, table: str | None, change: bool, options: dict[str, Any]) -> None:
    from headscope.cli.options import check_page

    if out.suffix.lower() in (".svg", ".pdf", ".png"):
        from headscope.drawing.look import find_look, using
        from headscope.drawing.theme import save
        from headscope.figures.compared import draw

        with using(find_look(options)):
            save(draw(comparison, table, change), out)
    else:
        from headscope.report.comparison import write_comparison

        check_page(out)
        write_comparison(comparison, out)
    typer.echo(out.resolve())


def _print_text(comparison: Comparison, name: str, quantity: str | None, format: str) -> None:
    """Print a table in another format: for a paper as in the terminal, for programs with one row per difference."""
    from headscope.cli.printing.tables import write_table
    from headscope.results.formats import FOR_READING

    keys = _keys(comparison, name, quantity)
    if format in FOR_READING:
        write_table(comparison.wide(name, keys), format, None)
    else:
        table = comparison.differences[name]
        write_table(table.where(quantity=quantity) if quantity is not None else table, format, None)


def _keys(comparison: Comparison, name: str, quantity: str | None) -> list[tuple[Any, ...]] | None:
    """The keys of the rows of a quantity, the largest difference first; None, for all rows, without a quantity."""
    from headscope.errors import RunError

    if name not in comparison.differences:
        raise RunError(
            "the heads of the models do not correspond", f"Omit the options, or name a --table: {', '.join(comparison.differences)}"
        )
    if quantity is None:
        return None
    place = comparison.keys[name].index("quantity") if "quantity" in comparison.keys[name] else -1
    known = dict.fromkeys(comparison.differences[name]["quantity"]) if place >= 0 else {}
    if quantity not in known:
        raise RunError(f"the runs do not share a quantity {quantity!r}", choose_from(quantity, known, "They share"))
    return [key for key in comparison.furthest(name) if key[place] == quantity]


def _print(comparison: Comparison, only: str | None, quantity: str | None, limit: int) -> None:
    from headscope.cli.printing.tables import print_table
    from headscope.cli.printing.text import print_text

    for line in comparison.unlike:
        print_text(f"warning: {line}", err=True)
    for line in comparison.left_out:
        print_text(f"skipped: {line}", err=True)
    for name in [only or "heads"] if quantity is not None else [only] if only is not None else comparison.differences:
        title = f"{comparison.titles[name]} ({name})"
        if quantity is not None:
            rows = _keys(comparison, name, quantity)
            title = f"{comparison.titles[name]} by their difference in {quantity}"
        elif name in _LONG and only is None:
            rows = comparison.furthest(name, ("measure", "quantity"))
            title = f"for each quantity, the {name[:-1]} with the largest difference ({name})"
        else:
            rows = None
        wide = comparison.wide(name, rows)
        more = f"; {len(wide) - limit} more rows: --limit, --format csv" if len(wide) > limit else ""
        print_table(wide.head(limit), title, comparison.counted(name) + more, "--format tsv")
    if only is None:
        _print_further(comparison)
    print_text(f"intervals: {comparison.how}")
    for number, (name, results) in enumerate(zip(comparison.names, comparison.results, strict=True), 1):
        print_text(f"{number}: {name}: {results.signature}")


def _print_further(comparison: Comparison) -> None:
    """Print a further table if the kind of study has one, such as the correlation between tasks of ablations."""
    from headscope.cli.printing.tables import print_table
    from headscope.cli.printing.text import print_text
    from headscope.errors import RunError
    from headscope.studies.registry import REGISTRY

    study = comparison.results[0].study
    if study is None or study not in REGISTRY:
        return
    try:
        if (further := REGISTRY[study].compare_further(comparison.results)) is not None:
            print_table(further[1], further[0])
    except RunError as error:
        print_text(f"skipped: correlation over heads: {error}", err=True)
