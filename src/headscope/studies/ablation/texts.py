"""The texts that a study of ablation tries a model on."""

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
from headscope.studies.ablation.spec import AblationSpec
from headscope.studies.picking import picked


def read_texts(spec: AblationSpec, model: Model, corpus: Corpus, counts: Counts) -> list[Encoded]:
    """The texts in which there is something to predict, in the order of the corpus. They and what is left out are counted in `counts`."""
    encoder = Encoder(
        model.tokenizer,
        unit=spec.unit or "sentence",
        max_length=spec.max_length,
        overlong="truncate" if model.objective in ("classes", "tags") else "drop",
        decoder_start=model.decoder_start,
        labelled=model.objective == "classes",
        tags=spec.tags,
    )
    dropped = counts.dropped
    documents = _with_keyphrases(corpus, dropped) if spec.tags == "keyphrases" else corpus
    texts = []
    for text in picked(encoder.texts(documents, dropped), spec.limit, seed=spec.seed, tally=dropped, corpus=corpus):
        if model.predicts(text):
            counts.add(text)
            texts.append(text)
        else:
            dropped.add("texts in which there is nothing to predict", text.id)
    dropped.update(corpus.skipped)
    if not texts:
        raise RunError(f"nothing to ablate on: no text is left of {', '.join(spec.corpus)}", "; ".join(dropped.lines()))
    return texts


def _with_keyphrases(corpus: Corpus, dropped: Tally) -> Iterator[Document]:
    """The documents in which there is a keyphrase to be found."""
    for document in corpus:
        if {*phrase_tags(document)} - {OUTSIDE}:
            yield document
        else:
            dropped.add("texts without a keyphrase in them left out", document.id)
