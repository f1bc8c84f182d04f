"""Excerpts of the sampler: few sentences of several documents, because intervals need several documents."""

from __future__ import annotations

from dataclasses import replace

from headscope.corpora import Corpus, read


def excerpt(documents: int = 8, sentences: int = 8, start: int = 0) -> Corpus:
    """The first sentences of documents number `start` to `documents`, with the mentions in these sentences."""
    found = []
    for document in list(read("sampler"))[start:documents]:
        kept = document.sentences[:sentences]
        words = sum(map(len, kept))
        mentions = tuple(mention for mention in document.mentions if mention.end <= words)
        found.append(replace(document, sentences=kept, mentions=mentions))
    return Corpus.of(found)
