"""`headscope annotate`: raw text to CoNLL-U, with an installed parser."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headscope.core.wording import number_of

if TYPE_CHECKING:
    from headscope.annotation import AnnotationRun

Option = typer.Option


def annotate(
    files: Annotated[list[str], typer.Argument(help="texts: .txt, JSON lines, .csv, .tsv, folders of texts; - for standard input")],
    out: Annotated[Path | None, Option("--out", "-o", help="file to write, FILE.conllu [default: standard output]")] = None,
    parser: Annotated[str | None, Option(help="spacy or stanza [default: whichever is installed]")] = None,
    pipeline: Annotated[str | None, Option(help="pipeline of the parser, by name or folder [default: by language]")] = None,
    language: Annotated[str, Option(help="language of the texts, as in en, de, fi")] = "en",
    format: Annotated[
        str | None, Option("--corpus-format", help="text, lines, jsonl, csv or tsv, if the file name does not show it")
    ] = None,
    old_format: Annotated[str | None, Option("--format", hidden=True)] = None,
    on_error: Annotated[str, Option(help="what to do with bad lines: raise an error, or skip and count them")] = "raise",
    overwrite: Annotated[bool, Option("--overwrite", help="replace an existing file")] = False,
    quiet: Annotated[bool, Option("--quiet", "-q", help="no progress bar, no summary")] = False,
) -> None:
    """Find sentences, words, tags and trees of raw text with an installed parser, and write them as CoNLL-U.

    headscope annotate article.txt --out article.conllu
    headscope annotate reviews.jsonl --pipeline en_core_web_trf --out reviews.conllu
    headscope annotate texts/ --parser stanza --language de --out texts.conllu
    cat notes.txt | headscope annotate - --pipeline ./my-pipeline > notes.conllu

    The file and every result computed from it are marked as automatic annotation. Nothing is downloaded: the pipeline
    must be installed. It runs as code, so use only one that you trust. docs/annotate.md measures what automatic trees
    cost in accuracy.
    """
    from headscope.annotation import annotate as write
    from headscope.annotation import load_parser
    from headscope.annotation.writing import raw_texts
    from headscope.cli.printing.progress import bar

    format = format or old_format
    corpus = raw_texts(*files, format=format, on_error=on_error)
    loaded = load_parser(parser, pipeline, language)
    with bar("annotating", hidden=quiet) as progress:
        done = write(corpus, loaded, out if out is not None else sys.stdout.buffer, overwrite, progress)
    if not quiet:
        _summarise(done, out, loaded.scheme)


def _summarise(done: AnnotationRun, out: Path | None, scheme: str) -> None:
    """Print what was written on standard error, where it does not mix with the file."""
    from headscope.annotation.trees import UNIVERSAL

    sizes = (number_of(getattr(done, f"{name}s"), name) for name in ("document", "sentence", "word"))
    lines = [f"{', '.join(sizes)}, annotated by {done.parser}"]
    if scheme not in ("", UNIVERSAL):
        lines.append(f"warning: its trees have {scheme}, not those of Universal Dependencies; they are written unchanged, except for root")
    lines += [f"warning: {line}" for line in done.tally.lines()]
    if out is not None:
        lines.append(f"\nheadscope corpus check {out}\nheadscope run --corpus {out} --measures relations")
    for line in lines:
        typer.echo(line, err=True)
