"""Means and differences of means with intervals, by the Poisson bootstrap over documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headscope.stats.bootstrap import numbered, poisson_weights
from headscope.stats.inference import Bounds, Support, interval, p_value

if TYPE_CHECKING:
    from jaxtyping import Float, Float64, Int64


@dataclass(frozen=True)
class Resampled:
    """One quantity on the data (the first row) and in every replicate, with the documents behind it."""

    quantity: str  # its name in the table of heads
    values: Float64[np.ndarray, "replicate+1 item"]
    support: Support
    n: Float64[np.ndarray, "item"]
    make_interval: Callable[..., Any] = interval  # the function of the measure's table
    baseline: Float64[np.ndarray, "replicate+1 item"] | None = None  # what the values are compared with, if the measure has one

    def bounds(self) -> Bounds:
        """The 95 % intervals of all items."""
        bounds: Bounds = self.make_interval(self.values[0], self.values[1:], self.support)
        return bounds


class Interval(NamedTuple):
    """One value per column with its 95 % interval, its p against 0, and its numbers of observations and documents.

    Bounds and p are NaN if there are too few documents (`stats.inference`).
    """

    value: Float64[np.ndarray, "*shape"]
    low: Float64[np.ndarray, "*shape"]
    high: Float64[np.ndarray, "*shape"]
    p: Float64[np.ndarray, "*shape"]
    n: Int64[np.ndarray, "*shape"]
    documents: Int64[np.ndarray, "*shape"]


def mean(
    values: Float[np.ndarray, "n *shape"],
    documents: Sequence[str],
    replicates: int = 1000,
    seed: int = 0,
    within: tuple[float, float] = (-np.inf, np.inf),
) -> Interval:
    """The mean over observations for each column, ignoring NaN. `within` are the limits of the mean."""
    sums, counts, names = _by_document(values, documents)
    means = _means(sums, counts, poisson_weights(names, replicates, seed))
    support = Support.of(counts)
    return _interval(means, support, counts.sum(0), support.documents, within)


def difference(
    x: Float[np.ndarray, "n *shape"],
    x_documents: Sequence[str],
    y: Float[np.ndarray, "m *shape"],
    y_documents: Sequence[str],
    replicates: int = 1000,
    seed: int = 0,
) -> Interval:
    """The mean of x minus that of y. A document drawn twice counts twice on both sides. `n` counts both."""
    everything = [*x_documents, *y_documents]
    gap = np.full((len(y_documents), *np.shape(x)[1:]), np.nan), np.full((len(x_documents), *np.shape(x)[1:]), np.nan)
    x_sums, x_counts, names = _by_document(np.concatenate([x, gap[0]]), everything)
    y_sums, y_counts, _ = _by_document(np.concatenate([gap[1], y]), everything)
    weights = poisson_weights(names, replicates, seed)
    differences = _means(x_sums, x_counts, weights) - _means(y_sums, y_counts, weights)
    used = ((x_counts > 0) | (y_counts > 0)).sum(0)
    return _interval(differences, Support.of(x_counts).both(Support.of(y_counts)), (x_counts + y_counts).sum(0), used)


def _interval(
    replicates: Float64[np.ndarray, "replicate+1 *shape"],
    support: Support,
    n: Float64[np.ndarray, "*shape"],
    documents: Int64[np.ndarray, "*shape"],
    within: tuple[float, float] = (-np.inf, np.inf),
) -> Interval:
    value, drawn = replicates[0], replicates[1:]
    return Interval(value, *interval(value, drawn, support, within), p_value(value, drawn, support), n.astype(np.int64), documents)


def _by_document(
    values: Float[np.ndarray, "n *shape"], documents: Sequence[str]
) -> tuple[Float64[np.ndarray, "document *shape"], Float64[np.ndarray, "document *shape"], list[str]]:
    of, names = numbered(documents)
    valid = np.isfinite(values)
    sums, counts = np.zeros((2, len(names), *np.shape(values)[1:]))
    np.add.at(sums, of, np.where(valid, values, 0))
    np.add.at(counts, of, valid)
    return sums, counts, names


def _means(
    sums: Float64[np.ndarray, "document *shape"],
    counts: Float64[np.ndarray, "document *shape"],
    weights: Float64[np.ndarray, "document replicate"],
) -> Float64[np.ndarray, "replicate *shape"]:
    with np.errstate(invalid="ignore", divide="ignore"):
        means: Float64[np.ndarray, "replicate *shape"] = np.tensordot(weights, sums, (0, 0)) / np.tensordot(weights, counts, (0, 0))
    return means
