"""Poisson bootstrap over documents, for streams: it needs no order, no memory and no random state.

Each replicate gives a document a weight drawn from Poisson(1). The draw is a pure function of (seed, document id,
replicate), so shards, workers and resumed runs agree on it without communication (Chamandy et al. 2012).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.hashing import hash64

if TYPE_CHECKING:
    from jaxtyping import Float64, Int64, UInt8, UInt64

GROUPS = 128  # groups of documents: enough to resample, and few enough to keep counts for each
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
# P(X <= k) for X ~ Poisson(1), as 64-bit thresholds; the tail beyond 12 has a probability below 1e-10.
_CDF = np.cumsum([math.exp(-1) / math.factorial(k) for k in range(13)])
_THRESHOLDS = np.array([min(int(p * 2**64), 2**64 - 1) for p in _CDF], dtype=np.uint64)
_LEADING = np.arange(1 << 16, dtype=np.uint64) << np.uint64(48)  # the smallest number that begins with these 16 bits
_BY_LEADING = np.searchsorted(_THRESHOLDS, _LEADING, side="right").astype(np.uint8)
_PARTED = np.searchsorted(_THRESHOLDS, _LEADING | np.uint64((1 << 48) - 1), side="right") != _BY_LEADING


def mix(x: UInt64[np.ndarray, "..."]) -> UInt64[np.ndarray, "..."]:
    """SplitMix64's finaliser: turns a counter into pseudo-random bits."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: UInt64[np.ndarray, "..."] = x ^ (x >> np.uint64(31))
    return mixed


def poisson_weights(documents: Sequence[str], replicates: int, seed: int = 0) -> Float64[np.ndarray, "document replicate+1"]:
    """Bootstrap weights of documents, one column per replicate; column 0 is the data themselves (all ones)."""
    start = np.array([_start(seed, name) for name in documents], dtype=np.uint64)
    steps = np.arange(1, replicates + 1, dtype=np.uint64) * GOLDEN
    bits = mix(start[:, None] + steps[None, :])
    weights = np.ones((len(documents), replicates + 1))
    weights[:, 1:] = _draws(bits)
    return weights


def _draws(bits: UInt64[np.ndarray, "*shape"]) -> UInt8[np.ndarray, "*shape"]:
    """The number that 64 random bits draw. The first 16 bits determine it, unless a threshold begins with the same 16
    bits.
    """
    leading = (bits >> np.uint64(48)).astype(np.uint16)
    drawn = _BY_LEADING.take(leading)
    parted = np.flatnonzero(_PARTED.take(leading))
    drawn.flat[parted] = np.searchsorted(_THRESHOLDS, bits.flat[parted], side="right")
    found: UInt8[np.ndarray, "*shape"] = drawn
    return found


@lru_cache(maxsize=1 << 16)
def _start(seed: int, document: str) -> int:
    return hash64(seed, document)


def numbered(documents: Sequence[str]) -> tuple[Int64[np.ndarray, "item"], list[str]]:
    """The number of each item's document, and the distinct documents in the order of their first occurrence."""
    number = {name: place for place, name in enumerate(dict.fromkeys(documents))}
    return np.array([number[name] for name in documents], dtype=np.int64), list(number)


def document_weights(
    documents: Sequence[str], replicates: int, seed: int = 0
) -> tuple[Int64[np.ndarray, "item"], Float64[np.ndarray, "document replicate+1"]]:
    """The number of each item's document, and the bootstrap weights of the documents."""
    units, names = numbered(documents)
    return units, poisson_weights(names, replicates, seed)


@lru_cache(maxsize=1 << 16)
def key_of(document: str) -> int:
    """A 64-bit number that identifies a document, the same in every process."""
    return (hash64(document) + 2**63) % 2**64 - 2**63  # as a signed number


def keys_of(documents: Sequence[str]) -> Int64[np.ndarray, "document"]:
    """The keys of documents."""
    return np.fromiter(map(key_of, documents), dtype=np.int64, count=len(documents))


def group_of(document: str, groups: int = GROUPS) -> int:
    """The group of a document, one of a fixed number, the same in every process."""
    return hash64(document) % groups


def groups_of(keys: Int64[np.ndarray, "*shape"]) -> Int64[np.ndarray, "*shape"]:
    """The groups, of the default number, of documents given by their keys."""
    return keys % GROUPS


def group_weights(replicates: int, seed: int, groups: int = GROUPS) -> Float64[np.ndarray, "replicate group"]:
    """Bootstrap weights of the groups: a block bootstrap over documents."""
    return poisson_weights([f"group {number}" for number in range(groups)], replicates, seed)[:, 1:].T
