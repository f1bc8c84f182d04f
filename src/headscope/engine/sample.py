"""A small sample of a stream of texts that does not depend on their order: the texts whose ids have the smallest
hashes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heapify, heappush, heappushpop

import numpy as np

from headscope.core.hashing import hash64
from headscope.core.heads import HeadLayout
from headscope.encoding.texts import Encoded
from headscope.engine.map_memory import MOST, map_bytes
from headscope.engine.packed_texts import PackedText, PackedTexts

SIZE = 96  # texts
TOKENS = 8192  # of all texts together: there are fewer texts if they are long
NICE = range(6, 41)  # tokens of a text that is easy to view


class Sample:
    """Up to `size` texts of a length that is easy to view or, if there are too few, of lengths close to it.

    A text is skipped if its maps for all heads of `layout` are too large to hold. A larger sample begins with the texts
    of a smaller one.
    """

    def __init__(self, size: int, layout: HeadLayout, measured: Callable[[Sequence[Encoded]], Sequence[Encoded]] | None = None) -> None:
        """`measured` returns texts in the form that measures saw, if it differs from the form that was read."""
        self._least = _Least(size)
        self._measured = measured
        self._heads = layout.heads()
        self._nice_fit = sum(self._heads.values()) * NICE[-1] ** 2 * 4 <= MOST  # no text of a nice length has maps that are too large
        self._sizes: dict[tuple[int, int], int] = {}  # bytes of maps, by the lengths of a text and of its target
        self.too_long = 0  # excluded texts

    def add(self, text: Encoded | PackedText) -> None:
        """Consider one more text, packed or not."""
        if not self._least.size:
            return
        lengths = len(text), -1 if text.target is None else len(text.target)
        if (size := self._sizes.get(lengths)) is None:
            size = self._sizes[lengths] = map_bytes([text], self._heads)
        if size > MOST:
            self.too_long += 1
        elif self._least.takes(unlike := _unlike(text.cost) << 64):  # else its hash is not needed
            self._least.add(unlike + order(text), text)

    def add_all(self, texts: PackedTexts) -> None:
        """Consider all of these texts."""
        if not self._least.size:
            return
        places = np.arange(len(texts))
        if self._nice_fit and (largest := self._least.largest) is not None and largest < 1 << 64:
            costs = texts.costs  # the sample is full of texts of a nice length: another needs a smaller hash
            ruled_out = (costs >= NICE[0]) & (costs <= NICE[-1]) & (texts.hashes > np.uint64(largest))
            places = np.flatnonzero(~ruled_out)
        for place in places.tolist():
            self.add(PackedText(texts, place))

    def leave_out(self, ids: Iterable[str]) -> None:
        """Exclude these texts."""
        self._least.remove(frozenset(ids))

    def texts(self) -> list[Encoded]:
        """The chosen texts, in an order that depends only on the texts."""
        kept: list[Encoded] = []
        tokens = 0
        for text in self._least.sorted():
            tokens += text.cost
            if kept and tokens > TOKENS:
                break
            kept.append(text.whole() if isinstance(text, PackedText) else text)
        return kept if self._measured is None else list(self._measured(kept))


def _unlike(tokens: int) -> int:
    """0 for a length that is easy to view; else the factor by which it is too long or too short, in thousandths."""
    return 0 if tokens in NICE else max(1000 * tokens // NICE[-1], 1000 * NICE[0] // max(1, tokens))


class _Least:
    """The `size` texts with the smallest of all numbers seen; at least one."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._heap: list[tuple[int, int, Encoded | PackedText]] = []  # the largest number first; texts are never compared
        self._seen = 0

    @property
    def largest(self) -> int | None:
        """The largest of the smallest numbers; None as long as there are fewer than `size`."""
        return -self._heap[0][0] if self._heap and len(self._heap) == self.size else None

    def takes(self, number: int) -> bool:
        """Whether a number, or a larger one that is close to it, may be among the smallest."""
        return len(self._heap) < self.size or number <= -self._heap[0][0]

    def add(self, number: int, text: Encoded | PackedText) -> None:
        self._seen += 1
        push = heappush if len(self._heap) < self.size else heappushpop
        push(self._heap, (-number, -self._seen, text))

    def remove(self, ids: frozenset[str]) -> None:
        self._heap = [item for item in self._heap if item[2].id not in ids]
        heapify(self._heap)

    def sorted(self) -> list[Encoded | PackedText]:
        return [text for *_, text in sorted(self._heap, key=lambda item: item[:2], reverse=True)]


def order(text: Encoded | PackedText) -> int:
    """A number that depends on the text's id alone."""
    return text.hash if isinstance(text, PackedText) else hash64(text.id)
