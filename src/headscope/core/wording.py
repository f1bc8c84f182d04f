"""Numbers in sentences."""

from __future__ import annotations


def number_of(count: int, noun: str) -> str:
    """A number with its noun, as in `1 document` or `2,345 documents`. The plural of the noun is made with an s."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
