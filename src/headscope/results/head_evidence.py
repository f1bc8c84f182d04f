"""The evidence of a run for the types of its heads: values, baselines and replicates of each quantity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from headscope.measures import Measure
from headscope.measures.relations import Relations
from headscope.measures.resolver import Resolver
from headscope.results.cross_fitting import candidates, cross_fitted
from headscope.results.head_types import HeadType
from headscope.results.results import Results
from headscope.results.skills import opening_kinds
from headscope.stats.inference import p_value
from headscope.stats.resampled import Resampled

if TYPE_CHECKING:
    from jaxtyping import Bool, Float64, Int64


@dataclass(frozen=True)
class Evidence:
    """The values of some heads in one quantity of a type, on the data and in every replicate."""

    type: HeadType
    word: str  # the label of such a head in pictures
    what: str  # a relation or a token that the quantity is about; "" if the type says it
    heads: Int64[np.ndarray, "item"]  # on the head axis
    scores: Resampled
    baseline: Float64[np.ndarray, "replicate+1 item"]

    @cached_property
    def excess(self) -> Float64[np.ndarray, "replicate+1 item"]:
        """The differences between the values and the thresholds that their intervals must exceed."""
        excess: Float64[np.ndarray, "replicate+1 item"] = self.scores.values - self.type.bar(self.baseline)
        return excess

    @property
    def above(self) -> Bool[np.ndarray, "item"]:
        """Whether the value itself, without its interval, is far enough above the threshold."""
        above: Bool[np.ndarray, "item"] = self.excess[0] > self.type.margin
        return above

    @cached_property
    def p(self) -> Float64[np.ndarray, "item"]:
        """The two-sided p of the excess: below .05 if the 95 % interval is above 0; 1 if the excess is too small."""
        p = p_value(self.excess[0], self.excess[1:], self.scores.support)
        return np.where(np.isfinite(p) & ~self.above, 1.0, p)

    @property
    def survives(self) -> Float64[np.ndarray, "item"]:
        """The share of the replicates in which the value is far enough above the threshold."""
        drawn = np.isfinite(self.excess[1:])
        with np.errstate(invalid="ignore", divide="ignore"):
            share: Float64[np.ndarray, "item"] = (drawn & (self.excess[1:] > self.type.margin)).sum(0) / drawn.sum(0)
        return share


def untested(results: Results, measure: Measure, found: Sequence[Evidence]) -> int:
    """The number of heads and labels of a measure with labels that were not chosen, and so are not in `found`."""
    if not isinstance(measure, Relations | Resolver):
        return 0
    tested = sum(len(one.heads) for one in found if one.type.measure == measure.name)
    return candidates(measure.contests, results.state(measure.name), results.layout) - tested


def evidence(results: Results, measure: Measure, types: Sequence[HeadType]) -> Iterator[Evidence]:
    """The evidence of one measure of a run for the types that read it. Heads without a case are omitted."""
    state, layout, ids = results.state(measure.name), results.layout, results.layout.ids()
    for type in (type for type in types if type.measure == measure.name):
        if not type.words and isinstance(measure, Relations | Resolver):
            for one in cross_fitted(measure.contests, state, layout, type.margin):
                yield Evidence(type, one.label if type.name == "syntactic" else type.measure, one.label, one.heads, one.scores, one.rule)
            continue
        known = {scores.quantity: scores for scores in measure.resampled(state, layout)}
        for quantity, word in type.words.items():
            if quantity not in known:
                continue
            scores, opening = known[quantity], opening_kinds(results[measure.name], quantity)
            kinds = {kind for kind in type.kinds if kind not in opening}
            heads = np.array([at for at, head in enumerate(ids) if head.kind in kinds and scores.n[at] > 0], dtype=np.int64)
            baseline = np.zeros_like(scores.values) if scores.baseline is None else scores.baseline
            if type.control and (control := known.get(f"{quantity}{type.control}")) is not None:
                baseline = np.fmax(baseline, control.values)
            of_heads = Resampled(quantity, scores.values[:, heads], scores.support[heads], scores.n[heads], scores.make_interval)
            yield Evidence(type, word, "" if word == type.name else word, heads, of_heads, baseline[:, heads])
