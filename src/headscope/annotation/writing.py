"""Parse raw texts from files or standard input into one CoNLL-U file, some documents at a time."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from headscope.annotation.trees import ParsedTree, Parser
from headscope.core.document import Document
from headscope.core.paths import kind_of, printable
from headscope.core.tally import Tally
from headscope.corpora import Corpus, OnError, read
from headscope.corpora.automatic import KEY, mark
from headscope.corpora.files import base_name
from headscope.corpora.formats import by_name
from headscope.corpora.inputs import names_files, split_columns
from headscope.corpora.readers.folders import TEXTS, folder_format
from headscope.corpora.readers.metadata import PREFIX
from headscope.errors import HeadscopeError

FORMATS = ("text", "lines", "jsonl", "csv", "tsv", "parquet", "arrow", "keyphrases", "brat")  # formats of raw text
_BATCH = 100_000  # characters that are parsed together
_PIECE = 50_000  # characters of a paragraph, which is cut after a sentence if it has more
Told = Callable[[float | None, int, int], None]


def raw_texts(*texts: Any, format: str | None = None, on_error: OnError | str = "raise") -> Corpus:
    """The corpus to annotate, from any input of `read`. Files whose names show no format are read as plain text."""
    names = texts[0] if len(texts) == 1 and not isinstance(texts[0], str | Path) else texts
    plain = format is None and (names is texts or names_files(names)) and _needs_format(names)
    return read(*texts, format="text" if plain else format, on_error=on_error)  # type: ignore[arg-type]


def _needs_format(names: Sequence[str | Path]) -> bool:
    """Whether the first is a file whose name does not show its format, or a folder with plain texts but no keys."""
    first = Path(split_columns(str(names[0]))[0]) if names else Path()
    if kind_of(first) == "folder":
        return folder_format(first) is None and any(base_name(path).lower().endswith(TEXTS) for path in first.iterdir())
    return kind_of(first) == "file" and by_name(first) is None


@dataclass
class AnnotationRun:
    """The result of an annotation: the file, and the counts of what was corrected or skipped."""

    parser: str
    documents: int = 0
    sentences: int = 0
    words: int = 0
    tally: Tally = field(default_factory=Tally)


def annotate(corpus: Corpus, parser: Parser, out: Path | IO[bytes], overwrite: bool = False, progress: Told | None = None) -> AnnotationRun:
    """Write the documents of a corpus with sentences, words, tags and trees as the parser finds them.

    The file `out` appears when it is complete. An existing file is replaced only with `overwrite`.
    """
    if corpus.format not in (*FORMATS, "memory"):
        raise HeadscopeError(
            f"{corpus.format} is not a format of raw text", f"Annotate one of {', '.join(FORMATS)}; annotated corpora need no parser"
        )
    if isinstance(out, Path) and out.suffix != ".conllu":
        raise HeadscopeError(f"{out} is not the name of a CoNLL-U file", "Use a name that ends in .conllu")
    if isinstance(out, Path) and kind_of(out) not in ("missing", "unusable") and not overwrite:
        raise HeadscopeError(f"{out} already exists", "Use --overwrite to replace it, or another --out")
    done = AnnotationRun(parser.name)
    names = _Names()
    with _whole(out) if isinstance(out, Path) else _as_it_is(out) as file:
        for batch in _batches(corpus):
            pieces = [list(_pieces(document, corpus.format == "lines")) for document in batch]
            parsed = parser.parse([text for document in pieces for _, text in document])
            for document, texts in zip(batch, pieces, strict=True):
                sentences = [(paragraph, next(parsed)) for paragraph, _ in texts]
                file.write("".join(_lines(document, sentences, names, done)).encode())
            if progress is not None:
                progress(corpus.share, done.documents, done.words)
        if not done.words:
            raise HeadscopeError(f"{parser.name} finds no word in {', '.join(corpus.names)}", "Check the files")
    done.tally.update(corpus.skipped)
    return done


def _batches(corpus: Corpus) -> Iterator[list[Document]]:
    batch: list[Document] = []
    size = 0
    for document in corpus:
        if "trees" in document.layers:
            raise HeadscopeError(f"document {document.id} already has trees", "Use this corpus as it is; only raw text needs a parser")
        batch.append(document)
        size += sum(len(word.form) + 1 for word in document.words)
        if size >= _BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _pieces(document: Document, by_line: bool) -> Iterator[tuple[int, str]]:
    """The paragraphs of a document, or its lines, as texts; a very long paragraph in parts."""
    for paragraph in document.paragraphs():
        texts: list[str] = []
        size = 0
        for sentence in paragraph:
            if texts and (by_line or size + len(sentence.text) > _PIECE):
                yield paragraph[0].paragraph, " ".join(texts)
                texts, size = [], 0
            texts.append(sentence.text)
            size += len(sentence.text) + 1
        yield paragraph[0].paragraph, " ".join(texts)


def _lines(document: Document, parsed: Sequence[tuple[int, list[ParsedTree]]], names: _Names, done: AnnotationRun) -> Iterator[str]:
    trees = [(paragraph, tree) for paragraph, some in parsed for tree in some]
    if not trees:
        done.tally.add("documents skipped: the parser finds no word in them", document.id)
        return
    name = names.of(document.id)
    yield _comment("newdoc id", document.id)
    yield _comment(KEY, mark(done.parser))
    if document.keyphrases:
        yield _comment("keyphrases", "; ".join(phrase.replace(";", ",") for phrase in document.keyphrases))
        if parted := sum(";" in phrase for phrase in document.keyphrases):
            done.tally.add("semicolons in keyphrases written as commas, since semicolons separate keyphrases", document.id, parted)
    if document.label is not None:
        yield _comment("label", document.label)
    yield from (_comment(f"{PREFIX}{key}", str(value)) for key, value in document.metadata.items())
    last = None
    for number, (paragraph, tree) in enumerate(trees, 1):
        if paragraph != last:
            yield "# newpar\n"
        last = paragraph
        yield _comment("sent_id", f"{name}-{number}")
        yield _comment("text", tree.text)
        yield from (f"{row}\n" for row in tree.rows())
        yield "\n"
        if tree.moved:
            done.tally.add("words without a place in a single tree, attached to the root as dep", f"{name}-{number}", len(tree.moved))
        done.sentences += 1
        done.words += len(tree.tokens)
    done.documents += 1


def _comment(key: str, value: str) -> str:
    """A comment on one line; an equals sign in its key would end the key."""
    name = printable("_".join(key.replace("=", " ").split()))
    return f"# {name if key.startswith(PREFIX) else key} = {printable(' '.join(value.split()))}\n"


class _Names:
    """Names of documents for the ids of sentences: without white space and slashes, and each only once."""

    def __init__(self) -> None:
        self._taken: set[str] = set()

    def of(self, id: str) -> str:
        plain = re.sub(r"[\s/]+", "_", printable(id).strip()) or "document"
        name, number = plain, 1
        while name in self._taken:
            number += 1
            name = f"{plain}.{number}"
        self._taken.add(name)
        return name


@contextmanager
def _as_it_is(file: IO[bytes]) -> Iterator[IO[bytes]]:
    yield file
    file.flush()


@contextmanager
def _whole(path: Path) -> Iterator[IO[bytes]]:
    """Write a file that appears under its name only when all of it is written, and not at all on failure."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise HeadscopeError(f"{path} cannot be written ({error.strerror or error})", "Choose another --out, or free some space") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
