"""`headscope keywords`: the keywords of a text, found from attention with weights learnt from other texts."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headscope.core.paths import kind_of
from headscope.core.suggest import choose_from
from headscope.errors import CorpusError, RunError
from headscope.models import MODEL_HELP

if TYPE_CHECKING:
    from headscope.core.document import Document
    from headscope.engine.shards import Progress
    from headscope.studies.keywords.finder import Finder, KeywordResult
    from headscope.widget.keywords import KeywordView

Option = typer.Option
STDIN = "-"
FORMATS = ("table", "json", "csv")
NOTED = 3  # texts whose notes are printed; the notes of further texts are only counted


def keywords(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="text files, any corpus, or - for standard input")],
    model: Annotated[str | None, Option(help=f"{MODEL_HELP} [default: that of --learned, or mini]")] = None,
    learned: Annotated[Path | None, Option(help="folder written by headscope probe keywords [default: learn from the sampler]")] = None,
    top: Annotated[int, Option(help="phrases to show per text", min=1)] = 15,
    format: Annotated[str, Option(help="table, json or csv")] = "table",
    out: Annotated[Path | None, Option("--out", "-o", help="picture to write: .html (a page), .svg, .pdf or .png")] = None,
    read_as: Annotated[str | None, Option(help="corpus format of the files, if their names do not show it")] = None,
    on_error: Annotated[str, Option(help="what to do with bad lines of a file: raise an error, or skip and count them")] = "raise",
    device: Annotated[str | None, Option(help="cpu, cuda, auto, ... [default: cuda if available]")] = None,
    dtype: Annotated[str, Option(help="float32, float16 or bfloat16 weights")] = "float32",
    quiet: Annotated[bool, Option("--quiet", "-q", help="no progress bar, no notes")] = False,
) -> None:
    """Find the keywords of your own texts, and show each text with its words shaded by their weights.

    headscope keywords article.txt
    cat article.txt | headscope keywords - --top 5
    headscope keywords article.txt -o article.html
    headscope keywords reports.jsonl --format csv > phrases.csv
    headscope probe keywords --corpus inspec-train.jsonl --dev inspec-dev.jsonl --out KEYS
    headscope keywords abstract.txt --learned KEYS
    """
    if format not in FORMATS:
        raise RunError(
            f"unknown format {format!r}", choose_from(format, FORMATS, "Use") + "; the format of the files is set with --read-as"
        )
    if out is not None:
        from headscope.widget.shown import suffix_of

        suffix_of(out)  # an error here saves loading a model
    documents, counted = _documents(files, read_as, on_error)
    if out is not None and suffix_of(out) != "html" and len(documents) > 1:
        raise RunError(f"a picture can show one text, not {len(documents):,}", "Write a page: -o page.html")
    from headscope.widget.keywords import KeywordView

    finder = _finder(model, learned, device, dtype, quiet)
    from headscope.cli.printing.progress import bar

    with bar("finding", hidden=quiet) as progress:
        reading = _Texts(progress, len(documents))
        texts = [reading.find(finder, document) for document in documents]
    view = KeywordView(texts, finder, top)
    if not quiet:
        for label, line in counted:
            typer.echo(f"headscope: {label}: {line}", err=True)
    if out is not None:
        typer.echo(view.save(out))
    elif format == "json":
        typer.echo(json.dumps(_plain(view), ensure_ascii=False, indent=1))
    elif format == "csv":
        typer.echo(view.table.to_text("csv"), nl=False)
    else:
        from headscope.cli.printing.terminal import print_keywords

        print_keywords(view)
    if not quiet and (out is not None or format != "table"):
        noted = [f"{result.document.id}: {'; '.join(result.notes)}" for result in texts if result.notes]
        more = [f"and similar notes for {len(noted) - NOTED:,} more texts"] if len(noted) > NOTED else []
        for line in [view.trained, *noted[:NOTED], *more]:
            typer.echo(f"headscope: {line}", err=True)


@dataclass
class _Texts:
    """Progress over all texts, computed from the progress of the current one."""

    progress: Progress
    texts: int
    done: int = 0
    tokens: int = 0

    def find(self, finder: Finder, document: Document) -> KeywordResult:
        """The keywords of the next text."""
        before = self.tokens

        def report(share: float | None, texts: int, tokens: int) -> None:
            self.tokens = before + tokens
            self.progress((self.done + (share or 0.0)) / self.texts, self.done, self.tokens)

        result = finder.find(document, report)
        self.done += 1
        return result


def _finder(model: str | None, learned: Path | None, device: str | None, dtype: str, quiet: bool) -> Finder:
    from headscope.models.load import load
    from headscope.studies.keywords.finder import Finder, learn

    loaded = load(model, device, dtype) if model is not None else None
    if learned is not None:
        return Finder.open(learned, loaded, device)
    from headscope.cli.printing.progress import bar

    if not quiet:
        line = "learning from the 19 documents of the sampler, which takes a few seconds; for texts of another kind see --learned"
        typer.echo(f"headscope: {line}", err=True)
    with bar("learning", hidden=quiet) as progress:
        return learn(loaded or load("mini", device, dtype), progress=progress)


def _documents(files: list[str], read_as: str | None, on_error: str) -> tuple[list[Document], list[tuple[str, str]]]:
    """All texts, and what was counted while reading them. A file whose name does not show its format is plain text."""
    from headscope.corpora import FORMATS as KNOWN
    from headscope.corpora import Corpus, read
    from headscope.corpora.formats import guess_format

    documents: list[Document] = []
    counted: list[tuple[str, str]] = []
    for file in files:
        if file == STDIN:
            documents.append(_standard_input())
            continue
        format = read_as
        if format is None and kind_of(file) == "file":
            try:
                guess_format(Path(file))
            except CorpusError:
                format = "text"
        corpus = read(file, format=format, on_error=on_error)  # type: ignore[arg-type]
        documents += corpus
        counted += corpus.skipped.labelled()
    if not documents:
        raise RunError("the files have no text", f"Check them, and their format (--read-as {', '.join(KNOWN)})")
    return list(Corpus.of(documents)), counted  # documents of the same name get numbers


def _standard_input() -> Document:
    from headscope.core.document import Document
    from headscope.corpora.readers.text import text_paragraphs

    try:
        text = sys.stdin.buffer.read().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RunError(f"standard input is not UTF-8 (byte {error.start + 1})", "Convert it, as with iconv -t utf-8") from None
    if not text.strip():
        raise RunError("standard input is empty", "Pipe a text into it, or name a file")
    return Document("standard input", tuple(text_paragraphs(text.replace("\r\n", "\n"))))


def _plain(view: KeywordView) -> dict[str, Any]:
    """Everything as JSON: words with their weights, phrases with the places of their words [start, end)."""
    trained = view.finder.trained
    held = {"f1": trained.f1, "low": trained.low, "high": trained.high, "on": trained.tried}
    return {
        "signature": view.signature,
        "trained": {
            "model": trained.model,
            "corpus": trained.corpus,
            "documents": trained.texts,
            "held_out": {name: None if value != value else value for name, value in held.items()},
        },
        "texts": [
            {
                "document": result.document.id,
                "notes": list(result.notes),
                "phrases": [
                    {"phrase": phrase.text, "score": round(phrase.score, 6), "places": [list(place) for place in phrase.places]}
                    for phrase in result.phrases[: view.top]
                ],
                "words": [
                    {"word": word.form, "weight": round(float(weight), 6)}
                    for word, weight in zip(result.document.words, result.weights, strict=True)
                ],
            }
            for result in view.texts
        ],
    }
