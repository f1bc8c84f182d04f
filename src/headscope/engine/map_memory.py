"""The memory of maps in bytes, and the limit on maps held together, so that a gallery does not need more memory than
the run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from typing import Protocol

from headscope.core.heads import Kind

MOST = 160 << 20  # enough for the maps of 512 tokens by 12 layers of 12 heads
SIDES: dict[Kind, tuple[str, str]] = {"encoder": ("source", "source"), "decoder": ("target", "target"), "cross": ("target", "source")}


class Sided(Sized, Protocol):
    """A text with a length, and the text that a decoder reads."""

    @property
    def target(self) -> Sized | None:
        """None if there is no decoder."""


def map_size(texts: Sequence[Sided], kind: Kind) -> tuple[int, int]:
    """Rows and columns of the maps of a kind, of the longest of these texts."""
    longest = {"source": max(map(len, texts)), "target": max(len(text if text.target is None else text.target) for text in texts)}
    rows, columns = SIDES[kind]
    return longest[rows], longest[columns]


def map_bytes(texts: Sequence[Sided], heads: Mapping[Kind, int]) -> int:
    """Bytes of a batch of these texts' padded maps, for this many heads of each kind."""
    sizes = ((number, *map_size(texts, kind)) for kind, number in heads.items())
    return sum(number * rows * columns for number, rows, columns in sizes) * len(texts) * 4
