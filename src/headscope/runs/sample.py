"""A small sample of a stream of texts, the same in whatever order they come: those whose ids have the smallest hashes."""

from __future__ import annotations

import hashlib
from heapq import heappush, heappushpop

from headscope.encoding.texts import Encoded

SIZE = 96  # texts
TOKENS = 8192  # in all: long texts are fewer
NICE = range(6, 41)  # tokens of a text that is good to look at


class Sample:
    """Up to `size` texts of a length that is good to look at or, where these are less than a quarter of it, the shortest texts."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._nice = _Least(size)
        self._short = _Least(size)

    def add(self, text: Encoded) -> None:
        """Consider one more text."""
        number = order(text)
        if text.cost in NICE:
            self._nice.add(number, text)
        self._short.add((text.cost << 64) + number, text)

    def texts(self) -> list[Encoded]:
        """The chosen texts, in an order of their own."""
        nice = self._nice.sorted()
        chosen = nice if 4 * len(nice) >= self._size else self._short.sorted()
        kept: list[Encoded] = []
        tokens = 0
        for text in chosen:
            tokens += text.cost
            if kept and tokens > TOKENS:
                break
            kept.append(text)
        return kept


class _Least:
    """The texts with the smallest of all numbers seen."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._heap: list[tuple[int, int, Encoded]] = []  # the largest number first; texts themselves are never compared
        self._seen = 0

    def add(self, number: int, text: Encoded) -> None:
        if self._size:
            self._seen += 1
            push = heappush if len(self._heap) < self._size else heappushpop
            push(self._heap, (-number, -self._seen, text))

    def sorted(self) -> list[Encoded]:
        return [text for *_, text in sorted(self._heap, key=lambda item: item[:2], reverse=True)]


def order(text: Encoded) -> int:
    """A number that depends on the text's id alone."""
    return int.from_bytes(hashlib.blake2b(text.id.encode(), digest_size=8).digest(), "little")
