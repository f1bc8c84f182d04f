"""Phrases from weights of words: neighbours above a threshold, without function words at the ends, ignoring case."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.document import Document

if TYPE_CHECKING:
    from jaxtyping import Float64

# English; removed at the ends of a phrase, kept in its middle: `theory of relativity`.
_LISTED = """
    a an the this that these those some any each every all both no not only such same other another
    i you he she it we they me him her us them my your his its our their one ones who whom whose which what
    and or but nor so yet if then than as because while when where how why whether though although
    of in on at by for with from to into onto over under between among through during before after about above below against
    within without via per upon across along toward towards up down out off
    be am is are was were been being do does did done have has had having can could may might must shall should will would
    also very more most much many few several here there now thus however therefore hence still just too even
    's 't n't 're 've 'll 'd 'm
"""
FUNCTION_WORDS = frozenset(_LISTED.split())


@dataclass(frozen=True)
class Phrase:
    """A phrase as first written, its score, and its places: words [start, end), counted from 0."""

    text: str
    score: float
    places: tuple[tuple[int, int], ...]


def phrases(document: Document, weights: Float64[np.ndarray, "word"], cut: float) -> list[Phrase]:
    """The phrases of a document whose words all have a weight of `cut` or more, the best first.

    The score is the sum of weights over the words of all places of a phrase. Weights are probabilities, so it is the
    expected number of words of keyphrases. Of the scores that were tested (docs/keywords.md) this one ranks best.
    """
    forms = [word.form.casefold() for word in document.words]
    places: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    for start, end in runs(document, weights, cut):
        places.setdefault(tuple(forms[start:end]), []).append((start, end))
    ranked = []
    for at in places.values():
        score = float(sum(weights[start:end].sum() for start, end in at))
        ranked.append(Phrase(written(document, at[0]), score, tuple(at)))
    return sorted(ranked, key=lambda phrase: (-phrase.score, phrase.places[0]))


def runs(document: Document, weights: Float64[np.ndarray, "word"], cut: float) -> Iterator[tuple[int, int]]:
    """Runs [start, end) of words within a sentence, without punctuation, of at least `cut`, trimmed at both ends."""
    forms = [word.form for word in document.words]
    taken = [bool(weight >= cut) and any(map(str.isalnum, form)) for weight, form in zip(weights, forms, strict=True)]
    begins = 0
    for sentence in document.sentences:
        stop = begins + len(sentence)
        start = begins
        while start < stop:
            end = start
            while end < stop and taken[end]:
                end += 1
            if (trimmed := _trimmed(forms, start, end)) is not None:
                yield trimmed
            start = end + 1
        begins = stop


def _trimmed(forms: Sequence[str], start: int, end: int) -> tuple[int, int] | None:
    """A run without function words at its ends; None if no word with a letter is left."""
    while start < end and _function_word(forms[start]):
        start += 1
    while start < end and _function_word(forms[end - 1]):
        end -= 1
    return (start, end) if any(mark.isalpha() for form in forms[start:end] for mark in form) else None


def _function_word(form: str) -> bool:
    return form.casefold().replace("’", "'") in FUNCTION_WORDS


def written(document: Document, place: tuple[int, int]) -> str:
    """Words as written in the text."""
    return "".join(word.form + " " * word.space_after for word in document.words[slice(*place)]).rstrip()
