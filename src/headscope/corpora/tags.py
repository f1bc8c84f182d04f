"""Tags of words that a model can learn to find: parts of speech, or which words are part of a keyphrase."""

from __future__ import annotations

import string
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

from headscope.core.document import Document
from headscope.corpora.labels import UPOS

Tagging = Literal["upos", "xpos", "keyphrases"]
OUTSIDE = "O"
PHRASE_TAGS = frozenset({"B", "I", OUTSIDE})
_SIGNS = string.punctuation + "“”‘’«»…"


def tagging_of(names: Iterable[str]) -> Tagging:
    """What tags of these names say of words, or most likely do."""
    named = frozenset(names)
    return "keyphrases" if named <= PHRASE_TAGS else "upos" if named <= UPOS else "xpos"


def tags_in(document: Document, tagging: Tagging) -> Sequence[str | None]:
    """The tag of each word of the document."""
    return phrase_tags(document) if tagging == "keyphrases" else [getattr(word, tagging) for word in document.words]


def phrase_tags(document: Document) -> list[str]:
    """B, I or O for each word: every place where a keyphrase stands, whatever its case, the longest first.

    Signs before the first word and after the last, which running text does not part from them, do not count: `(data
    mining),`.
    """
    forms = [word.form.casefold() for word in document.words]
    tags = [OUTSIDE] * len(forms)
    places: defaultdict[str, list[int]] = defaultdict(list)  # by what is left of a form without signs, so that few places are looked at
    for place, form in enumerate(forms):
        places[form.strip(_SIGNS)].append(place)
    phrases = {tuple(phrase.casefold().split()) for phrase in document.keyphrases} - {()}
    for phrase in sorted(phrases, key=lambda words: (-len(words), words)):
        last = len(phrase) - 1
        for start in places.get(phrase[0].strip(_SIGNS), ()):
            own = slice(start, start + len(phrase))
            pairs = enumerate(zip(forms[own], phrase, strict=False))
            if tags[own] == [OUTSIDE] * len(phrase) and all(_says(form, word, at == 0, at == last) for at, (form, word) in pairs):
                tags[own] = ["B", *["I"] * last]
    return tags


def _says(form: str, word: str, first: bool, last: bool) -> bool:
    """Whether a form is a word and nothing else but signs before it, if it is the first of its phrase, and after it,
    if it is the last.
    """
    before, found, after = form.partition(word)
    return bool(found) and (first or not before) and (last or not after) and not (before + after).strip(_SIGNS)
