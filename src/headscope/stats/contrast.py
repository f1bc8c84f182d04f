"""Differences and tests of many systems, such as a model without one head each, against one base (docs/ablation.md)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.suggest import choose_from
from headscope.errors import MeasureError
from headscope.stats.bootstrap import document_weights, numbered
from headscope.stats.choices import TESTS, Test
from headscope.stats.inference import Support, interval, p_value
from headscope.stats.scores import Score
from headscope.stats.significance import benjamini_hochberg, holm, paired, welch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Float64


@dataclass(frozen=True)
class Contrast:
    """The score of each system minus that of the base, with an interval and a two-sided p.

    Interval and `p` are NaN if too few documents show a difference (`stats.inference`); `p` is also NaN if a t-test has
    no variance. `n` is the number of examples, `units` the number of documents, which are resampled.
    """

    base: float
    score: Float64[np.ndarray, "*system"]
    difference: Float64[np.ndarray, "*system"]
    low: Float64[np.ndarray, "*system"]
    high: Float64[np.ndarray, "*system"]
    p: Float64[np.ndarray, "*system"]
    test: Test
    n: int
    units: int

    @property
    def holm(self) -> Float64[np.ndarray, "*system"]:
        """P-values corrected for testing all systems: the chance of at least one false positive."""
        return holm(self.p.ravel()).reshape(self.p.shape)

    @property
    def benjamini_hochberg(self) -> Float64[np.ndarray, "*system"]:
        """P-values corrected for testing all systems: the expected share of false positives among positives."""
        return benjamini_hochberg(self.p.ravel()).reshape(self.p.shape)


def contrast(
    score: Score,
    base: Float[np.ndarray, "example k"],
    systems: Float[np.ndarray, "*system example k"],
    documents: Sequence[str] | None = None,
    test: Test | None = None,
    replicates: int = 1000,
    seed: int = 0,
    confidence: float = 0.95,
) -> Contrast:
    """Each system compared with the base, from their statistics of the same examples.

    `documents` names the document of each example. Documents are resampled; if None, examples are. The default test is
    the paired bootstrap over documents or, if examples are right or wrong and each is a separate document, McNemar's
    exact test. McNemar's test and the t-tests treat the examples of one document as independent. Intervals always come
    from the bootstrap.
    """
    if test is not None and test not in TESTS:
        raise MeasureError(f"there is no test {test!r}", choose_from(test, TESTS, "Use one of"))
    reference, others = np.asarray(base, dtype=np.float64), np.asarray(systems, dtype=np.float64)
    if others.shape[-2:] != reference.shape:
        raise MeasureError(
            f"statistics are of shape {reference.shape} for the base and {others.shape[-2:]} for a system", "Give all examples of both"
        )
    names = [str(number) for number in range(len(reference))] if documents is None else documents
    if len(names) != len(reference):
        raise MeasureError(f"documents are named for {len(names)} examples of {len(reference)}", "Name one for each example")
    start, scores = score.of(reference), score.of(others)
    gap = _minus(scores, start)
    drawn = replicated_differences(score, reference, others, names, replicates, seed)
    units, unique = numbered(names)
    chosen = test if test is not None else "mcnemar" if score.one_each and len(unique) == len(reference) else "bootstrap"
    support = Support.of(np.bincount(units, score.sizes(reference), len(unique)))
    low, high = interval(gap, drawn, support, confidence=confidence)
    by_documents = chosen == "bootstrap"
    p = p_value(gap, drawn, support) if by_documents else np.where(support.usable, _tested(score, reference, others, chosen), np.nan)
    return Contrast(float(start), np.asarray(scores), gap, low, high, np.asarray(p), chosen, len(reference), len(unique))


def replicated_differences(
    score: Score,
    base: Float64[np.ndarray, "example k"],
    systems: Float64[np.ndarray, "*system example k"],
    documents: Sequence[str],
    replicates: int,
    seed: int,
) -> Float64[np.ndarray, "replicate *system"]:
    """The differences in every replicate of the documents, which is the same for the base and all systems."""
    units, weights = document_weights(documents, replicates, seed)
    start = score.resampled(base, units, weights[:, 1:])
    return _minus(score.resampled(systems, units, weights[:, 1:]), start.reshape(-1, *[1] * (systems.ndim - 2)))


def mcnemar(base: Bool[np.ndarray, "example"], systems: Bool[np.ndarray, "*system example"]) -> Float64[np.ndarray, "*system"]:
    """The two-sided p of McNemar's exact test, over the examples that only one of two systems gets right."""
    from scipy.special import bdtr

    lost, won = (np.asarray((side & ~other).sum(-1)) for side, other in ((base, systems), (systems, base)))
    p: Float64[np.ndarray, "*system"] = np.minimum(1.0, 2 * bdtr(np.minimum(lost, won).astype(np.float64), lost + won, 0.5))
    return p


def _minus(x: Float64[np.ndarray, "*shape"], y: Float64[np.ndarray, "*#shape"]) -> Float64[np.ndarray, "*shape"]:
    """The difference; 0 if it is no larger than the rounding error of sums in another order."""
    gap = np.asarray(x - y)
    return np.where(np.abs(gap) <= 1e-12 * np.maximum(np.abs(x), np.abs(y)), 0.0, gap)


def _tested(score: Score, base: np.ndarray, systems: np.ndarray, test: Test) -> np.ndarray:
    reference, others = score.each(base), score.each(systems)
    if test != "mcnemar":
        x, y = np.moveaxis(others, -1, 0), reference.reshape(-1, *[1] * (others.ndim - 1))
        y = np.broadcast_to(y, x.shape)
        return (paired if test == "paired_t" else welch)(x, y).p
    for side in (reference, others):
        if not np.isin(side, (0.0, 1.0)).all():
            raise MeasureError(f"examples are not simply right or wrong by {score.name}, as McNemar's test requires", "Use the bootstrap")
    return mcnemar(reference == 1, others == 1)
