"""Heads ranked by score: how much the first k change with the documents, and scores on other documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headscope.core.hashing import digest, hash64
from headscope.stats.bootstrap import poisson_weights

if TYPE_CHECKING:
    from jaxtyping import Float64, Int64

DRAWS = 200  # of some documents
SIZES = (5, 10, 20, 50, 100)  # documents of a draw


class Overlap(NamedTuple):
    """The share of the first k heads that stay the same on resampled documents: its mean and 95 % of the draws."""

    k: int
    resampled: str
    documents: int
    value: float
    low: float
    high: float
    draws: int
    baseline: float


def first(scores: Float64[np.ndarray, "head"], k: int) -> Int64[np.ndarray, "k"]:
    """The k heads with the highest scores, the first of equal ones; missing scores are the lowest."""
    return np.argsort(-np.nan_to_num(scores, nan=-1.0), kind="stable")[:k]


def folds(documents: Sequence[str], seed: int) -> Int64[np.ndarray, "document"]:
    """For each document one of two parts, of equal size if all names differ."""
    order = sorted(set(documents), key=lambda name: digest(seed, "fold", name))
    part = {name: place % 2 for place, name in enumerate(order)}
    return np.array([part[name] for name in documents], dtype=np.int64)


def held_out_best(scores: Float64[np.ndarray, "sample head"], fold: Int64[np.ndarray, "sample"]) -> Float64[np.ndarray, "sample"]:
    """For each sample, the score of the head that is best on the other part."""
    best = np.full(len(scores), np.nan)
    for part in (0, 1):
        others = scores[fold != part]
        if len(others):
            best[fold == part] = scores[fold == part, first(others.mean(0), 1)[0]]
    return best


def overlaps(
    scores: Float64[np.ndarray, "sample head"], documents: Sequence[str], ks: Sequence[int], replicates: int, seed: int
) -> list[Overlap]:
    """For each k the overlap of the first k heads with those of all documents: on as many documents drawn with
    replacement, and on fewer drawn without.
    """
    names = list(dict.fromkeys(documents))
    of = np.array([names.index(name) for name in documents])
    sums = np.stack([scores[of == number].sum(0) for number in range(len(names))])
    sizes = np.bincount(of).astype(np.float64)
    drawn = {("with replacement", len(names)): poisson_weights(names, replicates or DRAWS, seed)[:, 1:].T}
    for size in SIZES:
        if size < len(names):
            drawn["without replacement", size] = np.stack([_chosen(len(names), size, seed, draw) for draw in range(DRAWS)])
    rows = []
    for (how, size), weights in drawn.items():
        weights = weights[weights @ sizes > 0]
        means = weights @ sums / (weights @ sizes)[:, None]
        for k in ks:
            whole = set(first(sums.sum(0), k).tolist())
            shares = np.array([len(whole.intersection(first(mean, k).tolist())) / len(whole) for mean in means])
            low, high = np.quantile(shares, (0.025, 0.975))
            rows.append(Overlap(k, how, size, float(shares.mean()), float(low), float(high), len(shares), len(whole) / scores.shape[1]))
    return rows


def random_heads(count: int, k: int, without: Sequence[int], seed: int, draw: int) -> list[int]:
    """The numbers of k random heads of `count`, without some."""
    order = sorted(range(count), key=lambda head: hash64("random heads", seed, draw, head))
    return [head for head in order if head not in set(without)][:k]


def _chosen(count: int, size: int, seed: int, draw: int) -> Float64[np.ndarray, "document"]:
    weights = np.zeros(count)
    weights[sorted(range(count), key=lambda number: hash64("documents", seed, draw, number))[:size]] = 1
    return weights
