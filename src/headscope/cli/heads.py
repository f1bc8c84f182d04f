"""`headscope heads`: the types of the heads of a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headscope.core.suggest import choose_from

if TYPE_CHECKING:
    from headscope.results.head_labels import HeadLabel, HeadLabels
    from headscope.results.results import Results
    from headscope.results.table import Table


def heads(
    runs: Annotated[list[Path], typer.Argument(help="run folder; several runs of one model are combined")],
    only: Annotated[str | None, typer.Option(help="only this type, such as induction, syntactic or sink")] = None,
    head: Annotated[str | None, typer.Option(help="only this head, with all its labels: 8-10, cross/3-2")] = None,
    format: Annotated[
        str | None, typer.Option(help="csv, tsv, json, markdown, latex, parquet or arrow, to standard output or to the file of -o")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="write the table to a file: .csv, .tsv, .json, .md, .tex, .parquet or .arrow"),
    ] = None,
) -> None:
    """Show the type of each head (positional, sink, syntactic, coreference, induction, ...), with the value that
    supports it, its interval, its baseline, and how often the label survives when documents are resampled.

    headscope run --model mini-decoder --measures positions,tokens,entropy,relations --out TEXT
    headscope run --model mini-decoder --corpus repeats:50 --measures sequences --out REPEATS
    headscope heads TEXT
    headscope heads TEXT REPEATS                 # labels from both
    headscope heads TEXT REPEATS --only induction
    headscope heads TEXT --head 8-5              # all relations that it is labelled for
    headscope heads TEXT REPEATS -o heads.tsv
    """
    from headscope.cli.printing.tables import table_format, write_table
    from headscope.errors import RunError
    from headscope.results.head_labels import head_labels
    from headscope.results.head_types import NAMES
    from headscope.results.results import Results

    style = table_format(format, out)
    if only is not None and only not in NAMES:
        raise RunError(f"there is no type of heads {only!r}", choose_from(only, NAMES))
    results = [Results.open_run(run) for run in runs]
    labels = head_labels(*results).where(only, head)
    if style is not None:
        write_table(labels.table(), style, out)
    else:
        _print(results, labels, every=head is not None)


def _print(results: Sequence[Results], labels: HeadLabels, every: bool) -> None:
    """Print the table in the terminal, what it omits, and where its numbers come from."""
    from headscope.cli.printing.tables import print_table
    from headscope.cli.printing.text import print_text

    table = _shown(results[0], labels, every)
    named = len({label.head for label in labels.sure})
    counted = f"head {labels.heads[0]}: {len(labels.sure)} labels" if every else f"{named} of {len(labels.heads)} heads have a label"
    lines = [f"{counted}; {labels.rule}"]
    if any("+" in label for label in table["label"]):
        lines.append("+: number of further labels of the type, which --head lists")
    lines += [*labels.notes, labels.unmeasured, *(run.signature for run in results)]
    caption = "\n".join(filter(None, lines))
    if len(table):
        title = "what the head does" if every else "heads and their types"
        print_table(table.without("head") if every else table, title, caption, "--format tsv")
    else:
        print_text(caption)


def _shown(results: Results, labels: HeadLabels, every: bool) -> Table:
    """One row per head and type with its first label, or one per label; a head is named in its first row."""
    from headscope.results.table import Table, interval

    rows: list[tuple[HeadLabel, int]] = []
    for head in labels.heads:
        by_type: dict[str, list[HeadLabel]] = {}
        for label in labels[head] if labels.certain else ():
            by_type.setdefault(label.quantity if every else label.type.name, []).append(label)
        rows += [(of_type[0], len(of_type) - 1) for of_type in by_type.values()]
    firsts = [number == 0 or label.head != rows[number - 1][0].head for number, (label, _) in enumerate(rows)]
    return Table.of(
        {
            "head": [str(label.head) if first else "" for (label, _), first in zip(rows, firsts, strict=True)],
            "label": [_label_text(results, label, more, every) for label, more in rows],
            "value": [interval(label.value, label.low, label.high) for label, _ in rows],
            "baseline": [interval(label.baseline) for label, _ in rows],
            "survives": [f"{label.survives:.0%}" for label, _ in rows],
        }
    )


def _label_text(results: Results, label: HeadLabel, more: int, every: bool) -> str:
    """A label as in `syntactic: obj +2`; of one head in `every` detail, with the direction of its attention."""
    what = label.quantity if every and not label.type.words else results.spelled(label.what)
    return f"{label.type.name}{': ' if what else ''}{what}{f' +{more}' if more else ''}"
