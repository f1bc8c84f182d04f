"""UUAS, DSpr, Root % and NSpr of many probes with intervals, from the numbers of every sentence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from headscope.stats.bootstrap import poisson_weights
from headscope.stats.inference import Support, interval
from headscope.studies.structural_probe.scoring import COLUMNS, LENGTHS

if TYPE_CHECKING:
    from jaxtyping import Float64

    Replicates = Float64[np.ndarray, "replicate probe"]

METRICS = ("UUAS", "DSpr", "Root%", "NSpr")
_PLACE = {name: place for place, name in enumerate(COLUMNS)}


@dataclass(frozen=True)
class Scored:
    """The numbers of every sentence under every probe, and the unit that is resampled which each sentence belongs to."""

    numbers: Float64[np.ndarray, "sentence probe 9"]
    units: Sequence[str]
    replicates: int = 1000
    seed: int = 0

    def of(self, metric: str) -> Replicates:
        """A metric of each probe: first as it is, then in each replicate. UUAS and Root% are shares, not percentages."""
        if metric == "UUAS":
            return _ratio(*(self._summed(name) for name in ("found", "edges")))
        if metric == "Root%":
            return _ratio(*(self._summed(name) for name in ("right", "asked")))
        names = ("distances", "rows") if metric == "DSpr" else ("depths", "defined")
        # The mean of the means of sentences that are equally long: no length has more say than another.
        every = [_ratio(*(self._summed(name, length) for name in names)) for length in LENGTHS]
        found = np.stack(every)
        given = np.isfinite(found)
        return _ratio(np.where(given, found, 0).sum(0), given.sum(0))

    def interval(self, values: Replicates) -> tuple[Float64[np.ndarray, "probe"], Float64[np.ndarray, "probe"]]:
        """Bounds of a metric or of a difference of two."""
        return interval(values[0], values[1:], Support.of(np.array(list(Counter(self.units).values()))))

    def count(self, metric: str) -> Float64[np.ndarray, "probe"]:
        """What a metric is taken of: edges, words, sentences, sentences."""
        column = {"UUAS": "edges", "DSpr": "rows", "Root%": "asked", "NSpr": "defined"}[metric]
        found: Float64[np.ndarray, "probe"] = self.numbers[:, :, _PLACE[column]].sum(0)
        return found

    def _summed(self, column: str, length: int | None = None) -> Replicates:
        some = slice(None) if length is None else self._lengths == length
        found: Replicates = self._weights[some].T @ self.numbers[some][:, :, _PLACE[column]]
        return found

    @cached_property
    def _lengths(self) -> Float64[np.ndarray, "sentence"]:
        return self.numbers[:, 0, _PLACE["words"]]

    @cached_property
    def _weights(self) -> Float64[np.ndarray, "sentence replicate"]:
        names = list(dict.fromkeys(self.units))
        place = {name: number for number, name in enumerate(names)}
        return poisson_weights(names, self.replicates, self.seed)[[place[unit] for unit in self.units]]


def _ratio(above: Float64[np.ndarray, "*shape"], below: Float64[np.ndarray, "*shape"]) -> Float64[np.ndarray, "*shape"]:
    with np.errstate(invalid="ignore", divide="ignore"):
        found: Float64[np.ndarray, "*shape"] = above / below
    return found
