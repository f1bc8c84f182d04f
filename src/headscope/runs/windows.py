"""Which part of a long text to show: the one with the most of what it is shown for."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headscope.encoding.texts import Encoded
from headscope.measures import Measure
from headscope.measures.groups import group

LONGEST = 48  # tokens that are shown of a text

Window = tuple[int, int]


def window(text: Encoded, measure: Measure | None = None, label: str = "", longest: int = LONGEST) -> Window:
    """The tokens [start, end) of a text, `longest` at most, that hold the most cases of a label whole, and some text around them.

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
    """The first and last token of each case: of a word and its governor, a mention and the one before it, a token of a group."""
    if measure.needs is None:
        if label.startswith("to_"):
            test = group(label.removeprefix("to_"))
            yield from ((at, at) for at, pair in enumerate(zip(text.pieces, text.roles, strict=True)) if test(*pair))
        return
    place = {word: token for token, word in enumerate(text.word_of)}
    if measure.needs == "trees":
        for word, (given, head) in enumerate(zip(text.words, text.annotation.heads, strict=True)):
            if head >= 0 and ((given.relation or "") + ":").startswith(label + ":"):
                yield min(place[word], place[head]), max(place[word], place[head])
        return
    last: dict[str, int] = {}
    for mention in text.annotation.mentions:
        end = place[mention.end - 1]
        if mention.entity in last:
            yield min(last[mention.entity], place[mention.start]), max(last[mention.entity], end)
        last[mention.entity] = place[mention.start]
