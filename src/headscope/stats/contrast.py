"""Many systems, such as a model without one head each, against one: differences and tests (METHODS §9.2)."""

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
    """The score of each system, minus that of the base, with an interval and a two-sided p.

    Interval and `p` are NaN where too few documents tell of a difference (`stats.inference`), and `p` where a t-test
    has no variance. `n` counts examples, `units` the documents that are resampled.
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
        """P-values corrected for testing all systems: the chance of even one false alarm."""
        return holm(self.p.ravel()).reshape(self.p.shape)

    @property
    def benjamini_hochberg(self) -> Float64[np.ndarray, "*system"]:
        """P-values corrected for testing all systems: the share of false alarms among alarms."""
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
    """Each system against the base, all by their statistics of the same examples.

    `documents` says which document each example is part of: they are what is resampled, examples if it is None. The
    test is by default the paired bootstrap over documents; for examples that are right or wrong, and each a separate
    document, the exact McNemar's test. McNemar's and the t-tests go by examples, as if those of one document were
    independent. Intervals are by the bootstrap whatever the test is.
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
    """How the differences come out where documents are drawn again, the same for the base and all systems."""
    units, weights = document_weights(documents, replicates, seed)
    start = score.resampled(base, units, weights[:, 1:])
    return _minus(score.resampled(systems, units, weights[:, 1:]), start.reshape(-1, *[1] * (systems.ndim - 2)))


def mcnemar(base: Bool[np.ndarray, "example"], systems: Bool[np.ndarray, "*system example"]) -> Float64[np.ndarray, "*system"]:
    """McNemar's exact test, two-sided, over the examples that only one of two systems has right."""
    from scipy.special import bdtr

    lost, won = (np.asarray((side & ~other).sum(-1)) for side, other in ((base, systems), (systems, base)))
    p: Float64[np.ndarray, "*system"] = np.minimum(1.0, 2 * bdtr(np.minimum(lost, won).astype(np.float64), lost + won, 0.5))
    return p


def _minus(x: Float64[np.ndarray, "*shape"], y: Float64[np.ndarray, "*#shape"]) -> Float64[np.ndarray, "*shape"]:
    """The difference; 0 where it is no more than the rounding of sums that were taken in another order."""
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
            raise MeasureError(f"examples are not simply right or wrong by {score.name}, as McNemar's test wants it", "Use the bootstrap")
    return mcnemar(reference == 1, others == 1)
