"""Attention to positions relative to the attending token: itself, the previous, the next, or any offset (Clark et al.
§3.1).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from headscope.core.batch import MapBatch
from headscope.core.rows import RowNeeds
from headscope.errors import MeasureError
from headscope.measures.means import HeadMeans, row_sums

if TYPE_CHECKING:
    from headscope.measures.means import Counts, Sums

NAMES = {-1: "previous", 0: "self", 1: "next"}


@dataclass(frozen=True, kw_only=True)
class Positions(HeadMeans):
    """Mean weight on the position `offset` away. With `denominator="n"` (the paper's code), the sum over a text of n
    rows is divided by n, although only n - |offset| rows have such a position; `"valid"` divides by the number of rows
    that do.
    """

    name: ClassVar[str] = "positions"
    summary: ClassVar[str] = "attention to the token itself, the previous, the next, or any offset"
    within: ClassVar[tuple[float, float]] = (0.0, 1.0)

    offsets: tuple[int, ...] = (-2, -1, 0, 1, 2)
    denominator: Literal["n", "valid"] = "n"

    def __post_init__(self) -> None:
        if not self.offsets or max(map(abs, self.offsets)) > 100_000:
            raise MeasureError(f"positions: offsets are {self.offsets!r}", "Give whole numbers that fit in a text, such as [-1, 0, 1]")

    def quantities(self) -> tuple[str, ...]:
        """`self`, `previous`, `next`, and `offset_-2`, `offset_+2` and so on for the others."""
        return tuple(NAMES.get(offset, f"offset_{offset:+d}") for offset in self.offsets)

    def defined(self, kind: str, quantity: str) -> bool:
        """Whether there are such positions: cross-attention has none, a decoder only earlier ones."""
        ahead = quantity == "next" or quantity.startswith("offset_+")
        return kind == "encoder" or (kind == "decoder" and not ahead)

    def row_needs(self) -> RowNeeds | None:
        """The weight at each offset."""
        return RowNeeds(offsets=self.offsets) if self.level == "token" else None

    def observe(self, batch: MapBatch) -> tuple[Sums, Counts]:
        """Sums along the diagonals of the maps."""
        import torch

        rows = row_sums(batch, RowNeeds(offsets=self.offsets))
        sums = torch.stack([rows.over("all")[..., rows.needs.column(offset)] for offset in self.offsets], 1)
        reach = np.abs(self.offsets) if self.denominator == "valid" else np.zeros(len(self.offsets))
        return sums, np.maximum(batch.queries.lengths[:, None] - reach, 0)
