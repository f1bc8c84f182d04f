"""`headscope alike`: which heads of a run attend alike."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headscope.comparison.alike import Alike
    from headscope.results.results import Results
    from headscope.results.table import Table
    from headscope.stats.clusters import Grouping


def alike(
    run: Annotated[Path, typer.Argument(help="run folder, measured with distances")],
    kind: Annotated[str | None, typer.Option(help="encoder, decoder or cross [default: the one with the most heads]")] = None,
    embedding: Annotated[str, typer.Option(help="scaling for the columns x and y: metric, nonmetric or classical")] = "metric",
    sqrt: Annotated[bool, typer.Option("--sqrt", help="embed and group by square roots of distances, which are a metric")] = False,
    groups: Annotated[
        int | None,
        typer.Option(help="number of groups [default: from 2 to 20, the one with the highest silhouette]", min=1),
    ] = None,
    linkage: Annotated[str, typer.Option(help="linkage of groups: average, complete or single")] = "average",
    epsilon: Annotated[
        list[float] | None, typer.Option(help="list heads with a near-duplicate closer than this, in the unit of the run; may be repeated")
    ] = None,
    pairs: Annotated[int, typer.Option(help="number of closest pairs to list", min=1)] = 10,
    format: Annotated[
        str | None,
        typer.Option(help="csv, tsv, json, markdown, latex, parquet or arrow: the table of heads to standard output, or to the file of -o"),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="write the table of heads: .csv, .tsv, .json, .md, .tex, .parquet or .arrow")
    ] = None,
) -> None:
    """Show which heads attend alike: by layer, near-duplicates, the closest pairs, and groups with what their heads do.

    headscope run --measures distances,positions,tokens,entropy --out RUN
    headscope alike RUN
    headscope alike RUN --groups 12 --linkage complete
    headscope alike RUN --epsilon 0.03
    headscope alike RUN --embedding nonmetric -o heads.csv
    headscope alike RUN --format latex > heads.tex
    headscope plot RUN clark6 -o figure6.pdf
    """
    from headscope.cli.printing.tables import table_format, write_table
    from headscope.comparison.alike import alike as find
    from headscope.errors import RunError
    from headscope.results.results import Results

    style = table_format(format, out)
    if epsilon is not None and min(epsilon, default=1) <= 0:
        raise RunError(f"epsilon is {min(epsilon):g}, not above 0", "Use a distance above 0")
    results = Results.open_run(run)
    likeness = find(results, kind)  # type: ignore[arg-type]
    if style is not None:
        write_table(likeness.table(embedding, sqrt, 0, groups, linkage), style, out)  # type: ignore[arg-type]
        return
    _print(results, likeness, likeness.groups(groups, linkage, sqrt), epsilon or [], pairs, chosen=groups is None)  # type: ignore[arg-type]


def _print(results: Results, likeness: Alike, grouping: Grouping, epsilons: list[float], count: int, chosen: bool) -> None:
    from headscope.cli.printing.tables import print_table
    from headscope.cli.printing.text import print_text
    from headscope.comparison.alike import group_table, groups_sentence, layers_sentence, twins_sentence, unit

    def print_line(line: str, style: str = "") -> None:
        print_text(results.spelled(line), style)

    print_line(
        f"{len(likeness.heads)} heads of {likeness.kind} attention, {likeness.n:,} rows; Jensen-Shannon divergences in {unit(results)}"
    )
    for line in filter(None, (layers_sentence(results, likeness.kind), twins_sentence(results, likeness.kind))):
        print_line(line)
    for epsilon in epsilons:
        close = likeness.redundant(epsilon)
        print_line(f"\n{len(close.heads)} of {len(likeness.heads)} heads have a near-duplicate (distance < {epsilon:g})")
        for linked in close.sets:
            print_line(f"  {' '.join(map(str, linked))}")
    pairs = closest_table(results, likeness, count)
    print_table(pairs, f"\nthe {len(pairs)} closest pairs")
    print_line(groups_sentence(likeness, grouping) if chosen and grouping.number == 1 else grouping.about, "italic")
    for row in group_table(likeness, grouping):
        number = f"{row['heads']} head{'s' if row['heads'] > 1 else ''}"
        lies = f", silhouette {row['silhouette']:.2f}" if grouping.number > 1 and row["heads"] > 1 else ""
        print_line(f"{row['group']:>3}  {number}{lies}: {row['behaviours']}")
        print_line(f"     {row['members']}", "dim")
    print_line(results.signature, "dim")


def closest_table(results: Results, likeness: Alike, count: int) -> Table:
    """The closest pairs with their intervals, and what the two heads do."""
    from headscope.comparison.alike import closest
    from headscope.results.table import Table

    rows = closest(results, likeness.kind, count)
    labels = {str(head): results.spelled(", ".join(labels)) for head, labels in zip(likeness.heads, likeness.behaviours, strict=True)}
    columns = {name: rows[name] for name in ("a", "b", "value", "low", "high")}
    return Table.of({**columns, **{f"{side} does": [labels[name] for name in rows[side]] for side in ("a", "b")}})
