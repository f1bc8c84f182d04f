"""`headscope report`: a run as one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    run: Annotated[Path, typer.Argument(help="run folder, or that of a study")],
    studies: Annotated[list[Path] | None, typer.Argument(help="folders of studies to put on the same page")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="file to write [default: report.html in the run folder]")] = None,
) -> None:
    """Write one self-contained HTML page with a run's figures and numbers. It works offline and can be sent to anyone.

    headscope report RUN
    headscope report RUN -o page.html
    headscope report RUN FLOW
    """
    from headscope.cli.options import check_page

    if out is not None:
        check_page(out)
    from headscope.report import write_report
    from headscope.results.results import Results

    typer.echo(write_report(Results.open(run), out, [Results.open(path) for path in studies or []]).resolve())
