"""Which part of a long text to show: the one with the most of what it is shown for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from headscope.encoding.texts import Encoded
from headscope.measures import Measure
from headscope.measures.groups import group
from headscope.measures.resolver import Resolver

LONGEST = 48  # tokens that are shown of a text

Window = tuple[int, int]


def window(text: Encoded, measure: Measure | None = None, label: str = "", longest: int = LONGEST) -> Window:
    """The tokens [start, end) of a text, `longest` at most, that hold the most cases of a label whole, and some text
    around them.

    It begins with a word. Without cases it is the beginning of the text.
    """
    size = len(text)
    if size <= longest:
        return 0, size
    spans = np.array(list(_spans(text, measure, label)) if measure is not None else [], dtype=np.int64).reshape(-1, 2)
    first = [token for token in range(size - longest + 1) if token == 0 or text.word_of[token] < 0 or _begins(text, token)]
    starts = np.array([*first, *([] if first[-1] == size - longest else [size - longest])])
    inside = (spans[:, 0] >= starts[:, None]) & (spans[:, 1] < starts[:, None] + longest)
    held = inside.sum(1)
    best = starts[held == held.max()]
    start = int(best[len(best) // 2]) if held.max() else 0
    return start, start + longest


def _begins(text: Encoded, token: int) -> bool:
    return text.word_of[token] != text.word_of[token - 1]


def _spans(text: Encoded, measure: Measure, label: str) -> Iterator[tuple[int, int]]:
    """The first and last token of each case of a label: of a word and its governor, the head words of a mention and
    of what it refers to, a token of a group.
    """
    if measure.needs is None:
        if label.startswith("to_"):
            test = group(label.removeprefix("to_"))
            yield from ((at, at) for at, pair in enumerate(zip(text.pieces, text.roles, strict=True)) if test(*pair))
        return
    last = {word: token for token, word in enumerate(text.word_of)}
    first = {word: token for token, word in reversed([*enumerate(text.word_of)])}
    for word, other in _pairs(text, measure, label):
        yield first[min(word, other)], last[max(word, other)]


def _pairs(text: Encoded, measure: Measure, label: str) -> Iterator[tuple[int, int]]:
    """The two words of each case: a word and its governor, or the word of a question and the nearest answer."""
    if isinstance(measure, Resolver):
        for question in measure.asked(0, text.annotation, Counter()):
            if label in question.labels:
                yield question.word, min(question.answers, key=lambda answer: abs(answer - question.word))
        return
    for word, (given, head) in enumerate(zip(text.words, text.annotation.heads, strict=True)):
        if head >= 0 and ((given.relation or "") + ":").startswith(label + ":"):
            yield word, head
