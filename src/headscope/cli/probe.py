"""`headscope probe`: probes, whose commands follow from their studies, and joining studies by edge probing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headscope.cli.options import examples
from headscope.cli.study import StudyGroup

Option = typer.Option


def join(
    studies: Annotated[list[Path], typer.Argument(help="folders of studies by headscope probe edge, of one model")],
    out: Annotated[Path, Option("--out", "-o", help="folder for all of them together")],
    overwrite: Annotated[bool, Option("--overwrite", help="replace the study in the folder")] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="no summary")] = False,
) -> None:
    """Put tasks that were probed on several corpora into one study, for one table and one figure.

    headscope probe join POS SRL COREF --out ALL
    headscope plot ALL tenney2 -o figure2.pdf
    """
    from headscope.results.results import Results
    from headscope.studies.edge_probe.join import joined

    results = joined([Results.open(path) for path in studies], out, overwrite)
    from headscope.cli.printing.summary import summarise

    summarise(results, quiet)


app = typer.Typer(
    cls=StudyGroup, help="Train small probes on what a model holds, to see what it knows.", no_args_is_help=True, rich_markup_mode=None
)
app.command(help=examples(join.__doc__))(join)
