"""`headscope corpus compare`: how far two annotations of the same text agree, and where they do not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from headscope.corpora.agreement import AgreementReport, AnnotationDifference
    from headscope.corpora.agreement.scores import AgreementScore
    from headscope.results.table import Table


def compare(
    first: Annotated[str, typer.Argument(help="a file or a folder of CoNLL-U, or 'sampler'")],
    second: Annotated[str, typer.Argument(help="the same text, annotated again")],
    differences: Annotated[
        bool, typer.Option("--differences", help="list every word and mention on which they differ, in place of scores")
    ] = False,
    json: Annotated[Path | None, typer.Option(help="write scores and differences to this file")] = None,
    every_label: Annotated[bool, typer.Option("--all", help="every relation, not the 20 most frequent")] = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="tables in Markdown, to standard output")] = False,
    format: Annotated[str | None, typer.Option("--corpus-format", help="conllu, conllx or conll2012, if the name does not tell")] = None,
    old_format: Annotated[str | None, typer.Option("--format", hidden=True)] = None,
    replicates: Annotated[int, typer.Option(help="bootstrap replicates for intervals over documents", min=0)] = 500,
    seed: Annotated[int, typer.Option(help="seed of the bootstrap")] = 0,
) -> None:
    """Compare two annotations of the same text: tags, trees, coreference, keyphrases.

    headscope corpus compare first.conllu second.conllu
    headscope corpus compare annotator1/ annotator2/ --differences > to_decide.tsv
    headscope corpus compare annotator1/ annotator2/ --json agreement.json
    """
    from headscope.corpora.agreement import compare as compare_annotations
    from headscope.corpora.agreement import read_annotation

    format = format or old_format
    agreement = compare_annotations(read_annotation(first, format), read_annotation(second, format), replicates, seed)
    if json is not None:
        _write(agreement, json)
    if differences:
        typer.echo("file\tsentence\twords\ttext\tfirst\tsecond")
        for difference in agreement.differences:
            typer.echo(_line(difference))
        return
    _print_scores(agreement, None if every_label else 20, markdown)
    for side, tally in zip((first, second), agreement.skipped, strict=True):
        for label, line in tally.labelled():
            typer.echo(f"{label} in {side}: {line}")
    for name, n in agreement.alone.items():
        typer.echo(f"not compared: {_number(n, 'value')} of {name} that only one side gives")
    words = sum(difference.last is None for difference in agreement.differences)
    more = ": see --differences" if agreement.differences else ""
    typer.echo(f"{_number(words, 'word')} and {_number(len(agreement.differences) - words, 'mention')} differ{more}")


def _print_scores(agreement: AgreementReport, limit: int | None, markdown: bool) -> None:
    from headscope.cli.printing.tables import print_markdown, print_table
    from headscope.corpora.agreement.comparison import WORDS

    show = print_markdown if markdown else print_table
    sizes = (_number(getattr(agreement, f"{unit}s"), unit) for unit in ("document", "sentence", "word"))
    typer.echo(f"{', '.join(sizes)}\n")
    about_words = [score for score in agreement.scores if score.name.removesuffix("_kappa") in WORDS]
    about_spans = [score for score in agreement.scores if score not in about_words]
    if about_words:
        show(_shares(about_words), "words")
    if about_spans:
        show(_overlaps("quantity", about_spans), "mentions, entities, keyphrases")
    if agreement.relations:
        show(_overlaps("relation", agreement.relations[:limit]), "relations with their heads")


def _number(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"


def _shares(scores: Sequence[AgreementScore]) -> Table:
    from headscope.results.table import Table

    names = ("value", "low", "high")
    columns = {"quantity": [score.name for score in scores]} | {name: [getattr(score, name) for score in scores] for name in names}
    return Table.of(columns | {"n": [score.first for score in scores], "documents": [score.documents for score in scores]})


def _overlaps(head: str, scores: Sequence[AgreementScore]) -> Table:
    from headscope.results.table import Table

    names = ("value", "low", "high", "precision", "recall", "first", "second", "documents")
    return Table.of({head: [score.name for score in scores]} | {name: [getattr(score, name) for score in scores] for name in names})


def _line(difference: AnnotationDifference) -> str:
    """A difference as one line, in columns parted by tabs."""
    words = str(difference.word) if difference.last in (None, difference.word) else f"{difference.word}-{difference.last}"
    sides = (_values(difference.first.items()), _values(difference.second.items()))
    return "\t".join([difference.file, difference.sentence, words, difference.text, *sides])


def _values(items: Iterable[tuple[str, object]]) -> str:
    return " ".join(f"{name}={'_' if value is None else value}" for name, value in items) or "no mention"


def _write(agreement: AgreementReport, path: Path) -> None:
    import json
    import math
    from dataclasses import asdict

    from headscope.results.files import write_atomically

    def plain(value: object) -> object:
        return None if isinstance(value, float) and math.isnan(value) else value

    content = {
        "documents": agreement.documents,
        "sentences": agreement.sentences,
        "words": agreement.words,
        **{
            name: [{key: plain(value) for key, value in asdict(score).items()} for score in scores]
            for name, scores in (("scores", agreement.scores), ("relations", agreement.relations))
        },
        "differences": [asdict(difference) for difference in agreement.differences],
    }
    write_atomically(path, (json.dumps(content, indent=1, ensure_ascii=False) + "\n").encode(), within=path.parent)
