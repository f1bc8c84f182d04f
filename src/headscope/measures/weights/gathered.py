"""What a batch shows of all layers of a kind together: rows of attention, gathered site by site until the last one
is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.batch import Later, MapBatch
from headscope.stats.divergence import RowStack

if TYPE_CHECKING:
    import torch
    from jaxtyping import Float, Int64

MOST = {"cpu": 256 << 20, "cuda": 4 << 30}  # bytes of rows that are held; of what takes more, blocks of rows are worked out again


@dataclass(frozen=True)
class RowBlock:
    """Some of the chosen rows, by number, of all heads; beyond `ends` keys they hold no weight."""

    rows: Int64[np.ndarray, "n"]
    ends: Int64[np.ndarray, "n"]
    stack: RowStack


class Gathered:
    """The rows `places` of the texts `texts`, in the order of the texts, from all sites of a kind; smoothed towards
    even attention.
    """

    def __init__(self, batch: MapBatch, texts: Int64[np.ndarray, "row"], places: Int64[np.ndarray, "row"], smoothing: float) -> None:
        self.kind = batch.site.kind
        self.texts, self.places = texts, places
        self._sites = [number for number, site in enumerate(batch.layout.sites) if site.kind == self.kind]
        self._heads = [batch.layout.sites[number].heads for number in self._sites]
        self._device = batch.weights.device
        self._keys = batch.weights.shape[-1]
        self._lengths = batch.keys.lengths.astype(np.int64)
        self._smoothing = smoothing
        self._seen = 0
        self._later: list[tuple[Later, Float[torch.Tensor, "text query key"] | None]] = []
        self._held = self._stack(np.arange(len(texts))) if self._bytes(len(texts)) <= MOST.get(self._device.type, MOST["cpu"]) else None

    @property
    def complete(self) -> bool:
        """Whether all sites have been seen."""
        return self._seen == len(self._sites)

    def add(self, batch: MapBatch) -> None:
        """Take the rows of the next site, or, if they would be too many, only remember how to get them."""
        if batch.index != self._sites[self._seen]:
            raise ValueError(f"site {batch.index} of a batch came where {self._sites[self._seen]} was due")
        even = batch.even().weights[:, 0] if self._smoothing else None
        if self._held is not None:
            self._put(self._held, self._seen, batch.weights, even)
        else:
            self._later.append((batch.later(), even))
        self._seen += 1

    def blocks(self) -> Iterator[RowBlock]:
        """All rows, in one block if they are held, else in as many as memory asks for: each is a stretch of
        positions in every text.
        """
        if self._held is not None:
            yield self._block(np.arange(len(self.texts)), self._held)
            return
        width = int(self.places.max(initial=-1)) + 1
        step = max(1, MOST.get(self._device.type, MOST["cpu"]) // self._bytes(len(self._lengths)))
        for start in range(0, width, step):
            rows = np.flatnonzero((self.places >= start) & (self.places < start + step))
            if len(rows):
                stop = min(start + step, width)
                stack = self._stack(rows, start)
                for site, (later, even) in enumerate(self._later):
                    cut = even[:, start:stop] if even is not None else None
                    self._put(stack, site, later(start, stop), cut)
                yield self._block(rows, stack)

    def _bytes(self, rows: int) -> int:
        return rows * sum(self._heads) * self._keys * 4

    def _stack(self, rows: Int64[np.ndarray, "n"], start: int = 0) -> RowStack:
        """Room for some rows, of maps that begin at row `start`."""
        return RowStack(self.texts[rows], self.places[rows] - start, self._heads, self._keys, self._device)

    def _put(
        self,
        stack: RowStack,
        site: int,
        maps: Float[torch.Tensor, "text head query key"],
        even: Float[torch.Tensor, "text query key"] | None,
    ) -> None:
        stack.put(site, maps, None if even is None else (self._smoothing, even))

    def _block(self, rows: Int64[np.ndarray, "n"], stack: RowStack) -> RowBlock:
        """A decoder's early rows are mostly empty: there it pays to see where they end."""
        ends = stack.ends() if self.kind == "decoder" else self._lengths[self.texts[rows]]
        return RowBlock(rows, ends, stack)
