"""`headscope corpus`: what is in a corpus, and whether it holds together."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headscope.cli.options import examples

app = typer.Typer(help="Look at a corpus before running a model over it.", no_args_is_help=True, rich_markup_mode=None)


def stats(
    paths: Annotated[list[str], typer.Argument(help="files, or 'sampler'")],
    format: Annotated[str | None, typer.Option(help="conllu, conllx, conll2012, text, lines or jsonl, if the name does not tell")] = None,
    on_error: Annotated[str, typer.Option(help="raise, or skip bad sentences and count them")] = "raise",
    model: Annotated[str, typer.Option(help="whose tokenizer counts split words and overlong texts; 'none' for neither")] = "mini",
    unit: Annotated[str | None, typer.Option(help="what one input would be: sentence, paragraph, document, pair, segment")] = None,
    max_length: Annotated[int, typer.Option(help="tokens an input may have")] = 128,
) -> None:
    """Print sizes, relations, mentions, split words, and what a run would drop.

    headscope corpus stats en.conllu.xz
    headscope corpus stats wiki.jsonl --model bert-base-uncased --max-length 512
    """
    from headscope.cli.corpus_stats import print_stats
    from headscope.corpora import read

    print_stats(read(*paths, format=format, on_error=on_error), model, unit, max_length)  # type: ignore[arg-type]


def check(paths: Annotated[list[str], typer.Argument(help="CoNLL-U files, or 'sampler'")]) -> None:
    """Check trees, labels, coreference brackets, texts and ids of CoNLL-U files; exit with 1 if anything is wrong.

    headscope corpus check mine.conllu
    """
    from headscope.corpora import check as check_files

    findings = check_files(paths)
    for finding in findings:
        typer.echo(str(finding))
    if findings:
        typer.echo(f"{len(findings)} findings in {len({finding.path for finding in findings})} files")
        raise typer.Exit(1)
    typer.echo(f"{', '.join(str(Path(path).name) for path in paths)}: nothing wrong")


for verb in (stats, check):
    app.command(help=examples(verb.__doc__))(verb)
