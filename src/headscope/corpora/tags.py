"""Tags of words: those of Universal Dependencies, and those that a model can learn to find."""

from __future__ import annotations

import string
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

from headscope.core.document import Document

# fmt: off
UPOS = frozenset(
    {
        "ADJ", "ADP", "ADV", "AUX", "CCONJ", "DET", "INTJ", "NOUN", "NUM", "PART", "PRON", "PROPN", "PUNCT",
        "SCONJ", "SYM", "VERB", "X",
    }
)
RELATIONS = frozenset(
    {
        "acl", "advcl", "advmod", "amod", "appos", "aux", "case", "cc", "ccomp", "clf", "compound", "conj",
        "cop", "csubj", "dep", "det", "discourse", "dislocated", "expl", "fixed", "flat", "goeswith", "iobj",
        "list", "mark", "nmod", "nsubj", "nummod", "obj", "obl", "orphan", "parataxis", "punct", "reparandum",
        "root", "vocative", "xcomp",
    }
)
# fmt: on


Tagging = Literal["upos", "xpos", "keyphrases"]
OUTSIDE = "O"
PHRASE_TAGS = frozenset({"B", "I", OUTSIDE})
_SIGNS = string.punctuation + "“”‘’«»…"


def tagging_of(names: Iterable[str]) -> Tagging:
    """The kind of tagging that tags of these names most likely express."""
    named = frozenset(names)
    return "keyphrases" if named <= PHRASE_TAGS else "upos" if named <= UPOS else "xpos"


def tags_in(document: Document, tagging: Tagging) -> Sequence[str | None]:
    """The tag of each word of the document."""
    return phrase_tags(document) if tagging == "keyphrases" else [getattr(word, tagging) for word in document.words]


def phrase_tags(document: Document) -> list[str]:
    """B, I or O for each word: all occurrences of keyphrases, in any case, the longest first.

    Punctuation attached to the first or the last word is ignored: `(data mining),`.
    """
    forms = [word.form.casefold() for word in document.words]
    tags = [OUTSIDE] * len(forms)
    places: defaultdict[str, list[int]] = defaultdict(list)  # by the form without punctuation, so that few places need a comparison
    for place, form in enumerate(forms):
        places[form.strip(_SIGNS)].append(place)
    phrases = {tuple(phrase.casefold().split()) for phrase in document.keyphrases} - {()}
    for phrase in sorted(phrases, key=lambda words: (-len(words), words)):
        last = len(phrase) - 1
        for start in places.get(phrase[0].strip(_SIGNS), ()):
            span = slice(start, start + len(phrase))
            pairs = enumerate(zip(forms[span], phrase, strict=False))
            if tags[span] == [OUTSIDE] * len(phrase) and all(_says(form, word, at == 0, at == last) for at, (form, word) in pairs):
                tags[span] = ["B", *["I"] * last]
    return tags


def _says(form: str, word: str, first: bool, last: bool) -> bool:
    """Whether a form is the word, except for punctuation before it (if first of its phrase) or after it (if last)."""
    before, match, after = form.partition(word)
    return bool(match) and (first or not before) and (last or not after) and not (before + after).strip(_SIGNS)
