"""A small sample of a stream of texts, the same in whatever order they come: those whose ids have the smallest
hashes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappush, heappushpop

from headscope.core.hashing import hash64
from headscope.core.heads import HeadLayout
from headscope.encoding.texts import Encoded
from headscope.engine.map_memory import MOST, map_bytes
from headscope.engine.prefetch import PackedText

SIZE = 96  # texts
TOKENS = 8192  # in all: long texts are fewer
NICE = range(6, 41)  # tokens of a text that is good to look at


class Sample:
    """Up to `size` texts of a length that is good to look at and, where these do not suffice, of lengths close to it.

    A text is left out if the maps of all heads of `layout` on it are too large to be held. A larger sample begins
    with a smaller one.
    """

    def __init__(self, size: int, layout: HeadLayout, measured: Callable[[Sequence[Encoded]], Sequence[Encoded]] | None = None) -> None:
        """`measured` gives texts as measures saw them, where that is not how they were read."""
        self._least = _Least(size)
        self._measured = measured
        self._heads = layout.heads()
        self._sizes: dict[tuple[int, int], int] = {}  # bytes of maps, by the lengths of a text and of its target
        self.too_long = 0  # texts left out

    def add(self, text: Encoded | PackedText) -> None:
        """Consider one more text, be it packed."""
        lengths = len(text), -1 if text.target is None else len(text.target)
        if (size := self._sizes.get(lengths)) is None:
            size = self._sizes[lengths] = map_bytes([text], self._heads)
        if size > MOST:
            self.too_long += 1
        elif self._least.takes(unlike := _unlike(text.cost) << 64):  # else its hash need not be worked out
            self._least.add(unlike + order(text), text)

    def leave_out(self, ids: Iterable[str]) -> None:
        """Choose none of these texts."""
        self._least.remove(frozenset(ids))

    def texts(self) -> list[Encoded]:
        """The chosen texts, in an order of their own."""
        kept: list[Encoded] = []
        tokens = 0
        for text in self._least.sorted():
            tokens += text.cost
            if kept and tokens > TOKENS:
                break
            kept.append(text.whole() if isinstance(text, PackedText) else text)
        return kept if self._measured is None else list(self._measured(kept))


def _unlike(tokens: int) -> int:
    """0 for a length that is good to look at; else, in thousandths, how many times too long or too short it is."""
    return 0 if tokens in NICE else max(1000 * tokens // NICE[-1], 1000 * NICE[0] // max(1, tokens))


class _Least:
    """The texts with the smallest of all numbers seen."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._heap: list[tuple[int, int, Encoded | PackedText]] = []  # the largest number first; texts themselves are never compared
        self._seen = 0

    def takes(self, number: int) -> bool:
        """Whether a number, or a larger one that is close to it, may be among the smallest."""
        return len(self._heap) < self._size or (self._size > 0 and number <= -self._heap[0][0])

    def add(self, number: int, text: Encoded | PackedText) -> None:
        if self._size:
            self._seen += 1
            push = heappush if len(self._heap) < self._size else heappushpop
            push(self._heap, (-number, -self._seen, text))

    def remove(self, ids: frozenset[str]) -> None:
        self._heap = [item for item in self._heap if item[2].id not in ids]
        heapify(self._heap)

    def sorted(self) -> list[Encoded | PackedText]:
        return [text for *_, text in sorted(self._heap, key=lambda item: item[:2], reverse=True)]


def order(text: Encoded | PackedText) -> int:
    """A number that depends on the text's id alone."""
    return hash64(text.id)
