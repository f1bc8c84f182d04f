"""One sentence of a corpus, by its number or its id."""

from __future__ import annotations

from headscope.core.document import Document
from headscope.corpora.corpus import Corpus
from headscope.errors import HeadscopeError


def pick_sentence(corpus: Corpus, name: str) -> Document:
    """The sentence with this id, or with this number counted from 1 over the whole corpus, as a document with its
    annotation.
    """
    count = 0
    numbered: Document | None = None
    for document in corpus:
        for place, sentence in enumerate(document.sentences):
            count += 1
            if sentence.id == name:
                return document.part(place, place + 1)
            if name == str(count):
                numbered = document.part(place, place + 1)
    if numbered is None:
        where = ", ".join(path.name for path in corpus.paths) or "the corpus"
        raise HeadscopeError(f"{where} has no sentence {name!r}", f"Use its id (# sent_id) or a number from 1 to {count}")
    return numbered
