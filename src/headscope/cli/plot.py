"""`headscope plot`: a figure from a run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, ClassVar

import typer

from headscope.cli.figure_options import FontSize, Signature, Style, Width, figure_options
from headscope.cli.help import Command
from headscope.studies.figure_names import known_figures


class PlotCommand(Command):
    """`headscope plot`, whose help lists the figures."""

    lists: ClassVar = {"Figures": known_figures}


def plot(
    run: Annotated[Path, typer.Argument(help="run folder")],
    figure: Annotated[
        str,
        typer.Argument(help="figure of a run or of a study, listed below"),
    ],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="file to write: .svg, .pdf or .png [default: FIGURE.svg]")] = None,
    quantity: Annotated[
        str | None,
        typer.Option(
            help="what a heatmap shows: to_sep, entropy, nsubj, coreference/all, ...; examples of tenney3: pos, pos/2,5; "
            "relations of clark5: obj,det"
        ),
    ] = None,
    kind: Annotated[str | None, typer.Option(help="encoder, decoder or cross [default: the first that the model has]")] = None,
    direction: Annotated[
        str | None,
        typer.Option(
            metavar="mention-to-antecedent|antecedent-to-mention",
            help="table2: heads by mention-to-antecedent or antecedent-to-mention [default: mention-to-antecedent, as in the paper]",
        ),
    ] = None,
    structural: Annotated[Path | None, typer.Option(help="table3: study by headscope probe structural, for the row of that probe")] = None,
    bars: Annotated[bool, typer.Option("--bars", help="tenney3: bars of the true label and its strongest rival, as in the paper")] = False,
    embedding: Annotated[str | None, typer.Option(help="clark6, twins: metric, nonmetric or classical scaling [default: metric]")] = None,
    sqrt: Annotated[bool, typer.Option("--sqrt", help="square roots of distances, which are a metric")] = False,
    groups: Annotated[int | None, typer.Option(help="dendrogram: number of groups [default: by silhouette]", min=1)] = None,
    linkage: Annotated[str | None, typer.Option(help="linkage of a tree: average, complete or single [default: average]")] = None,
    order: Annotated[str | None, typer.Option(help="distances: heads by layer, or as in the tree [default: layer]")] = None,
    width: Width = None,
    font_size: FontSize = None,
    style: Style = "colour",
    signature: Signature = False,
) -> None:
    """Draw a figure for a paper or a slide. Its caption is in the metadata of the file, and in a text file beside it.

    headscope plot RUN clark2 -o figure2.pdf --width column
    headscope plot RUN clark5 -o figure5.pdf --width page --style grey
    headscope plot RUN clark4 -o figure4.svg
    headscope plot RUN table1 -o relations.pdf
    headscope plot RUN table2 --direction antecedent-to-mention -o table2.pdf
    headscope plot RUN heatmap --quantity nsubj -o nsubj.png
    headscope plot RUN heatmap --quantity relative -o relative.png
    headscope plot KEYS keyword_curves -o fscores.pdf
    headscope plot EDGE tenney3 --bars -o figure3.pdf
    headscope plot PROBE table3 --structural STRUCTURAL -o table3.pdf
    headscope plot RUN clark6 --embedding nonmetric -o figure6.pdf
    headscope plot RUN dendrogram --groups 12 -o tree.pdf
    headscope plot RUN distances --order tree -o distances.png
    """
    from headscope.drawing.theme import save
    from headscope.figures import draw
    from headscope.results.results import Results

    path = out or Path(f"{figure}.svg")
    other = Results.open(structural) if structural is not None else None
    following = {
        "direction": direction,
        "structural": other,
        "bars": bars or None,
        "embedding": embedding,
        "sqrt": sqrt or None,
        "groups": groups,
        "linkage": linkage,
        "order": order,
    }
    choices: dict[str, Any] = {name: value for name, value in following.items() if value is not None}
    choices.update(figure_options(width, font_size, style, signature))
    save(draw(figure, Results.open(run), kind, quantity, **choices), path)
    typer.echo(path)
