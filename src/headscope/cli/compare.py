"""`headscope compare`: two runs, number by number."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headscope.runs.results import Results


def compare(
    runs: Annotated[list[Path], typer.Argument(help="two run folders, or two or more of headscope ablate")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="write a page with all differences, compare.html; of ablation a figure: .svg, .pdf, .png"),
    ] = None,
    quantity: Annotated[str | None, typer.Option(help="heads by their difference in this quantity")] = None,
    limit: Annotated[int, typer.Option(help="so many rows of each table", min=1)] = 20,
    format: Annotated[str | None, typer.Option(help="csv, json, markdown or latex: the table of heads to standard output")] = None,
) -> None:
    """Compare two runs: the second minus the first, with intervals. Runs over the same corpus are compared document by document.

    headscope compare TRAINED RANDOM
    headscope compare A B --quantity to_sep
    headscope compare A B -o compare.html
    headscope compare A B --format csv > differences.csv
    headscope compare ABLATED1 ABLATED2 ABLATED3 -o tasks.svg       # the same heads on several tasks
    """
    from headscope.cli.options import check_page
    from headscope.errors import RunError
    from headscope.runs.compare import compare as compare_runs
    from headscope.runs.results import Results

    if len(runs) < 2:
        raise RunError("there is nothing to compare it with", "Name two folders")
    if out is not None and (quantity is not None or format is not None):
        raise RunError("a page shows every quantity", "Leave out --quantity and --format, or --out")
    opened = [Results.open(path) for path in runs]
    if all(results.study == "ablation" for results in opened):
        if quantity is not None:
            raise RunError("studies of ablation are compared by what is lost without each head", "Leave out --quantity")
        _across(opened, out, format)
        return
    if len(runs) > 2:
        raise RunError(f"{len(runs)} runs are named", "Compare two at a time; more only of headscope ablate")
    if out is not None:
        check_page(out)
    first, second = (Results.open_run(path) for path in runs)
    if out is not None:
        from headscope.report.comparison import write_comparison

        typer.echo(write_comparison(first, second, out).resolve())
        return
    found = compare_runs(first, second)
    if (quantity is not None or format is not None) and found.heads is None:
        raise RunError("the heads of the two models do not correspond", "Compare their layers and best heads: leave the options out")
    heads = found.heads
    if heads is not None and quantity is not None:
        known = dict.fromkeys(heads["quantity"])
        if quantity not in known:
            raise RunError(f"the runs do not share a quantity {quantity!r}", f"They share {', '.join(known)}")
        heads = heads.where(quantity=quantity)
    if heads is not None and format is not None:
        typer.echo(heads.to_text(format), nl=False)
        return
    from headscope.cli.tables import print_table

    for line in found.unlike:
        typer.echo(f"mind: {line}", err=True)
    for line in found.left_out:
        typer.echo(f"left out: {line}", err=True)
    if heads is not None and quantity is not None:
        print_table(heads.largest("difference", limit), f"heads that differ most in {quantity} (b - a)")
    elif heads is not None:
        print_table(heads.largest("difference", len(heads)).first("measure", "quantity").head(limit), "the head that differs most (b - a)")
    if quantity is None and len(found.best):
        print_table(found.best.head(limit), "the best head of each label (b - a)")
    if quantity is None and len(found.layers):
        firsts = found.layers.largest("difference", len(found.layers)).first("measure", "quantity")
        print_table(firsts.head(limit), "the layer that differs most (b - a)")
    typer.echo(f"intervals: {found.how}\na: {first.signature}\nb: {second.signature}")


def _across(studies: list[Results], out: Path | None, format: str | None) -> None:
    """Whether a model misses on one task what it misses on another."""
    from headscope.ablation.across import across
    from headscope.cli.tables import print_table

    table = across(studies)
    if format is not None:
        typer.echo(table.to_text(format), nl=False)
        return
    if out is not None:
        from headscope.figures import save
        from headscope.figures.tasks import draw

        save(draw(studies), out)
        typer.echo(out.resolve())
        return
    print_table(table, "what is lost without each head, on the one and on the other: correlation over heads")
    for number, results in enumerate(studies, 1):
        typer.echo(f"{number}: {results.signature}")
