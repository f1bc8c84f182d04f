"""Rows of attention from all layers of a kind, gathered site by site for one batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.batch import Later, MapBatch
from headscope.core.rows import AttentionScores
from headscope.stats.divergence import RowStack

if TYPE_CHECKING:
    import torch
    from jaxtyping import Float, Int64

MOST = {"cpu": 256 << 20, "cuda": 4 << 30}  # the most bytes of rows in memory; beyond that, rows are computed again block by block


@dataclass(frozen=True)
class RowBlock:
    """Some of the chosen rows, by number, of all heads. Keys from `ends` on have no weight."""

    rows: Int64[np.ndarray, "n"]
    ends: Int64[np.ndarray, "n"]
    stack: RowStack


class Gathered:
    """The rows `places` of the texts `texts`, in the order of the texts, from all sites of a kind, smoothed towards
    even attention.
    """

    def __init__(self, batch: MapBatch, texts: Int64[np.ndarray, "row"], places: Int64[np.ndarray, "row"], smoothing: float) -> None:
        self.kind = batch.site.kind
        self.texts, self.places = texts, places
        self._sites = [number for number, site in enumerate(batch.layout.sites) if site.kind == self.kind]
        self._heads = [batch.layout.sites[number].heads for number in self._sites]
        self.device = batch.device
        self._keys = batch.keys.width
        self._lengths = batch.keys.lengths.astype(np.int64)
        self._smoothing = smoothing
        self._seen = 0
        self._ahead = -1  # how many positions ahead a row reaches, if scores are given; else -1
        self._later: list[tuple[Later | AttentionScores, Float[torch.Tensor, "text query key"] | None]] = []
        self._held = self._stack(np.arange(len(texts))) if self._bytes(len(texts)) <= MOST.get(self.device.type, MOST["cpu"]) else None

    @property
    def complete(self) -> bool:
        """Whether all sites have been seen."""
        return self._seen == len(self._sites)

    def add(self, batch: MapBatch) -> None:
        """Add the rows of the next site or, if all rows together are too large, store only how to
        compute them again.
        """
        if batch.index != self._sites[self._seen]:
            raise ValueError(f"site {batch.index} of a batch was added in place of site {self._sites[self._seen]}")
        even = batch.even().weights[:, 0] if self._smoothing else None
        if batch.scores is not None:
            self._ahead = max(self._ahead, self._keys if batch.scores.reach.after is None else batch.scores.reach.after)
        if self._held is None:
            self._later.append((batch.later() if batch.scores is None else batch.scores, even))
        elif batch.scores is not None:
            self._held.put_scores(self._seen, batch.scores)
        else:
            self._put(self._held, self._seen, batch.weights, even)
        self._seen += 1

    def blocks(self) -> Iterator[RowBlock]:
        """All rows: in one block if they are in memory, else in as many as memory requires, each with a range of
        positions of every text.
        """
        if self._held is not None:
            yield self._block(np.arange(len(self.texts)), self._held)
            return
        width = int(self.places.max(initial=-1)) + 1
        step = max(1, MOST.get(self.device.type, MOST["cpu"]) // self._bytes(len(self._lengths)))
        for start in range(0, width, step):
            rows = np.flatnonzero((self.places >= start) & (self.places < start + step))
            if len(rows):
                stop = min(start + step, width)
                stack = self._stack(rows)
                for site, (later, even) in enumerate(self._later):
                    if isinstance(later, AttentionScores):
                        stack.put_scores(site, later)
                    else:
                        self._put(stack, site, later(start, stop), even[:, start:stop] if even is not None else None, start)
                yield self._block(rows, stack)

    def _bytes(self, rows: int) -> int:
        return rows * sum(self._heads) * self._keys * 4

    def _stack(self, rows: Int64[np.ndarray, "n"]) -> RowStack:
        """An empty stack for some rows."""
        return RowStack(self.texts[rows], self.places[rows], self._heads, self._keys, self.device)

    def _put(
        self,
        stack: RowStack,
        site: int,
        maps: Float[torch.Tensor, "text head query key"],
        even: Float[torch.Tensor, "text query key"] | None,
        start: int = 0,
    ) -> None:
        stack.put(site, maps, None if even is None else (self._smoothing, even), start)

    def _block(self, rows: Int64[np.ndarray, "n"], stack: RowStack) -> RowBlock:
        """A block of rows with their ends. If there are scores, these say how far rows reach. Early rows of a decoder
        are mostly empty, so there it saves time to find their ends.
        """
        lengths = self._lengths[self.texts[rows]]
        if self._ahead >= 0:
            return RowBlock(rows, np.minimum(lengths, self.places[rows] + self._ahead + 1), stack)
        return RowBlock(rows, stack.ends() if self.kind == "decoder" else lengths, stack)
