"""What `headscope corpus stats` prints: one corpus in detail, or several side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import typer

from headscope.cli.corpora.overview import SPREAD, encoding, overview
from headscope.cli.printing.tables import print_markdown, print_table
from headscope.core.tally import Tally
from headscope.corpora import Corpus, Stats, stats
from headscope.corpora.distribution import Offsets
from headscope.corpora.files import base_name
from headscope.errors import HeadscopeError
from headscope.results.table import Table, display
from headscope.results.unknown_tokens import warning

_COUNTED: dict[str, Callable[[Stats], Counter[str]]] = {
    "relations": lambda counted: counted.relations,
    "parts of speech, UPOS": lambda counted: counted.upos,
    "parts of speech, XPOS": lambda counted: counted.xpos,
    "labels of documents": lambda counted: counted.labels,
    "entity types": lambda counted: counted.coreference.types,
}
_TOP = 20


@dataclass(frozen=True)
class TokenCounter:
    """Whose tokens are counted, and in what inputs."""

    model: str
    unit: str | None
    max_length: int


def named(corpora: Sequence[list[str]]) -> dict[str, list[str]]:
    """The files of each corpus under a name to print above its column: that of the file, or the path where two are
    the same.
    """
    names: dict[str, list[str]] = {}
    for files in corpora:
        more = f" +{len(files) - 1}" if len(files) > 1 else ""
        short, whole = base_name(Path(files[0])).removesuffix(".conllu") + more, files[0] + more
        name = short if short not in names else whole
        if name in names:
            raise HeadscopeError(f"{whole} is named twice", "Name each corpus once")
        names[name] = files
    return names


def print_stats(corpus: Corpus, tokenizer: TokenCounter | None, every_label: bool) -> None:
    """Print what is in one corpus and, with a tokenizer, what a run over it would see."""
    counted = stats(corpus)
    _print_rows(overview(counted), counted.skipped)
    typer.echo(f"\n{SPREAD}\n")
    limit = None if every_label else _TOP
    for title, pick in _counters([counted]).items():
        if counts := pick(counted):
            directed = counted.offsets if title == "relations" else None
            print_table(_details(counts, directed, limit), title)
    if tokenizer:
        title, rows, encoded = encoding(corpus, tokenizer.model, tokenizer.unit, tokenizer.max_length)
        typer.echo(f"\n{title}:")
        _print_rows(rows | ({} if encoded.dropped.lines(read=False) else {"left out": "nothing"}), encoded.dropped)
        for line in warning(encoded, tokenizer.model):
            typer.echo(f"\nwarning: {line}")


def print_side_by_side(corpora: Mapping[str, Corpus], tokenizer: TokenCounter | None, every_label: bool, markdown: bool) -> None:
    """Print what is in several corpora, a column for each."""
    counted = {name: stats(corpus) for name, corpus in corpora.items()}
    sizes = {name: overview(one) for name, one in counted.items()}
    tallies = {name: one.skipped for name, one in counted.items()}
    warnings: list[str] = []
    runs: dict[str, list[str]] = {}
    if tokenizer:
        for name, corpus in corpora.items():
            title, rows, encoded = encoding(corpus, tokenizer.model, tokenizer.unit, tokenizer.max_length)
            tallies[name] = encoded.dropped
            warnings += [f"warning: {name}: {line}" for line in warning(encoded, tokenizer.model)]
            sizes[name] |= rows
            runs.setdefault(title, []).append(name)
    show = print_markdown if markdown else print_table
    quantities = [quantity for quantity in next(iter(sizes.values())) if any(rows[quantity] for rows in sizes.values())]
    show(_columns("quantity", quantities, {name: [rows[quantity] for quantity in quantities] for name, rows in sizes.items()}), "sizes")
    notes = [SPREAD, *(f"texts, tokens and split words of {', '.join(names)}: {title}" for title, names in runs.items())]
    notes += [f"{label} in {name}: {line}" for name, tally in tallies.items() for label, line in tally.labelled()]
    notes += warnings
    typer.echo("".join(f"- {note}\n" if markdown else f"{note}\n" for note in notes))
    for title, pick in _counters(counted.values()).items():
        _print_labels(title, {name: pick(one) for name, one in counted.items()}, counted, None if every_label else _TOP, show)


def _counters(counted: Iterable[Stats]) -> dict[str, Callable[[Stats], Counter[str]]]:
    """What is counted by label, with a title: the labels of each task that has some beside what all corpora may
    have.
    """
    tasks = sorted({task for one in counted for task in one.edges.labels})
    return _COUNTED | {f"labels of {task}": partial(_labels_of, task) for task in tasks}


def _labels_of(task: str, counted: Stats) -> Counter[str]:
    return counted.edges.labels.get(task, Counter())


def _print_labels(
    title: str,
    counters: Mapping[str, Counter[str]],
    counted: Mapping[str, Stats],
    limit: int | None,
    show: Callable[[Table, str], None],
) -> None:
    """Print how frequent labels are in each corpus and, of relations, where the heads stand."""
    words = {name: one.words for name, one in counted.items()}
    labels = _frequent(counters, words)
    shown, others = labels[:limit], labels[limit:] if limit else []
    if not labels:
        return
    cells = {name: [_rate(counter[label], words[name]) for label in shown] for name, counter in counters.items()}
    for name, counter in counters.items():
        cells[name] += [_rate(sum(counter[label] for label in others), words[name])] if others else []
    rows = [*shown, f"{len(others)} others"] if others else shown
    show(_columns("label", rows, cells), f"{title}: how many, and how many in 1,000 words")
    if title == "relations":
        cells = {name: [_direction(one.offsets.get(label)) for label in shown] for name, one in counted.items()}
        show(_columns("label", shown, cells), "relations: heads to the right, and mean distance to the head in words")


def _print_rows(rows: Mapping[str, str | None], tally: Tally) -> None:
    for name, value in [*rows.items(), *tally.labelled()]:
        if value:
            typer.echo(f"{name:>26}  {value}")


def _details(counts: Counter[str], offsets: Mapping[str, Offsets] | None, limit: int | None) -> Table:
    """Labels with their numbers and shares, the most frequent first, and those over the limit in one row."""
    shown = counts.most_common(limit)
    labels, numbers = [label for label, _ in shown], [n for _, n in shown]
    if len(shown) < len(counts):
        labels.append(f"{len(counts) - len(shown)} others")
        numbers.append(counts.total() - sum(numbers))
    columns: dict[str, Sequence[object]] = {"label": labels, "n": numbers, "%": [f"{100 * n / counts.total():.1f}" for n in numbers]}
    if offsets is not None:
        found = [offsets.get(label) for label in labels]
        columns["head to the right"] = [f"{100 * one.right:.1f}%" if one else None for one in found]
        columns["words to the head"] = [f"{one.distances.mean:.1f}" if one else None for one in found]
        columns["usual offset"] = [f"{one.usual:+d} ({100 * one.share([one.usual]):.1f}%)" if one else None for one in found]
    return Table.of(columns)


def _frequent(counters: Mapping[str, Counter[str]], words: Mapping[str, int]) -> list[str]:
    """The labels of all corpora, those with the highest rates first."""
    rates: dict[str, float] = {}
    for name, counter in counters.items():
        for label, n in counter.items():
            rates[label] = rates.get(label, 0.0) + n / words[name]
    return sorted(rates, key=lambda label: -rates[label])


def _rate(n: int, words: int) -> str | None:
    return f"{n:,} ({1000 * n / words:.1f})" if n else None


def _direction(offsets: Offsets | None) -> str | None:
    return f"{100 * offsets.right:.1f}% ({offsets.distances.mean:.1f})" if offsets else None


def _columns(head: str, labels: Sequence[str], cells: Mapping[str, Sequence[str | None]]) -> Table:
    return Table.of({head: labels, **{name: [display(cell) for cell in column] for name, column in cells.items()}})
