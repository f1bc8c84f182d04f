"""Pairs of observations of two samples that are nearly alike in something that must not matter, such as their
length.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

CALIPER = 0.1  # of the first one's value; or 1, if that is more


def matched(x: Sequence[float], y: Sequence[float], caliper: float = CALIPER) -> list[tuple[int, int]]:
    """Index pairs (of x, of y), no index twice: each x in turn takes the nearest y left, if it is no further than the
    caliper.

    Of two as near the smaller is taken, and of equals the first.
    """
    left = sorted((value, place) for place, value in enumerate(y))
    pairs = []
    for place, value in enumerate(x):
        at = bisect_left(left, (value, -1))
        near = [number for number in (at - 1, at) if 0 <= number < len(left)]
        if not near:
            break
        best = min(near, key=lambda number: (abs(left[number][0] - value), left[number]))
        best = bisect_left(left, (left[best][0], -1))
        if abs(left[best][0] - value) <= max(1.0, caliper * abs(value)):
            pairs.append((place, left.pop(best)[1]))
    return pairs
