"""`headscope report` and `headscope serve`: runs as pages, in a file and in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    run: Annotated[Path, typer.Argument(help="folder of a run or a study")],
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


def serve(
    runs: Annotated[list[Path] | None, typer.Argument(help="run folders, or folders that hold run folders", metavar="RUN")] = None,
    model: Annotated[list[str] | None, typer.Option(help="model that reads typed texts; may be repeated")] = None,
    port: Annotated[int, typer.Option(help="port to listen on; 0: any free port", min=0, max=65535)] = 8765,
    host: Annotated[str, typer.Option(help="address to listen on; the default can only be reached from this machine")] = "127.0.0.1",
    max_tokens: Annotated[int, typer.Option(help="longest text, in tokens; the rest is cut off", min=16)] = 512,
    open: Annotated[bool, typer.Option(help="open the page in a browser")] = False,
) -> None:
    """Serve runs as pages, with an address for every head, comparisons of two runs, and a box to type a sentence into.

    headscope serve RUN
    headscope serve runs/ --model bert-base-uncased --open
    """
    from headscope.app.server import serve as start

    start(runs or [], model or [], host, port, max_tokens, open, typer.echo)
