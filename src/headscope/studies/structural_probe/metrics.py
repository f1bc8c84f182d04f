"""UUAS, DSpr, Root % and NSpr of many probes with intervals, from the numbers of every sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from headscope.stats.bootstrap import document_weights
from headscope.stats.inference import Support, interval

if TYPE_CHECKING:
    from jaxtyping import Float64

    Replicates = Float64[np.ndarray, "replicate probe"]

METRICS = ("UUAS", "DSpr", "Root%", "NSpr")
# Per sentence: edges found and all edges; the sum of the correlations of words' distances, and their number; whether
# the root was found and whether it counts; the correlation of depths, and whether it is defined; words.
COLUMNS = ("found", "edges", "distances", "rows", "right", "asked", "depths", "defined", "words")
LENGTHS = range(5, 51)  # words of the sentences whose correlations count
_PLACE = {name: place for place, name in enumerate(COLUMNS)}


@dataclass(frozen=True)
class Scored:
    """The numbers of every sentence under every probe, and the unit that is resampled for each sentence."""

    numbers: Float64[np.ndarray, "sentence probe 9"]
    units: Sequence[str]
    replicates: int = 1000
    seed: int = 0

    def of(self, metric: str) -> Replicates:
        """A metric of each probe, on all documents and in each replicate; UUAS and Root% are shares, not percent."""
        if metric == "UUAS":
            return _ratio(*(self._summed(name) for name in ("found", "edges")))
        if metric == "Root%":
            return _ratio(*(self._summed(name) for name in ("right", "asked")))
        names = ("distances", "rows") if metric == "DSpr" else ("depths", "defined")
        # The mean of the means of sentences of equal length, so that all lengths have the same weight.
        every = [_ratio(*(self._summed(name, length) for name in names)) for length in LENGTHS]
        means = np.stack(every)
        defined = np.isfinite(means)
        return _ratio(np.where(defined, means, 0).sum(0), defined.sum(0))

    def interval(self, values: Replicates) -> tuple[Float64[np.ndarray, "probe"], Float64[np.ndarray, "probe"]]:
        """The bounds of a metric, or of a difference of two metrics."""
        return interval(values[0], values[1:], Support.of(np.array(list(Counter(self.units).values()))))

    def count(self, metric: str) -> Float64[np.ndarray, "probe"]:
        """The n of a metric: edges (UUAS), words (DSpr), sentences (Root% and NSpr)."""
        column = {"UUAS": "edges", "DSpr": "rows", "Root%": "asked", "NSpr": "defined"}[metric]
        counts: Float64[np.ndarray, "probe"] = self.numbers[:, :, _PLACE[column]].sum(0)
        return counts

    def _summed(self, column: str, length: int | None = None) -> Replicates:
        some = slice(None) if length is None else self._lengths == length
        sums: Replicates = self._weights[some].T @ self.numbers[some][:, :, _PLACE[column]]
        return sums

    @cached_property
    def _lengths(self) -> Float64[np.ndarray, "sentence"]:
        return self.numbers[:, 0, _PLACE["words"]]

    @cached_property
    def _weights(self) -> Float64[np.ndarray, "sentence replicate"]:
        units, weights = document_weights(self.units, self.replicates, self.seed)
        each: Float64[np.ndarray, "sentence replicate"] = weights[units]
        return each


def _ratio(above: Float64[np.ndarray, "*shape"], below: Float64[np.ndarray, "*shape"]) -> Float64[np.ndarray, "*shape"]:
    with np.errstate(invalid="ignore", divide="ignore"):
        ratio: Float64[np.ndarray, "*shape"] = above / below
    return ratio
