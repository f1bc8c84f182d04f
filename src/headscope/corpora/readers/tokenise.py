"""Split English text into words by a few rules, for corpora that annotate characters: every word has its place in the
text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import NamedTuple

from headscope.core.document import Sentence, Word

_WORD = re.compile(
    r"""
      (?:[^\W\d_]\.){2,}                        # U.S., J.K.
    | \b(?-i:Mr|Mrs|Ms|Dr|St|Jr|Sr|Prof|Rev|Gen|Col|Capt|Lt|Sgt|Gov|Sen|vs|etc)\.
    | \b(?-i:[A-Z])\.(?=\s+(?-i:[A-Z]))         # the initial of J. Smith
    | \w+(?=n['’]t\b)                           # would|n't
    | n['’]t\b
    | ['’](?:s|re|ve|ll|d|m)\b                  # Pauline|'s
    | \d+(?:[.,:]\d+)+                          # 1,000.5 and 10:30
    | [^\W\d_]['’](?-i:[A-Z])\w+                # O'Brien
    | \**\w[\w*]*(?:-\w[\w*]*)*                # wheel-thrown; GAP writes * for letters it lost, as in C*rdoba
    | \.{2,} | -{2,} | '' | ``
    | [^\w\s]
    """,
    re.VERBOSE | re.IGNORECASE,
)
_ENDS = frozenset({".", "!", "?"})
_CLOSING = frozenset({'"', "'", "''", "”", "’", "»", ")", "]", "}"})
_OPENING = frozenset({'"', "'", "``", "“", "‘", "«", "(", "[", "{"})


class Span(NamedTuple):
    """A word's place among the characters of its text."""

    start: int
    end: int


def word_spans(text: str, cuts: Collection[int] = ()) -> list[Span]:
    """The places of the words of a text. `cuts` are places where a word must end, because an annotation begins or ends
    there.
    """
    spans = []
    for found in _WORD.finditer(text):
        edges = [found.start(), *sorted(cut for cut in set(cuts) if found.start() < cut < found.end()), found.end()]
        spans += [Span(start, end) for start, end in pairwise(edges)]
    return spans


def sentence(text: str, spans: list[Span]) -> Sentence:
    """These words as one sentence."""
    return Sentence(tuple(_word(text, spans, number) for number in range(len(spans))))


def sentences(text: str, spans: list[Span]) -> Iterator[Sentence]:
    """These words as sentences: one ends at . ! or ?, with the quotes and brackets after it, where an upper-case
    letter goes on.
    """
    for begin, end in sentence_places([text[start:end] for start, end in spans]):
        yield Sentence(tuple(_word(text, spans, number) for number in range(begin, end)))


def sentence_places(forms: list[str]) -> Iterator[tuple[int, int]]:
    """The places [start, end) of sentences among words, by the rule of `sentences`."""
    begin = 0
    for place in range(1, len(forms) + 1):
        if place == len(forms) or _parts(forms, place):
            yield begin, place
            begin = place


def _word(text: str, spans: list[Span], number: int) -> Word:
    start, end = spans[number]
    return Word(text[start:end], space_after=number + 1 == len(spans) or spans[number + 1].start > end)


def _parts(forms: list[str], place: int) -> bool:
    """Whether a sentence begins with the word at `place`."""
    last = place - 1
    while last > 0 and forms[last] in _CLOSING and forms[last] not in _ENDS:
        last -= 1
    if forms[last] not in _ENDS or (forms[place] in _CLOSING and place == last + 1):
        return False
    first = next((form for form in forms[place:] if form not in _OPENING), "")
    return first[:1].isupper()
