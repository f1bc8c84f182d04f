"""`headscope rerun`: make a run again, and see whether it comes out the same."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Option = typer.Option


def rerun(
    run: Annotated[Path, typer.Argument(help="folder of a run or a study")],
    out: Annotated[
        Path | None, Option("--out", "-o", help="folder for the new one [default: beside it, and removed if it is identical]")
    ] = None,
    model: Annotated[str | None, Option(help="where the model is now, if not where it was")] = None,
    other: Annotated[str | None, Option(help="where the other model of twins is now, if not where it was")] = None,
    corpus: Annotated[list[str] | None, Option(help="where the corpus is now; may be repeated")] = None,
    dev: Annotated[list[str] | None, Option(help="where the corpus is now that a study was tried on; may be repeated")] = None,
    look: Annotated[list[str] | None, Option(help="where the corpus is now that probe edge looked at; may be repeated")] = None,
    device: Annotated[str | None, Option(help="cpu, cuda, cuda:1 [default: as it was made]")] = None,
    engine: Annotated[str, Option(help="local, or processes: several workers, the same bits")] = "local",
    workers: Annotated[int, Option(help="workers of the processes engine", min=1)] = 2,
    quiet: Annotated[bool, Option("--quiet", "-q", help="no progress bar, nothing printed if it is identical")] = False,
) -> None:
    """Make a run or a study again with its own settings, and compare every table and state with it.

    headscope rerun RUN
    headscope rerun RUN --out AGAIN --corpus moved/en.conllu
    headscope rerun STUDY --device cpu

    The model and the corpus must be what they were: their hashes are compared before anything is computed. It ends
    with 0 if all is identical to the last bit, and with 1 if not; then the new folder stays, and it is said what
    differs, by how much, and whether versions, the device or the number of threads were others.
    """
    from headscope.api import rerun as again
    from headscope.cli.printing.progress import bar
    from headscope.cli.printing.signals import exit_code, say
    from headscope.cli.printing.tables import print_table

    def tell(line: str) -> None:
        typer.echo(f"headscope: {line}", err=True)

    try:
        with bar("rerunning", hidden=quiet) as progress:
            found = again(
                run, out, model=model, other=other, corpus=corpus, dev=dev, look=look, device=device, engine=engine, workers=workers,
                progress=progress, tell=tell,
            )  # fmt: skip
    except KeyboardInterrupt as error:
        kept = f"what was finished is kept in {out}" if out is not None else "nothing of it is kept"
        say(f"interrupted; {kept}")
        raise typer.Exit(exit_code(error)) from None
    if found.identical and quiet:
        return
    for line in found.lines():
        typer.echo(line)
    if found.same.differences:
        print_table(found.same.table(), "what differs")
    if found.kept is not None:
        typer.echo(f"the new one is in {found.kept}")
    if not found.identical:
        raise typer.Exit(1)
