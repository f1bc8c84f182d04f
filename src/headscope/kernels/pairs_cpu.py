"""The inner loop of Jensen-Shannon divergence on a CPU, compiled: sums of (p + q) log2 (p + q) over keys, for all pairs
of heads.

Heads are taken in tiles, so that the rows of two tiles stay in the fastest cache. The logarithm is split
into the exponent of the number and a polynomial of its mantissa, so that the compiler can vectorise over keys. One
thread sums each pair of heads in the order of the rows, so the result does not depend on the number of threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headscope.kernels.compiling import compiled, in_threads

if TYPE_CHECKING:
    from jaxtyping import Float32, Float64, Int64

TILE = 16  # heads
BLOCK = 512  # keys
# log2(1 + t) / t for t from sqrt(1/2) - 1 to sqrt(2) - 1, fitted by least squares at Chebyshev nodes: good to 9e-8 in
# the logarithm.
_C0, _C1, _C2, _C3, _C4, _C5, _C6, _C7 = (
    np.float32(c) for c in (1.4426949, -0.72135276, 0.48092404, -0.36024198, 0.28707561, -0.24882181, 0.23420985, -0.14620353)
)
_ROOT = np.int32(0x3F3504F3)  # the bits of sqrt(1/2): mantissas are taken from there to sqrt(2)
_MANTISSA = np.int32(0x7FFFFF)
_EXPONENT = np.int32(23)
_ONE = np.float32(1)


def pair_sums(
    weights: Float32[np.ndarray, "row head key"], starts: Int64[np.ndarray, "segment+1"], ends: Int64[np.ndarray, "row"]
) -> Float64[np.ndarray, "segment head head"]:
    """The sums over the rows of each segment and over keys for heads a <= b, in bits; 0 for other pairs. 0 log 0 counts
    as 0.

    Segment s is the rows from `starts[s]` to `starts[s + 1]`; beyond `ends[row]` a row has no weight, and is skipped.
    """
    heads = weights.shape[1]
    pairs = np.stack(np.triu_indices(-(-heads // TILE)))
    sums = np.zeros((len(starts) - 1, heads, heads), np.float64)
    in_threads(_pair_sums, pairs.shape[1], weights, starts, ends, pairs, sums)
    return sums


@compiled
def _pair_sums(
    weights: Float32[np.ndarray, "row head key"],
    starts: Int64[np.ndarray, "segment+1"],
    ends: Int64[np.ndarray, "row"],
    tiles: Int64[np.ndarray, "side pair"],
    sums: Float64[np.ndarray, "segment head head"],
    begin: int,
    end: int,
) -> None:
    heads = weights.shape[1]
    for pair in range(begin, end):
        both = np.empty(BLOCK, np.float32)
        bits = both.view(np.int32)
        mantissa = np.empty(BLOCK, np.float32)
        mantissa_bits = mantissa.view(np.int32)
        for segment in range(len(starts) - 1):
            for row in range(starts[segment], starts[segment + 1]):
                for key in range(0, ends[row], BLOCK):
                    size = min(BLOCK, ends[row] - key)
                    for a in range(tiles[0, pair] * TILE, min(heads, (tiles[0, pair] + 1) * TILE)):
                        p = weights[row, a, key : key + size]  # slices, since indices that could be negative would prevent vectorisation
                        for b in range(max(a, tiles[1, pair] * TILE), min(heads, (tiles[1, pair] + 1) * TILE)):
                            q = weights[row, b, key : key + size]
                            for k in range(size):
                                both[k] = p[k] + q[k]
                            for k in range(size):
                                mantissa_bits[k] = ((bits[k] - _ROOT) & _MANTISSA) + _ROOT
                            total = np.float32(0)
                            for k in range(size):
                                exponent = np.float32((bits[k] - _ROOT) >> _EXPONENT)
                                t = mantissa[k] - _ONE
                                series = ((((((_C7 * t + _C6) * t + _C5) * t + _C4) * t + _C3) * t + _C2) * t + _C1) * t + _C0
                                total += both[k] * (exponent + t * series)
                            sums[segment, a, b] += total
