"""`headscope replicate`: a paper's analyses repeated, our number beside each published one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headscope.models import MODEL_HELP

if TYPE_CHECKING:
    from rich.console import Console

    from headscope.engine.shards import Progress
    from headscope.results.results import Results

Option = typer.Option
_WIDE = 120  # columns of a terminal from which claims are shown as a table
_COLOURS = {"same direction": "green", "same order": "green", "in our interval": "green", "differs": "red", "unclear": "yellow"}


def replicate(
    recipe: Annotated[str, typer.Argument(help="clark2019, westera, tenney2019, michel2019, stefanik, hewitt2019, or your own TOML file")],
    model: Annotated[str, Option(help=MODEL_HELP)] = "mini",
    corpus: Annotated[
        list[str] | None,
        Option(help="file for all steps, or ROLE=FILE for the steps that need such data; may be repeated [default: sampler (embedded)]"),
    ] = None,
    out: Annotated[Path | None, Option("--out", "-o", help="folder for the results [default: runs/RECIPE-MODEL-CORPUS]")] = None,
    full: Annotated[bool, Option("--full", help="without the recipe's limits on texts and training")] = False,
    device: Annotated[str | None, Option(help="cpu, cuda, cuda:1, auto [default: cuda if available]")] = None,
    resume: Annotated[bool, Option("--resume", help="continue the replication in the folder")] = False,
    overwrite: Annotated[bool, Option("--overwrite", help="replace the replication in the folder")] = False,
    report: Annotated[bool, Option("--report/--no-report", help="also write a page, report.html")] = True,
    quiet: Annotated[bool, Option("--quiet", "-q", help="no progress, no table")] = False,
) -> None:
    """Repeat the analyses of a paper that the given data allow, and show our number beside each published one, with
    what differs.

    headscope replicate clark2019
    headscope replicate hewitt2019 --corpus treebank=en_ewt-train.conllu --corpus treebank-dev=en_ewt-dev.conllu --full
    headscope replicate michel2019 --model ./mnli --corpus labelled=mnli-dev.jsonl --out MICHEL
    headscope replicate stefanik --corpus keyphrases=train.jsonl --corpus keyphrases-dev=dev.jsonl
    headscope replicate my-recipe.toml --resume
    headscope show runs/clark2019-mini-sampler claims --format csv > claims.csv
    """
    from headscope.replication.study import corpora_by_role, usual_folder

    by_role = corpora_by_role(corpus or [])
    folder = out or usual_folder(recipe, model, by_role)
    results = _replicate(recipe, folder, model, by_role, device, full, resume, overwrite, quiet)
    if not quiet:
        print_claims(results)
    if report:
        from headscope.report import write_report

        page = write_report(results).resolve()
        if not quiet:
            typer.echo(page)


def _replicate(
    recipe: str,
    folder: Path,
    model: str,
    corpora: dict[str, list[str]],
    device: str | None,
    full: bool,
    resume: bool,
    overwrite: bool,
    quiet: bool,
) -> Results:
    from headscope.cli.printing.progress import bar, interrupted
    from headscope.replication.study import replicate

    @contextmanager
    def watch(number: int, steps: int, title: str) -> Iterator[Progress]:
        if not quiet:
            typer.echo(f"step {number} of {steps}: {title}", err=True)
        with bar(f"{number}/{steps}", hidden=quiet) as progress:
            yield progress

    with interrupted(folder):
        return replicate(
            recipe, folder, model=model, corpora=corpora, device=device, full=full, resume=resume, overwrite=overwrite, watch=watch
        )


def _documents(row: Mapping[str, Any]) -> str:
    from headscope.results.notes import counted

    return "" if row.get("documents") is None else f", {counted(row['documents'])} documents"


def print_claims(results: Results) -> None:
    """Print the claims step by step: the published number, ours, the verdict, and what differs."""
    from rich.console import Console

    from headscope.cli.printing.text import print_text
    from headscope.report.replication import group

    paper = results.manifest["paper"]
    cited = ", ".join(str(part) for part in (paper["authors"], paper["title"], paper["venue"], paper["year"]) if part)
    print_text(f"\n{cited}", "italic")
    console = Console(highlight=False)
    show = _print_blocks if console.is_terminal and console.width < _WIDE else _print_columns
    for _, rows in groupby(results["claims"], key=lambda row: row["step"]):
        claims = group(list(rows), results)
        print_text("\n" + ", ".join(title for _, title in claims["steps"]), "bold")
        if claims["common"]:
            print_text(f"what differs: {claims['common']}", "italic")
        show([_cells(row) for row in claims["rows"]], console)
    for line in (*results.manifest["findings"], *results.manifest["notes"]):
        print_text(line)
    print_text(results.signature, "dim")


def _cells(row: Mapping[str, Any]) -> dict[str, str]:
    """A claim as text, by column."""
    return {
        "where": row["place"],
        "claim": row["says"] + (f" ({row['unit']})" if row["unit"] else ""),
        "published": row["published"],
        "ours": row["ours"] + (f", n {row['n']:,} {row['n_counts']}".rstrip() + _documents(row) if row["n"] else ""),
        "holds?": row["verdict"],
        "what else differs": row["said"],
    }


def _print_blocks(rows: Sequence[Mapping[str, str]], console: Console) -> None:
    """Print several lines per claim, for a terminal that is too narrow for columns of text."""
    from rich.text import Text

    from headscope.cli.printing.text import print_text

    for row in rows:
        console.print(Text.assemble(row["where"], "  ", (row["holds?"], _COLOURS.get(row["holds?"], "dim"))))
        print_text(f"  {row['claim']}")
        print_text(f"  published {row['published']}; ours {row['ours']}", indent=4)
        if row["what else differs"]:
            print_text(f"  what else differs: {row['what else differs']}", "dim", indent=4)


def _print_columns(rows: Sequence[Mapping[str, str]], console: Console) -> None:
    """Print one row per claim, as wide as the terminal or, without a terminal, as wide as its texts."""
    from rich import box
    from rich.console import Console as Measuring
    from rich.table import Table
    from rich.text import Text

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold", expand=console.is_terminal)
    for name, share in (("where", 3), ("claim", 8), ("published", 5), ("ours", 5), ("holds?", 3), ("what else differs", 6)):
        table.add_column(name, ratio=share if console.is_terminal else None, overflow="fold")
    for row in rows:
        styles = {"holds?": _COLOURS.get(row["holds?"], "dim"), "what else differs": "dim"}
        table.add_row(*(Text(cell, style=styles.get(name, "")) for name, cell in row.items()))
    if not console.is_terminal:
        console.width = Measuring(width=100_000).measure(table).maximum
    console.print(table)
