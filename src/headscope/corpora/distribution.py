"""Whole numbers with how often each occurred: exact quantiles of a stream, in memory bounded by the distinct values."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field


@dataclass
class Distribution:
    """Counts of whole numbers. Every summary is NaN while there are none."""

    counts: Counter[int] = field(default_factory=Counter)

    def add(self, value: int) -> None:
        """Count one more number."""
        self.counts[value] += 1

    @property
    def n(self) -> int:
        """How many numbers there are."""
        return self.counts.total()

    @property
    def total(self) -> int:
        """Their sum."""
        return sum(value * n for value, n in self.counts.items())

    @property
    def mean(self) -> float:
        """Their mean."""
        return self.total / self.n if self.counts else math.nan

    def quantile(self, q: float) -> float:
        """The number below which a share `q` lies; 0 gives the smallest, 1 the largest, and between two numbers a
        line is drawn.
        """
        if not self.counts:
            return math.nan
        place = q * (self.n - 1)
        below = math.floor(place)
        low, high = self._ranked(below), self._ranked(min(below + 1, self.n - 1))
        return low + (place - below) * (high - low)

    def share(self, values: Iterable[int]) -> float:
        """The share of the numbers that are among `values`, which are all different."""
        return sum(self.counts[value] for value in values) / self.n if self.counts else math.nan

    def _ranked(self, rank: int) -> int:
        """The number at a place, from 0, of all in ascending order."""
        for value in sorted(self.counts):
            rank -= self.counts[value]
            if rank < 0:
                return value
        raise IndexError(rank)


class Offsets(Distribution):
    """How far from each word its head stands, in words: positive to the right, negative to the left."""

    @classmethod
    def merged(cls, parts: Iterable[Offsets]) -> Offsets:
        """All parts as one."""
        whole = cls()
        for part in parts:
            whole.counts.update(part.counts)
        return whole

    @property
    def right(self) -> float:
        """The share of heads to the right of their word."""
        return self.share(value for value in self.counts if value > 0)

    @property
    def distances(self) -> Distribution:
        """The same without direction."""
        absolute = Distribution()
        for value, n in self.counts.items():
            absolute.counts[abs(value)] += n
        return absolute

    @property
    def usual(self) -> int:
        """The most frequent offset, of equally frequent ones the nearest, and the right one before the left; 0 if
        there is none.
        """
        return min(self.counts, key=lambda value: (-self.counts[value], abs(value), -value), default=0)
