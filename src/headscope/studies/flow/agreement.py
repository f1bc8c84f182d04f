"""Whether measures of flow agree: correlation over all entries of all matrices, including special tokens and the
diagonal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from itertools import combinations

import numpy as np

from headscope.encoding.texts import Encoded
from headscope.errors import MeasureError
from headscope.results.columns import StateColumns
from headscope.results.table import Table
from headscope.stats.bootstrap import poisson_weights
from headscope.stats.correlation import Moments, pooled
from headscope.stats.inference import Support, interval
from headscope.stats.resampled import mean
from headscope.studies.flow.grouping import Matrices, checked

_MOMENTS, _SEPARATOR = "moments/", " and "
_FIELDS = tuple(field.name for field in fields(Moments))
COLUMNS = ("first", "second", "over", "layer", "value", "low", "high", "n", "documents")


class Agreement:
    """Pearson's r of two measures, by layer and over all layers, over all pooled entries and as the mean over texts.

    Only sums are kept, one set per text and layer, so that matrices need not be kept. Pooled entries give long texts
    the weight of their squared length and are not independent: they have an interval over documents, but no p.
    """

    def __init__(self, replicates: int = 1000, seed: int = 0, kept: StateColumns | None = None) -> None:
        self.replicates, self.seed = replicates, seed
        self.kept = kept or StateColumns()

    def observe(self, text: Encoded, matrices: Matrices) -> None:
        """Add a text with its matrices between tokens: at least two, and the same measures for every text."""
        checked(matrices, len(text))
        pairs = [_SEPARATOR.join(pair) for pair in combinations(sorted(matrices), 2)]
        if not pairs or ((seen := self.kept.under(_MOMENTS)) and seen != pairs):
            problem = f"agreement cannot be computed from the measures {', '.join(matrices)}"
            raise MeasureError(problem, "Give two or more, the same ones for every text")
        self.kept.add_words("document", [text.document])
        for pair in pairs:
            first, other = (
                np.asarray(matrices[name], dtype=np.float64).reshape(len(matrices[name]), -1) for name in pair.split(_SEPARATOR)
            )
            layers, whole = Moments.of(first, other), Moments.of(first.reshape(1, -1), other.reshape(1, -1))
            both = np.stack([np.concatenate([getattr(part, name) for part in (layers, whole)]) for name in _FIELDS])
            self.kept.add(_MOMENTS + pair, both[None])

    def tables(self) -> dict[str, Table]:
        """`agreement`: r of two measures with its interval and n, over `entries` or `texts`; no layer means all."""
        rows = []
        documents = self.kept.words("document")
        for label in self.kept.under(_MOMENTS):
            pair = label.split(_SEPARATOR)
            texts = Moments(*self.kept.numbers(_MOMENTS + label).transpose(1, 0, 2))
            names, parts = _by_document(texts, documents)
            replicates = pooled(parts, poisson_weights(names, self.replicates, self.seed))
            low, high = interval(replicates[0], replicates[1:], Support.of(parts.n), (-1, 1))
            rows += _rows(pair, "entries", replicates[0], low, high, parts.n.sum(0), (parts.n > 0).sum(0))
            each = mean(texts.r, documents, self.replicates, self.seed, (-1, 1))
            rows += _rows(pair, "texts", each.value, each.low, each.high, each.n, each.documents)
        return {"agreement": Table.from_rows(rows, COLUMNS)}


def _by_document(texts: Moments, documents: Sequence[str]) -> tuple[list[str], Moments]:
    """The moments of each document's texts together, on the first axis."""
    sums: dict[str, Moments] = {}
    for number, name in enumerate(documents):
        moments = Moments(*(getattr(texts, field)[number] for field in _FIELDS))
        sums[name] = sums[name] + moments if name in sums else moments
    return list(sums), Moments(*(np.stack([getattr(part, field) for part in sums.values()]) for field in _FIELDS))


def _rows(
    pair: Sequence[str], over: str, value: np.ndarray, low: np.ndarray, high: np.ndarray, n: np.ndarray, documents: np.ndarray
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
