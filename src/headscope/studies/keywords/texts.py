"""The documents of a corpus that have keyphrases, as a model reads them."""

from __future__ import annotations

from collections.abc import Iterator

from headscope.core.document import Document
from headscope.core.tally import Tally
from headscope.corpora import Corpus
from headscope.corpora.tags import OUTSIDE, phrase_tags
from headscope.encoding.texts import Encoded, Encoder
from headscope.errors import RunError
from headscope.models.model import Model
from headscope.results.counts import Counts
from headscope.studies.keywords.spec import KeywordSpec
from headscope.studies.picking import picked


def texts_with_keyphrases(corpus: Corpus, model: Model, spec: KeywordSpec, limit: int | None, counts: Counts) -> list[Encoded]:
    """One text per document that has a keyphrase where the model can read it, at most `limit` of them; others are
    counted.
    """
    length = min(spec.max_length, model.max_length or spec.max_length)
    encoder = Encoder(model.tokenizer, "document", length, "truncate", decoder_start=model.decoder_start, tags="keyphrases")
    texts, tally = [], counts.dropped
    for text in picked(encoder.texts(_located(corpus, tally), tally), limit, seed=spec.seed, tally=tally, corpus=corpus):
        if set(text.tags) <= {OUTSIDE}:
            tally.add("texts whose keyphrases are all cut off left out", text.id)
        else:
            counts.add(text)
            texts.append(text)
    tally.update(corpus.skipped)
    if len({text.document for text in texts}) < 2:
        raise RunError(f"{len(texts)} documents have a keyphrase in their first {length} tokens", "Give at least two")
    return texts


def _located(corpus: Corpus, tally: Tally) -> Iterator[Document]:
    """The documents in which a keyphrase stands."""
    for document in corpus:
        if set(phrase_tags(document)) <= {OUTSIDE}:
            tally.add("texts without a keyphrase in them left out", document.id)
        else:
            yield document
