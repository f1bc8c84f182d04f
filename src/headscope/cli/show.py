"""`headscope show`: a run's numbers in the terminal, or in another format."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headscope.core.suggest import choose_from, choose_head

if TYPE_CHECKING:
    from headscope.results.results import Results


def show(
    run: Annotated[Path, typer.Argument(help="run folder")],
    table: Annotated[str | None, typer.Argument(help="table to show; without it, a list of the tables")] = None,
    quantity: Annotated[str | None, typer.Option(help="only this quantity")] = None,
    head: Annotated[str | None, typer.Option(help="only this head, counted from 1: 8-10, cross/3-2")] = None,
    where: Annotated[
        list[str] | None, typer.Option(help="only rows with this value, or this slice of a run with --by: COLUMN=VALUE; may be repeated")
    ] = None,
    sort: Annotated[str | None, typer.Option(help="column to sort by, largest first")] = None,
    limit: Annotated[int | None, typer.Option(help="rows at most [default: 40 in the terminal, else all]", min=1)] = None,
    format: Annotated[
        str | None, typer.Option(help="csv, tsv, json, markdown, latex, parquet or arrow, to standard output or to the file of -o")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="write the table to a file: .csv, .tsv, .json, .md, .tex, .parquet or .arrow"),
    ] = None,
) -> None:
    """Show the results of a run or a study.

    headscope show RUN
    headscope show RUN tokens --quantity to_sep --sort value --limit 10
    headscope show RUN entropy --head 8-10
    headscope show RUN relations_best
    headscope show RUN relations --head 8-10 --sort lift
    headscope show RUN entropy --where genre=news --where layer=3
    headscope show RUN tokens -o tokens.csv
    headscope show RUN tokens_layers --quantity to_sep -o table.tex
    headscope show RUN tokens --format json
    """
    from headscope.cli.options import choices
    from headscope.cli.printing.tables import print_table, table_format, write_table
    from headscope.cli.printing.text import print_text
    from headscope.core.heads import HeadId
    from headscope.errors import RunError
    from headscope.results.results import Results

    style = table_format(format, out)
    results = Results.open(run)
    chosen = choices(where or [])
    if (by := results.manifest.get("slices", {}).get("by")) in chosen:
        results = results.slice(**{by: chosen.pop(by)})
    if table is None:
        if style is not None:
            raise RunError("no table was named", f"Name one of {', '.join(results)}")
        if chosen:
            raise RunError(
                f"--where {next(iter(chosen))}= chooses rows of a table", "Name the table as well, as in headscope show RUN entropy"
            )
        _contents(results)
        return
    rows = results[table]
    for column, value in chosen.items():
        known = dict.fromkeys(rows[column])
        rows = rows.where(**{column: rows.parsed(column, value)})
        if not len(rows) and all(isinstance(each, str) for each in known):
            raise RunError(f"{table} has no {column} {value!r}", choose_from(value, known, "It has"))
    if quantity is not None:
        known = dict.fromkeys(rows["quantity"])
        if quantity not in known:
            raise RunError(f"{table} has no quantity {quantity!r}", choose_from(quantity, known, "It has"))
        rows = rows.where(quantity=quantity)
    if head is not None:
        try:
            name = HeadId.parse(head)
        except ValueError as error:
            raise RunError(str(error)) from None
        # `8-10` can name a head of a decoder, too: without a kind it means the kind that the model has.
        kind = {"kind": name.kind} if "/" in head or name.kind in rows["kind"] else {}
        rows = rows.where(layer=name.layer + 1, head=name.head + 1, **kind)
        if not len(rows):
            raise RunError(f"the run has no head {head}", choose_head(head, results.layout.ids()))
    if sort is not None:
        rows = rows.sort(sort, descending=True)
    if style is not None:
        write_table(rows.head(limit) if limit else rows, style, out)
        return
    from headscope.results.notes import choice_note, cut_sentence

    shown = rows.head(limit or 40)
    measure = next((name for name in results.measures if table == name or table.startswith(f"{name}_")), "")
    choice = choice_note(results, measure) if table == f"{measure}_best" else None
    caption = "\n".join(filter(None, (cut_sentence(results, measure), choice, results.signature)))
    print_table(shown, table, caption, "--format tsv")
    if len(shown) < len(rows):
        print_text(f"{len(rows) - len(shown)} more rows: use --limit, --quantity, --head or --sort, or -o FILE.csv for all")


def _contents(results: Results) -> None:
    from headscope.cli.printing.summary import summarise
    from headscope.cli.printing.text import print_text

    print_text("tables: " + ", ".join(f"{name} ({len(results[name])} rows)" for name in results))
    if results.study == "replication":
        from headscope.cli.replicate import print_claims

        print_claims(results)
        return
    summarise(results)
