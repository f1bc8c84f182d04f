"""Corpora: read files of many formats as documents, count what is in them, and check them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from headscope.core.paths import kind_of
from headscope.corpora.agreement import AgreementReport, AnnotationDifference, compare, read_annotation
from headscope.corpora.check import Finding, check
from headscope.corpora.corpus import Corpus, OnError
from headscope.corpora.formats import READERS, common_format
from headscope.corpora.inputs import SAMPLER, names_files, resolve
from headscope.corpora.needles import needles
from headscope.corpora.objects import corpus_of
from headscope.corpora.readers.fields import require_known
from headscope.corpora.repeats import repeats
from headscope.corpora.stats import Stats, stats
from headscope.errors import HeadscopeError

FORMATS = tuple(READERS)

__all__ = [
    "FORMATS",
    "SAMPLER",
    "AgreementReport",
    "AnnotationDifference",
    "Corpus",
    "Finding",
    "OnError",
    "Stats",
    "check",
    "compare",
    "read",
    "read_annotation",
    "stats",
]


def read(*texts: Any, format: str | None = None, on_error: OnError = "raise", **columns: str) -> Corpus:
    """Read a corpus from files, in the given order, or from texts in memory.

    A name is a file, or one of: `sampler`, the corpus that comes with headscope; `repeats:50x32`, 32 random sequences
    of 50 tokens, each written twice; `needles:96x40`, 40 texts of up to 96 words with a fact hidden in each; `-`,
    standard input; a folder, for the files in it. Texts in memory are a list of strings or of dicts (`text`, `id`, as
    in JSON lines), a table of pandas, polars or Arrow, a dataset of Hugging Face, spaCy `Doc`s, or token lists of
    `conllu` (docs/corpora.md). `columns` are the names that a table has for `text`, `id`, `label` and others; further
    columns are metadata.

    The format follows from the file names unless it is given. With `on_error="skip"`, invalid sentences are skipped and
    counted in `Corpus.skipped` instead of raising a CorpusError.

    >>> import headscope as hs
    >>> corpus = hs.read("sampler")
    >>> document = next(iter(corpus))
    >>> document.id, len(document.sentences), document.words[0].form
    ('sampler_news_ferry', 16, 'The')
    >>> [document.metadata for document in hs.read([{"body": "The cat sat.", "genre": "news"}], text="body")]
    [{'genre': 'news'}]
    """
    require_known(columns)
    if len(texts) == 1 and not names_files(texts[0]):
        if isinstance(texts[0], Corpus):
            return texts[0]
        return corpus_of(texts[0], columns, on_error)
    names = list(texts[0]) if len(texts) == 1 and not isinstance(texts[0], str | Path) else list(texts)
    if wrong := [name for name in names if not isinstance(name, str | Path)]:
        raise HeadscopeError(f"{type(wrong[0]).__name__} is not the name of a file", "Name files, or give one list or table of texts")
    if (generated := repeats(names) or needles(names)) is not None:
        if format is not None:
            raise HeadscopeError(f"{names[0]} is generated, not read, so it has no format {format!r}", "Omit the format")
        return generated
    resolved = resolve(names, format)
    both = {**resolved.columns, **columns}
    corpus = Corpus(resolved.paths, common_format(resolved.paths, format), on_error, both)
    corpus.passed_over = resolved.passed_over
    if any(kind_of(name) == "folder" for name in names):
        corpus.names = tuple(map(str, names))
    return corpus
