"""Counting what was left out, so that nothing is left out silently."""

from __future__ import annotations

from collections import Counter


class Tally:
    """Counts by reason, each with the place where it first happened."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.first: dict[str, str] = {}

    def add(self, reason: str, where: str = "", n: int = 1) -> None:
        """Count `n` more for `reason`; remember `where` if it is the first."""
        self.counts[reason] += n
        self.first.setdefault(reason, where)

    def update(self, other: Tally) -> None:
        """Add all of another tally."""
        for reason, n in other.counts.items():
            self.add(reason, other.first.get(reason, ""), n)

    def __bool__(self) -> bool:
        return bool(self.counts)

    def lines(self) -> list[str]:
        """One line a reason: `12 multi-word tokens (first: line 40 of en.conllu)`."""
        return [
            f"{n} {reason}" + (f" (first: {self.first[reason]})" if self.first.get(reason) else "")
            for reason, n in sorted(self.counts.items())
        ]
