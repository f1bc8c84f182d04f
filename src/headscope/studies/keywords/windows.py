"""Long texts in windows that overlap, so that every word is seen with words on either side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Float64

Window = tuple[int, int]  # words [start, end)


def windows(sizes: Sequence[int], room: int) -> list[Window]:
    """Windows of at most `room` tokens over words of these sizes, each beginning halfway through the one before; the last is as full."""
    ends = np.concatenate([[0], np.cumsum(sizes)])
    listed: list[Window] = []
    start, words = 0, len(sizes)
    while True:
        end = int(np.searchsorted(ends, ends[start] + room, "right")) - 1
        if end >= words:
            first = int(np.searchsorted(ends, ends[words] - room, "left"))
            # What lies within the last window, as it reaches back, would add nothing.
            return [*(window for window in listed if window[0] < first), (first, words)]
        if listed and end == listed[-1][1]:  # before a long word: not further than the window before
            start += 1
            continue
        listed.append((start, end))
        start = min(max(int(np.searchsorted(ends, ends[start] + room / 2, "left")), start + 1), end)


def centrality(window: Window, words: int) -> Float64[np.ndarray, "word"]:
    """How many words stand between each word of a window and its nearer edge; the ends of the text itself are no edges."""
    start, end = window
    places = np.arange(start, end)
    left = places - start if start > 0 else np.full(end - start, np.inf)
    right = end - 1 - places if end < words else np.full(end - start, np.inf)
    nearer: Float64[np.ndarray, "word"] = np.minimum(left, right)
    return nearer
