"""A prompt and the tokens that a model wrote after it, as one text.

The tokens are kept as they were generated: their text is not tokenised again, which could give other tokens. They are
grouped into words by the rules for plain text, with two exceptions: a word always begins at a token, so that no token
belongs to two words, and the first generated token begins a word even if it completes the last word of the prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate

import numpy as np

from headscope.core.annotation import Annotation
from headscope.core.batch import WORD
from headscope.core.document import Word
from headscope.corpora.words import word_spans
from headscope.encoding.texts import Encoded
from headscope.encoding.tokenizer import Tokenizer

_PART = "\N{REPLACEMENT CHARACTER}"  # what a byte-level tokenizer gives for part of a character


def prompt_of(text: Encoded) -> Encoded:
    """The text without the special tokens that close it, since a model continues only an open text."""
    end = max((place for place, word in enumerate(text.word_of, 1) if word >= 0), default=len(text))
    if end == len(text):
        return text
    arrays = text.ids[:end], text.segments[:end]
    return replace(text, ids=arrays[0], segments=arrays[1], roles=text.roles[:end], word_of=text.word_of[:end], pieces=text.pieces[:end])


def continued(prompt: Encoded, ids: Sequence[int], tokenizer: Tokenizer) -> Encoded:
    """The prompt followed by these tokens. It has no annotation, since that of the prompt does not cover them."""
    roles = tuple(tokenizer.role(token, first=False) if token in tokenizer.special else WORD for token in ids)
    forms, word_of = _forms(int(prompt.ids[-1]), ids, roles, tokenizer)
    begins = [form[:1].isspace() for form in forms] + [False]  # with a space
    names = [tokenizer.readable(ids[word_of.index(number)]) for number in range(len(forms))]
    words = [
        Word(form.strip() or name, space_after=form[-1:].isspace() or after)
        for form, name, after in zip(forms, names, begins[1:], strict=True)
    ]
    before = [Word(word.form, space_after=word.space_after) for word in prompt.words]
    if before and words:  # only now it is known whether a space follows the prompt
        before[-1] = replace(before[-1], space_after=begins[0])
    own = prompt.annotation
    annotation = Annotation.of_sentence(own.document, (*before, *words))
    return Encoded(
        prompt.id,
        replace(annotation, subset=own.subset, metadata=own.metadata, slice=own.slice),
        np.concatenate([prompt.ids, np.array(ids, dtype=np.int64)]),
        np.concatenate([prompt.segments, np.zeros(len(ids), dtype=np.int64)]),
        prompt.roles + roles,
        prompt.word_of + tuple(len(before) + word if word >= 0 else -1 for word in word_of),
        prompt.pieces + tokenizer.pieces(ids),
        unknown=prompt.unknown + sum(token in tokenizer.unknown for token in ids),
        generated_from=len(prompt),
    ).with_arrays()


def _forms(before: int, ids: Sequence[int], roles: Sequence[int], tokenizer: Tokenizer) -> tuple[list[str], list[int]]:
    """The words of the tokens after the token `before`, with the spaces around them, and the word of each token: -1 for
    special tokens. A token that consists of spaces is a separate word.
    """
    # A token is decoded together with those before it; its text begins where the complete characters before it end.
    texts = [tokenizer.decode_after(before, ids[:count]) for count in range(len(ids) + 1)]
    text = texts[-1]
    # Part of a character at the end makes parts of whole ones before it, if the tokens are single bytes.
    bounds = [*accumulate((min(len(part.rstrip(_PART)), len(text)) for part in texts[:-1]), max), len(text)]
    span_at = {place: start for start, end in word_spans(text) for place in range(start, end)}
    forms: list[str] = []
    word_of: list[int] = []
    last: int | None = None
    for number, role in enumerate(roles):
        start, end = bounds[number : number + 2]
        if role != WORD:
            word_of.append(-1)
            last = None
            continue
        spaces = start < end and text[start:end].isspace() and not texts[number + 1].endswith(_PART)
        span = None if spaces else next((span_at[place] for place in range(start, len(text)) if place in span_at), None)
        if span is None or span != last:
            forms.append("")
        forms[-1] += text[start:end]
        word_of.append(len(forms) - 1)
        last = span
    return forms, word_of
