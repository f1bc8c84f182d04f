"""How close the heads of a model are to each other on a run's texts, and the picture of it (Clark et al. §6, Figure
6).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.heads import HeadLayout, Kind
from headscope.encoding.texts import Encoded
from headscope.results.gallery import Points, neighbours
from headscope.stats.divergence import jensen_shannon
from headscope.stats.embedding import metric

if TYPE_CHECKING:
    import torch
    from jaxtyping import Float, Float32

ROWS = 2000  # of attention
PAIRS = 160_000_000  # of heads and rows: with many heads fewer rows are looked at
HEADS = 2048  # with more, none are compared


class GalleryDistances:
    """Sums of divergences between the heads of one kind, the one with the most heads: those of different kinds see
    different texts.
    """

    def __init__(self, layout: HeadLayout, texts: Sequence[Encoded]) -> None:
        kinds = layout.by_kind()
        self._size = layout.size
        self._kind: Kind = max(kinds, key=lambda kind: len(kinds[kind]))
        self._heads = kinds[self._kind]
        most = min(ROWS, PAIRS // len(self._heads) ** 2) if 1 < len(self._heads) <= HEADS else 0
        before = accumulate((text.cost for text in texts), initial=0)
        self._wanted = {text.id for text, rows in zip(texts, before, strict=False) if rows < most}
        self._sum = np.zeros((len(self._heads),) * 2)
        self._rows = 0

    def add(self, text: Encoded, maps: Mapping[Kind, Float[torch.Tensor, "head query key"]]) -> None:
        """Add all rows of a text, if it is one of the first that give rows enough."""
        if text.id in self._wanted:
            sums, rows = jensen_shannon(maps[self._kind])
            self._sum += sums.cpu().numpy()
            self._rows += rows

    def finish(self, behaviour: Sequence[str]) -> tuple[Float32[np.ndarray, "head head"] | None, Points | None]:
        """The mean distances and the points that picture them; None for models whose heads are not compared."""
        if not self._rows:
            return None, None
        mean = self._sum / self._rows
        embedding = metric(mean)
        distances = np.full((self._size, self._size), np.nan, dtype=np.float32)
        distances[np.ix_(self._heads, self._heads)] = mean
        x, y = np.full((2, self._size), np.nan)
        x[self._heads], y[self._heads] = embedding.points.T
        return distances, Points(x, y, embedding.stress, tuple(behaviour), self._rows, neighbours(distances))
