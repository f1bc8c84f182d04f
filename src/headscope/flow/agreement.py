"""Whether measures of flow agree: correlation over all entries of all matrices, special tokens and diagonal included (METHODS §7.5)."""

from __future__ import annotations

from dataclasses import fields
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from headscope.encoding.texts import Encoded
from headscope.errors import MeasureError
from headscope.flow.compared import table
from headscope.flow.grouping import Matrices, checked
from headscope.runs.table import Table
from headscope.stats.bootstrap import percentile_interval, poisson_weights
from headscope.stats.correlation import Moments, pooled
from headscope.stats.resampled import mean

if TYPE_CHECKING:
    from jaxtyping import Float

COLUMNS = ("first", "second", "over", "layer", "value", "low", "high", "n", "documents")


class Agreement:
    """Pearson's r of two measures, layer by layer and over all layers, of all entries `pooled` and as the mean over texts.

    Only sums are kept, one set a document and layer, and one r a text: matrices may be forgotten as soon as they were seen. Pooled, long
    texts count by the square of their length, and entries are by no means independent: hence an interval over documents, and no p.
    """

    def __init__(self, replicates: int = 1000, seed: int = 0) -> None:
        self.replicates, self.seed = replicates, seed
        self._pairs: tuple[tuple[str, str], ...] = ()
        self._moments: dict[str, dict[tuple[str, str], Moments]] = {}
        self._documents: list[str] = []
        self._texts: dict[tuple[str, str], list[Float[np.ndarray, "layer+1"]]] = {}

    def observe(self, text: Encoded, matrices: Matrices) -> None:
        """Take in a text with its matrices between tokens: at least two, and always the same."""
        checked(matrices, len(text))
        pairs = tuple(combinations(matrices, 2))
        if not pairs or (self._pairs and pairs != self._pairs):
            raise MeasureError(
                f"there are the measures {', '.join(matrices)}", "Give two or more, the same ones in the same order for every text"
            )
        self._pairs = pairs
        self._documents.append(text.document)
        kept = self._moments.setdefault(text.document, {})
        for pair in pairs:
            one, other = (np.asarray(matrices[name], dtype=np.float64).reshape(len(matrices[name]), -1) for name in pair)
            layers, whole = Moments.of(one, other), Moments.of(one.reshape(1, -1), other.reshape(1, -1))
            both = joined([layers, whole])
            kept[pair] = kept[pair] + both if pair in kept else both
            self._texts.setdefault(pair, []).append(both.r.astype(np.float32))

    def tables(self) -> dict[str, Table]:
        """`agreement`: two measures, over `entries` or `texts`, layer (missing: all layers), r with its interval, and n of which."""
        rows = []
        for pair in self._pairs:
            names = list(self._moments)
            parts = stacked([self._moments[name][pair] for name in names])
            replicates = pooled(parts, poisson_weights(names, self.replicates, self.seed))
            several = np.full(replicates.shape[1:], len(names) > 1)
            low, high = percentile_interval(replicates[1:], several)
            rows += _rows(pair, "entries", replicates[0], low, high, parts.n.sum(0), (parts.n > 0).sum(0))
            texts = mean(np.array(self._texts[pair], dtype=np.float64), self._documents, self.replicates, self.seed)
            rows += _rows(pair, "texts", texts.value, texts.low, texts.high, texts.n, texts.documents)
        return {"agreement": table(rows, COLUMNS)}


def joined(parts: list[Moments]) -> Moments:
    """Moments side by side on their one axis."""
    return Moments(*(np.concatenate([getattr(part, field.name) for part in parts]) for field in fields(Moments)))


def stacked(parts: list[Moments]) -> Moments:
    """Moments on a new first axis."""
    return Moments(*(np.stack([getattr(part, field.name) for part in parts]) for field in fields(Moments)))


def _rows(
    pair: tuple[str, str], over: str, value: np.ndarray, low: np.ndarray, high: np.ndarray, n: np.ndarray, documents: np.ndarray
) -> list[dict[str, object]]:
    layers = len(value) - 1
    return [
        {
            "first": pair[0],
            "second": pair[1],
            "over": over,
            "layer": place + 1 if place < layers else None,
            "value": float(value[place]),
            "low": float(low[place]),
            "high": float(high[place]),
            "n": int(n[place]),
            "documents": int(documents[place]),
        }
        for place in range(layers + 1)
    ]
