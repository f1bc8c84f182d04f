"""Parts of the sampler: few sentences of several documents, since intervals need documents."""

from __future__ import annotations

from dataclasses import replace

from headscope.corpora import Corpus, read


def excerpt(documents: int = 8, sentences: int = 8, start: int = 0) -> Corpus:
    """The first sentences of the first documents, or of some others, with the mentions within them."""
    found = []
    for document in list(read("sampler"))[start:documents]:
        kept = document.sentences[:sentences]
        words = sum(map(len, kept))
        mentions = tuple(mention for mention in document.mentions if mention.end <= words)
        found.append(replace(document, sentences=kept, mentions=mentions))
    return Corpus.of(found)
