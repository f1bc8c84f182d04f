"""How many bytes the maps of texts take, and how many may be held at once: a run streams, and its gallery must not
change that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from typing import Protocol

from headscope.core.heads import Kind

MOST = 160 << 20  # the maps of 512 tokens by 12 layers of 12 heads fit
SIDES: dict[Kind, tuple[str, str]] = {"encoder": ("source", "source"), "decoder": ("target", "target"), "cross": ("target", "source")}


class Sided(Sized, Protocol):
    """A text, as long as it is, and what a decoder reads of it."""

    @property
    def target(self) -> Sized | None:
        """None if there is no decoder."""


def map_size(texts: Sequence[Sided], kind: Kind) -> tuple[int, int]:
    """Rows and columns of the maps of a kind, of the longest of these texts."""
    longest = {"source": max(map(len, texts)), "target": max(len(text if text.target is None else text.target) for text in texts)}
    rows, columns = SIDES[kind]
    return longest[rows], longest[columns]


def map_bytes(texts: Sequence[Sided], heads: Mapping[Kind, int]) -> int:
    """Bytes of a batch of these texts' maps, padded, of so many heads of each kind."""
    sizes = ((number, *map_size(texts, kind)) for kind, number in heads.items())
    return sum(number * rows * columns for number, rows, columns in sizes) * len(texts) * 4
