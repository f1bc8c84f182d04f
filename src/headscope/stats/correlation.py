"""Correlations of rows that ignore NaN, and correlations of streams that do not fit into memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Float64, Int64

    Row = Float[np.ndarray, "*shape n"]
    Found = tuple[Float64[np.ndarray, "*shape"], Int64[np.ndarray, "*shape"]]


def pearson(x: Row, y: Row) -> Found:
    """Pearson's r along the last axis, and the number of pairs without NaN. r is NaN if one side is constant."""
    left, right, valid = _aligned(x, y)
    return _pearson(left, right, valid)


def spearman(x: Row, y: Row) -> Found:
    """Spearman's rho, Pearson's r of ranks, among the pairs without NaN. Equal values get the mean of their ranks."""
    left, right, valid = _aligned(x, y)
    return _pearson(ranks(left, valid), ranks(right, valid), valid)


def ranks(values: Float64[np.ndarray, "*shape n"], valid: Bool[np.ndarray, "*shape n"]) -> Float64[np.ndarray, "*shape n"]:
    """Ranks from 1 along the last axis among the `valid` values; equal values get their mean rank. Invalid values rank
    last.
    """
    order = np.argsort(np.where(valid, values, np.inf), axis=-1, kind="stable")
    ordered = np.take_along_axis(np.where(valid, values, np.inf), order, -1)
    places = np.broadcast_to(np.arange(values.shape[-1]), values.shape)
    new = np.ones(values.shape, dtype=bool)
    new[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    first = np.maximum.accumulate(np.where(new, places, 0), axis=-1)
    ends = np.ones(values.shape, dtype=bool)
    ends[..., :-1] = new[..., 1:]
    last = np.minimum.accumulate(np.where(ends, places, values.shape[-1])[..., ::-1], axis=-1)[..., ::-1]
    rank = np.empty(values.shape)
    np.put_along_axis(rank, order, (first + last) / 2 + 1, -1)
    return rank


@dataclass(frozen=True)
class Moments:
    """The moments for Pearson's r of a stream: the number of pairs, means, and sums of squares and products around the
    means.

    Moments can be added (Chan, Golub and LeVeque 1983), so matrices can be read one at a time and documents resampled.
    """

    n: Float64[np.ndarray, "*shape"]
    mean_x: Float64[np.ndarray, "*shape"]
    mean_y: Float64[np.ndarray, "*shape"]
    xx: Float64[np.ndarray, "*shape"]
    yy: Float64[np.ndarray, "*shape"]
    xy: Float64[np.ndarray, "*shape"]

    @classmethod
    def of(cls, x: Row, y: Row) -> Moments:
        """The moments along the last axis."""
        first, second, valid = _aligned(x, y)
        n = valid.sum(-1).astype(np.float64)
        mean_x, mean_y = _mean(first, valid), _mean(second, valid)
        left, right = (np.where(valid, side - mean[..., None], 0) for side, mean in ((first, mean_x), (second, mean_y)))
        return cls(n, mean_x, mean_y, (left**2).sum(-1), (right**2).sum(-1), (left * right).sum(-1))

    def __add__(self, other: Moments) -> Moments:
        n = self.n + other.n
        share = other.n / np.maximum(n, 1)
        x, y = other.mean_x - self.mean_x, other.mean_y - self.mean_y
        between = self.n * share
        return Moments(
            n,
            self.mean_x + x * share,
            self.mean_y + y * share,
            self.xx + other.xx + x * x * between,
            self.yy + other.yy + y * y * between,
            self.xy + other.xy + x * y * between,
        )

    @property
    def r(self) -> Float64[np.ndarray, "*shape"]:
        """Pearson's r of all pairs; NaN if one side is constant."""
        with np.errstate(invalid="ignore", divide="ignore"):
            r: Float64[np.ndarray, "*shape"] = np.clip(self.xy / np.sqrt(self.xx * self.yy), -1, 1)
        return r


def pooled(parts: Moments, weights: Float64[np.ndarray, "part replicate"]) -> Float64[np.ndarray, "replicate *shape"]:
    """Pearson's r of all parts together (the first axis of their moments), each counted as often as its weight says.

    One column of ones gives the r of the sum of the parts. Bootstrap weights of documents, one column per replicate,
    give its replicates.
    """
    counts = np.tensordot(weights, parts.n, (0, 0))
    with np.errstate(invalid="ignore", divide="ignore"):
        total_x, total_y = (np.tensordot(weights, parts.n * mean, (0, 0)) / counts for mean in (parts.mean_x, parts.mean_y))
        # Centred on the mean of all, which is close to that of every replicate, so that there is no cancellation.
        centre_x, centre_y = (np.average(mean, 0, np.maximum(parts.n, 1e-300)) for mean in (parts.mean_x, parts.mean_y))
        x, y = parts.mean_x - centre_x, parts.mean_y - centre_y
        off_x, off_y = total_x - centre_x, total_y - centre_y
        xx = np.tensordot(weights, parts.xx + parts.n * x * x, (0, 0)) - counts * off_x**2
        yy = np.tensordot(weights, parts.yy + parts.n * y * y, (0, 0)) - counts * off_y**2
        xy = np.tensordot(weights, parts.xy + parts.n * x * y, (0, 0)) - counts * off_x * off_y
        r: Float64[np.ndarray, "replicate *shape"] = np.clip(xy / np.sqrt(xx * yy), -1, 1)
    return r


def _aligned(x: Row, y: Row) -> tuple[Float64[np.ndarray, "*shape n"], Float64[np.ndarray, "*shape n"], Bool[np.ndarray, "*shape n"]]:
    left, right = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64))
    return left, right, np.isfinite(left) & np.isfinite(right)


def _mean(values: Float64[np.ndarray, "*shape n"], valid: Bool[np.ndarray, "*shape n"]) -> Float64[np.ndarray, "*shape"]:
    """The mean of valid values: 0 if there are none, and exactly the value if all are equal."""
    first = np.take_along_axis(values, valid.argmax(-1)[..., None], -1)[..., 0] if values.shape[-1] else np.zeros(values.shape[:-1])
    first = np.where(valid.any(-1), first, 0)
    offsets: Float64[np.ndarray, "*shape"] = np.where(valid, values - first[..., None], 0).sum(-1) / np.maximum(valid.sum(-1), 1)
    offsets += first
    return offsets


def _pearson(x: Float64[np.ndarray, "*shape n"], y: Float64[np.ndarray, "*shape n"], valid: Bool[np.ndarray, "*shape n"]) -> Found:
    moments = Moments.of(np.where(valid, x, np.nan), np.where(valid, y, np.nan))
    return moments.r, moments.n.astype(np.int64)
