"""`headscope plot`: a figure from a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def plot(
    run: Annotated[Path, typer.Argument(help="run folder")],
    figure: Annotated[str, typer.Argument(help="clark2, clark4, table1, table2, pronouns, matrix or heatmap")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="file to write: .svg, .pdf or .png [default: FIGURE.svg]")] = None,
    quantity: Annotated[str | None, typer.Option(help="what a heatmap shows: to_sep, entropy, nsubj, coreference/all, ...")] = None,
    kind: Annotated[str | None, typer.Option(help="encoder, decoder or cross [default: the first there is]")] = None,
) -> None:
    """Draw a figure for a paper or a slide.

    headscope plot RUN clark2 -o figure2.pdf
    headscope plot RUN clark4 -o figure4.svg
    headscope plot RUN table1 -o relations.pdf
    headscope plot RUN heatmap --quantity nsubj -o nsubj.png
    """
    from headscope.figures import draw, save
    from headscope.runs.results import Results

    path = out or Path(f"{figure}.svg")
    save(draw(figure, Results.open(run), kind, quantity), path)
    typer.echo(path)
