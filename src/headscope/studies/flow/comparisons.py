"""Rows of tables that compare two samples of flow, layer by layer and over all layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from headscope.stats.resampled import difference
from headscope.stats.significance import TwoSampleTest, benjamini_hochberg, holm, paired, welch

if TYPE_CHECKING:
    from jaxtyping import Float

Row = dict[str, Any]
Preset = Literal["recommended", "reference"]


@dataclass(frozen=True)
class LayerSample:
    """Flow of some items or sentences in every layer, NaN if there is none, and the documents they come from."""

    values: Float[np.ndarray, "item layer"]
    documents: Sequence[str]

    def averaged(self) -> LayerSample:
        """One value per item: the mean over layers, NaN if one is missing."""
        return LayerSample(self.values.mean(1, keepdims=True), self.documents)

    def pooled(self) -> LayerSample:
        """One value per item and layer, as if layers were separate items."""
        layers = self.values.shape[1]
        return LayerSample(self.values.reshape(-1, 1), [name for name in self.documents for _ in range(layers)])

    def take(self, places: Sequence[int]) -> LayerSample:
        """Some of the items."""
        return LayerSample(self.values[list(places)], [self.documents[place] for place in places])


def by_layer(x: LayerSample, y: LayerSample, test: str, replicates: int, seed: int) -> list[Row]:
    """One row per layer, counted from 1: the test, which treats items as independent, an interval and p of the
    difference over documents, and the test's p adjusted over the layers.
    """
    rows = _rows(x, y, test, replicates, seed)
    p = np.array([row["p"] for row in rows], dtype=np.float64)
    for layer, (row, strict, lenient) in enumerate(zip(rows, holm(p).tolist(), benjamini_hochberg(p).tolist(), strict=True), 1):
        row.update(layer=layer, p_holm=strict, p_bh=lenient)
    return rows


def headline(x: LayerSample, y: LayerSample, test: str, replicates: int, seed: int) -> Iterator[tuple[Preset, Row]]:
    """The test over all layers: of each item's mean over layers (`recommended`), and of all layers of all items as if
    they were independent (`reference`), which with 12 layers makes n twelve times too large.
    """
    presets: Mapping[Preset, tuple[LayerSample, LayerSample]] = {
        "recommended": (x.averaged(), y.averaged()),
        "reference": (x.pooled(), y.pooled()),
    }
    for preset, (first, other) in presets.items():
        yield preset, _rows(first, other, test, replicates, seed)[0]


def _rows(x: LayerSample, y: LayerSample, test: str, replicates: int, seed: int) -> list[Row]:
    tested: TwoSampleTest = paired(x.values, y.values) if test == "paired" else welch(x.values, y.values)
    first, other = x.values, y.values
    if test == "paired":
        both = np.isfinite(first) & np.isfinite(other)
        first, other = np.where(both, first, np.nan), np.where(both, other, np.nan)
    gap = difference(first, x.documents, other, y.documents, replicates, seed)
    numbers = zip(tested.columns(), gap.low.tolist(), gap.high.tolist(), gap.p.tolist(), gap.documents.tolist(), strict=True)
    return [
        {**column, "test": test, "low": low, "high": high, "p_documents": p, "documents": documents}
        for column, low, high, p, documents in numbers
    ]
