"""`headscope compare`: two runs, number by number."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headscope.runs.results import Results


def compare(
    a: Annotated[Path, typer.Argument(help="run folder")],
    b: Annotated[Path, typer.Argument(help="the run folder to compare it with")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="write a page with all differences: compare.html")] = None,
    quantity: Annotated[str | None, typer.Option(help="heads by their difference in this quantity")] = None,
    limit: Annotated[int, typer.Option(help="so many rows of each table", min=1)] = 20,
    format: Annotated[str | None, typer.Option(help="csv, json, markdown or latex: the table of heads to standard output")] = None,
) -> None:
    """Compare two runs: the second minus the first, with intervals. Runs over the same corpus are compared document by document.

    headscope compare TRAINED RANDOM
    headscope compare A B --quantity to_sep
    headscope compare A B -o compare.html
    headscope compare A B --format csv > differences.csv
    headscope compare ABLATED1 ABLATED2        # the same heads on two tasks
    """
    from headscope.cli.options import check_page
    from headscope.errors import RunError
    from headscope.runs.compare import compare as compare_runs
    from headscope.runs.results import Results

    if out is not None and (quantity is not None or format is not None):
        raise RunError("a page shows every quantity", "Leave out --quantity and --format, or --out")
    if out is not None:
        check_page(out)
    if Results.open(a).study == Results.open(b).study == "ablation":
        if out is not None or quantity is not None:
            raise RunError("two studies of ablation are compared by one table", "Leave out --out and --quantity")
        _across(Results.open(a), Results.open(b), format)
        return
    first, second = Results.open_run(a), Results.open_run(b)
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


def _across(first: Results, second: Results, format: str | None) -> None:
    """Whether a model misses on one task what it misses on another."""
    from headscope.ablation.across import across
    from headscope.cli.tables import print_table

    table = across(first, second)
    if format is not None:
        typer.echo(table.to_text(format), nl=False)
        return
    print_table(table, "what is lost without each head, on the one and on the other: correlation over heads")
    typer.echo(f"a: {first.signature}\nb: {second.signature}")
