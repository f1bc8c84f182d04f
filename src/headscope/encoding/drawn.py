"""Replace drawn words by tokens of a model's vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from headscope.core.document import Document, DrawnWord
from headscope.encoding.tokenizer import Tokenizer
from headscope.errors import EncodingError


def with_tokens(document: Document, tokenizer: Tokenizer, max_length: int) -> Document:
    """The document with one token for each drawn word, whose form becomes that of the token; other documents are
    returned unchanged.

    Different draws of a document get different tokens. A document that does not fit is an error: cut in two, it would
    repeat nothing.
    """
    draws = [word.draw for word in document.words if isinstance(word, DrawnWord)]
    if not draws:
        return document
    size = len(draws) + tokenizer.single.size
    if size > max_length:
        raise EncodingError(f"{document.id} has {size} tokens where {max_length} fit", f"Use --max-length {size}, or shorter sequences")
    token_of = dict(zip(dict.fromkeys(draws), distinct(list(dict.fromkeys(draws)), tokenizer.ordinary), strict=True))

    def resolved(word: DrawnWord) -> DrawnWord:
        token = token_of[word.draw]
        return replace(word, form=tokenizer.readable(token), token=token)

    sentences = [
        replace(sentence, words=tuple(resolved(word) if isinstance(word, DrawnWord) else word for word in sentence.words))
        for sentence in document.sentences
    ]
    return replace(document, sentences=tuple(sentences))


def distinct(draws: Sequence[int], vocabulary: Sequence[int]) -> list[int]:
    """A token per draw, different from those of all draws before it: a uniform draw without replacement."""
    if len(draws) > len(vocabulary):
        raise EncodingError(f"{len(draws)} different tokens of a vocabulary of {len(vocabulary)}", "Use shorter sequences")
    moved: dict[int, int] = {}  # the index of the token at a place, if it was moved there
    tokens = []
    for number, draw in enumerate(draws):
        place = number + draw % (len(vocabulary) - number)
        tokens.append(vocabulary[moved.get(place, place)])
        moved[place] = moved.get(number, number)
    return tokens
