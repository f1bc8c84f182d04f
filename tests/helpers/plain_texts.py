"""Model inputs without a tokenizer: sentences whose words have the numbers of tokens that a test needs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headscope.core.annotation import Annotated
from headscope.core.batch import CLS, SEP, WORD
from headscope.core.document import Document, Sentence, Word
from headscope.encoding.texts import Encoded


def encoded(document: Document, pieces: Sequence[int] | None = None, specials: bool = True, name: str = "") -> Encoded:
    """The whole document as one input between [CLS] and [SEP]. Each word has one token, or the number of tokens in
    `pieces`; a word with 0 tokens is cut off.
    """
    words = document.words
    word_of = [word for word, size in enumerate(pieces or [1] * len(words)) for _ in range(size)]
    kept = sorted(set(word_of))
    word_of = [kept.index(word) for word in word_of]
    roles = [WORD] * len(word_of)
    if specials:
        word_of, roles = [-1, *word_of, -1], [CLS, *roles, SEP]
    zeros = np.zeros(len(word_of), dtype=np.int64)
    return Encoded(
        name or document.id, Annotated(document).select(kept), zeros, zeros, tuple(roles), tuple(word_of), tuple(map(str, word_of))
    )


def sentence(tags: str, heads: Sequence[int] | None = None, relations: str = "", id: str = "d") -> Document:
    """A document of one sentence. Its words have these universal tags and heads. Heads count from 1; 0 is the root."""
    labels: Sequence[str | None] = relations.split() or [None] * len(tags.split())
    above: Sequence[int | None] = heads if heads is not None else [None] * len(tags.split())
    words = [
        Word(f"w{place}", upos=tag, head=head, relation=label)
        for place, (tag, head, label) in enumerate(zip(tags.split(), above, labels, strict=True))
    ]
    return Document(id, (Sentence(tuple(words)),))
