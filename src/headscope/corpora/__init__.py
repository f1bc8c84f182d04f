"""Corpora: read files of many formats as documents, count what is in them, and check them."""

from __future__ import annotations

from pathlib import Path

from headscope.corpora.agreement import AgreementReport, AnnotationDifference, compare, read_annotation
from headscope.corpora.check import Finding, check
from headscope.corpora.corpus import Corpus, OnError
from headscope.corpora.formats import READERS, SAMPLER, common_format, resolve
from headscope.corpora.stats import Stats, stats

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


def read(*paths: str | Path, format: str | None = None, on_error: OnError = "raise") -> Corpus:
    """The corpus in these files, in this order. `sampler` names the corpus that comes with headscope.

    The format follows from the file names unless it is named. With `on_error="skip"`, bad sentences are left out and
    counted in `Corpus.skipped` instead of raising a CorpusError.

    >>> import headscope as hs
    >>> corpus = hs.read("sampler")
    >>> document = next(iter(corpus))
    >>> document.id, len(document.sentences), document.words[0].form
    ('sampler_news_ferry', 16, 'The')
    """
    resolved = resolve(paths)
    return Corpus(resolved, common_format(resolved, format), on_error)
