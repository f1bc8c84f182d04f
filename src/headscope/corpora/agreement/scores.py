"""Scores of agreement from counts that add up over documents, with intervals from a bootstrap over documents."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from headscope.corpora.agreement.counts import Counts, Key
from headscope.stats.bootstrap import poisson_weights
from headscope.stats.inference import Support, interval

if TYPE_CHECKING:
    from jaxtyping import Float64

    Sums = Float64[np.ndarray, "replicate+1"]


@dataclass(frozen=True)
class AgreementScore:
    """A score from 0 (kappa: -1) to 1 with its 95% interval, NaN if there is nothing to compute it from.

    `first` and `second` are the units it is about in each annotation. With `precision` and `recall`, the value is
    their F1.
    """

    name: str
    value: float
    low: float
    high: float
    first: int | None = None
    second: int | None = None
    precision: float | None = None
    recall: float | None = None
    documents: int = 0


class Totals:
    """Counts summed over documents: column 0 has the plain sums, the others are weighted by the bootstrap
    replicates.
    """

    def __init__(self, replicates: int, seed: int) -> None:
        self._replicates = replicates
        self._seed = seed
        self._sums: dict[Key, Sums] = {}
        self._weights: defaultdict[Key, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))

    def add(self, document: str, counts: Counts) -> None:
        """Add the counts of a document."""
        weights = poisson_weights([document], self._replicates, self._seed)[0]
        for key, value in counts.items():
            if value:
                self._sums[key] = self._sums.get(key, 0.0) + value * weights
                self._weights[key][document] += value

    def names(self) -> list[str]:
        """The names that have counts."""
        return list(dict.fromkeys(key[0] for key in self._sums))

    def count(self, name: str, part: str) -> int:
        """A plain count."""
        return round(float(self[name, part][0]))

    def share(self, name: str) -> AgreementScore:
        """The share of units on which both agree."""
        return self._score(name, _ratio(self[name, "agree"], self[name, "n"]), [(name, "n")], self.count(name, "n"))

    def kappa(self, name: str) -> AgreementScore:
        """Cohen's kappa (1960) of the labels under a name: the agreement beyond that expected from their
        frequencies.
        """
        n = self[name, "n"]
        labels = {key[2] for key in self._sums if key[0] == name and len(key) == 3}
        chance = _ratio(sum((self[name, "first", label] * self[name, "second", label] for label in labels), 0 * n), n * n)
        value = _ratio(_ratio(self[name, "agree"], n) - chance, 1 - chance)
        return self._score(f"{name}_kappa", value, [(name, "n")], self.count(name, "n"))

    def f1(self, name: str) -> AgreementScore:
        """F1 of the parts under a name."""
        recall = _ratio(self[name, "recalled"], self[name, "first"])
        precision = _ratio(self[name, "precise"], self[name, "second"])
        score = self._score(name, self._f1(name), _units(name), self.count(name, "first"))
        return replace(score, second=self.count(name, "second"), precision=float(precision[0]), recall=float(recall[0]))

    def mean_f1(self, name: str, names: Sequence[str]) -> AgreementScore:
        """The mean of several F1."""
        units = [key for each in names for key in _units(each)]
        return self._score(name, np.mean([self._f1(each) for each in names], axis=0), units, None)

    def _f1(self, name: str) -> Sums:
        """2PR / (P + R), 0 if nothing is shared, NaN if neither side has anything."""
        recalled, precise = self[name, "recalled"], self[name, "precise"]
        first, second = self[name, "first"], self[name, "second"]
        none = (recalled == 0) | (precise == 0)
        f1 = _ratio(2 * recalled * precise, recalled * second + precise * first)
        return np.where(first + second == 0, math.nan, np.where(none, 0.0, f1))

    def _score(self, name: str, value: Sums, units: Sequence[Key], n: int | None) -> AgreementScore:
        documents = sorted({document for key in units for document in self._weights[key]})
        support = Support.of(np.array([sum(self._weights[key].get(name, 0.0) for key in units) for name in documents]))
        low, high = interval(value[0], value[1:], support, (-1, 1))
        return AgreementScore(name, float(value[0]), float(low), float(high), n, n, documents=int(support.documents))

    def __getitem__(self, key: Key) -> Sums:
        return self._sums.get(key, np.zeros(self._replicates + 1))


def _units(name: str) -> list[Key]:
    """The numbers of units of both annotations that an F1 compares."""
    return [(name, "first"), (name, "second")]


def _ratio(part: Sums, whole: Sums) -> Sums:
    ratio: Sums = np.divide(part, whole, out=np.full(part.shape, math.nan), where=whole != 0)
    return ratio
