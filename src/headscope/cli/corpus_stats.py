"""What `headscope corpus stats` prints."""

from __future__ import annotations

from collections import Counter

import typer

from headscope.cli.tables import print_table
from headscope.corpora import Corpus, stats
from headscope.runs.table import Table


def print_stats(corpus: Corpus, model: str, unit: str | None, max_length: int) -> None:
    """Print a corpus's counts and, with a model's tokenizer, what a run over it would see."""
    counted = stats(corpus)
    sizes = {
        "documents": counted.documents,
        "paragraphs": counted.paragraphs,
        "sentences": counted.sentences,
        "words": counted.words,
        "words a sentence": f"{counted.mean:.1f} ({counted.shortest} to {counted.longest})",
        "mentions": counted.mentions,
        "entities": counted.entities,
        "keyphrases": counted.keyphrases,
    }
    for name, value in sizes.items():
        if value:
            typer.echo(f"{name:>18}  {value if isinstance(value, str) else f'{value:,}'}")
    for line in counted.skipped.lines():
        typer.echo(f"       passed over  {line}")
    if counted.relations:
        print_table(_top(counted.relations, counted.words), "relations")
    tags = counted.upos or counted.xpos
    if tags:
        print_table(_top(tags, counted.words), "parts of speech")
    if model != "none":
        _print_encoding(corpus, model, unit, max_length)


def _top(counts: Counter[str], total: int, rows: int = 20) -> Table:
    shown = counts.most_common(rows)
    rest = counts.total() - sum(n for _, n in shown)
    names = [name for name, _ in shown] + ([f"{len(counts) - rows} others"] if rest else [])
    numbers = [n for _, n in shown] + ([rest] if rest else [])
    return Table.of({"label": names, "n": numbers, "% of words": [f"{100 * n / total:.1f}" for n in numbers]})


def _print_encoding(corpus: Corpus, model: str, unit: str | None, max_length: int) -> None:
    from headscope.models.load import load_tokenizer
    from headscope.runs.counts import count
    from headscope.runs.execute import encoder_for
    from headscope.runs.spec import make_spec

    spec = make_spec({"model": model, "unit": unit, "max_length": max_length}).resolved(corpus.pairs)
    counts = count(corpus, encoder_for(spec, load_tokenizer(model)))
    share = 100 * counts.split_words / counts.words if counts.words else 0.0
    typer.echo(f"\na run of {model} over each {spec.unit}, up to {max_length} tokens:")
    typer.echo(f"{'texts':>18}  {counts.texts:,}\n{'tokens':>18}  {counts.tokens:,}")
    typer.echo(f"{'split words':>18}  {counts.split_words:,} of {counts.words:,} ({share:.1f}%)")
    for line in counts.dropped.lines() or ["nothing"]:
        typer.echo(f"{'passed over':>18}  {line}")
