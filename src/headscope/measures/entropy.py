"""How widely a head spreads its attention: the entropy of its rows, and their largest weight (Clark et al. §3.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from headscope.core.batch import MapBatch
from headscope.core.rows import ENTROPY, LARGEST, SINK, RowNeeds
from headscope.errors import MeasureError
from headscope.measures.groups import group
from headscope.measures.means import HeadMeans, row_sums

if TYPE_CHECKING:
    from jaxtyping import Float

    from headscope.measures.means import Counts, Sums

BASES = {"nats": 1.0, "bits": 0.6931471805599453}


@dataclass(frozen=True, kw_only=True)
class Entropy(HeadMeans):
    """Mean over rows of -sum p ln p, with 0 ln 0 = 0. The baseline column is the entropy of even attention.

    `rows` are groups of `measures.groups`: `all` gives `entropy`, any other gives `entropy_<group>`. Rows that do not
    sum to 1 (attention sinks) are renormalised first; `sink_mass` is the mass that the sink takes. `smoothing` s mixes
    s/n into each row of n visible positions before its entropy is taken; the released code used 1e-4.
    """

    name: ClassVar[str] = "entropy"
    summary: ClassVar[str] = "entropy of the attention rows, from all tokens and from [CLS], and their largest weight"
    within: ClassVar[tuple[float, float]] = (0.0, np.inf)
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"reference": {"smoothing": 1e-4}}

    rows: tuple[str, ...] = ("all", "cls")
    smoothing: float = 0.0
    base: Literal["nats", "bits"] = "nats"

    def __post_init__(self) -> None:
        for name in self.rows:
            group(name)
        if not self.rows or not 0 <= self.smoothing < 1:
            raise MeasureError(
                f"entropy: rows are {self.rows!r} and smoothing is {self.smoothing!r}",
                "Name a row group, and use a smoothing of 0 or a share below 1",
            )

    def quantities(self) -> tuple[str, ...]:
        """`entropy`, `entropy_cls`, ..., `max_weight`, `sink_mass`."""
        return (*("entropy" if name == "all" else f"entropy_{name}" for name in self.rows), "max_weight", "sink_mass")

    def shown(self, means: Float[np.ndarray, "quantity head"]) -> list[int]:
        """All quantities, but `sink_mass` only if some head has a sink. The sums of rows in bfloat16 differ from 1 by
        up to 0.004.
        """
        sink = len(means) - 1
        return [number for number in range(len(means)) if number != sink or (np.abs(means[sink]) > 0.01).any()]

    def row_needs(self) -> RowNeeds | None:
        """Statistics that are always known, per group of rows; None (maps) if smoothing changes the rows or rows are of
        words.
        """
        return None if self.smoothing or self.level == "word" else self._needs

    @property
    def _needs(self) -> RowNeeds:
        return RowNeeds(rows=tuple((name, group(name)) for name in self.rows if name != "all"))

    def observe(self, batch: MapBatch) -> tuple[Sums, Counts]:
        """Row entropies, largest weights and missing mass, each summed over its rows."""
        import torch

        rows = row_sums(batch, self._needs)
        spread = rows
        if self.smoothing:
            weights = batch.weights + self.smoothing * (batch.even().weights - batch.weights)
            spread = row_sums(replace(batch, maps=weights, rows=None), self._needs)
        sums = [spread.over(name)[..., ENTROPY] / BASES[self.base] for name in self.rows]
        sums += [rows.over("all")[..., LARGEST], rows.over("all")[..., SINK]]
        counted = [batch.queries.chosen(name, group(name)).sum(1) for name in (*self.rows, "all", "all")]
        return torch.stack(sums, 1), np.stack(counted, 1).astype(np.float64)
