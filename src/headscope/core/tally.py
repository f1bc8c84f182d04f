"""Counts of what was skipped and of what was read differently from how it is written, so that neither happens
silently.
"""

from __future__ import annotations

from collections import Counter


class Tally:
    """Counts by reason, each with the place of its first case. What is counted under `read` was read nevertheless."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.first: dict[str, str] = {}
        self.read: set[str] = set()

    def add(self, reason: str, where: str = "", n: int = 1, *, read: bool = False) -> None:
        """Count `n` more for `reason`. With `read`, nothing was skipped for this reason."""
        self.counts[reason] += n
        self.first.setdefault(reason, where)
        if read:
            self.read.add(reason)

    def update(self, other: Tally) -> None:
        """Add all of another tally."""
        for reason, n in other.counts.items():
            self.add(reason, other.first.get(reason, ""), n, read=reason in other.read)

    def take(self) -> Tally:
        """All counts, as a new tally; this one is empty afterwards."""
        taken = Tally()
        taken.update(self)
        self.counts.clear()
        self.first.clear()
        self.read.clear()
        return taken

    def __bool__(self) -> bool:
        return bool(self.counts)

    def lines(self, read: bool | None = None) -> list[str]:
        """One line per reason: `12 empty nodes (first: line 40 of en.conllu)`; with `read`, only those (not) read."""
        return [
            f"{n} {reason}" + (f" (first: {self.first[reason]})" if self.first.get(reason) else "")
            for reason, n in sorted(self.counts.items())
            if read is None or read == (reason in self.read)
        ]

    def labelled(self) -> list[tuple[str, str]]:
        """All lines, each with its label: `read`, or `left out`."""
        return [(label, line) for label, read in (("read", True), ("left out", False)) for line in self.lines(read)]
