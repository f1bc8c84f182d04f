"""The loss and the gradients of an attention-only probe on one sentence: a compiled loop on a CPU.

The maps are large and the computation on them is small. This loop reads them while they are in the cache, forwards and
backwards; the plain implementation reads them from memory several times.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headscope.kernels.compiling import compiled

if TYPE_CHECKING:
    from jaxtyping import Float32, Int64


@compiled
def learn(
    maps: Float32[np.ndarray, "position position head"],
    weights: Float32[np.ndarray, "seed 2 head"],
    ends: Float32[np.ndarray, "seed 2"],
    gold: Int64[np.ndarray, "word"],
    losses: Float32[np.ndarray, "seed"],
    weight_slopes: Float32[np.ndarray, "seed 2 head"],
    end_slopes: Float32[np.ndarray, "seed 2"],
) -> None:
    """Add the sum over words of the cross-entropy with their governors to `losses`, and its gradients to the slopes.

    The first two positions are start and end, which `ends` weighs for the root; then come the words. `gold` is a
    governor among the candidates, the root first, or negative for a word that has none.
    """
    size, heads = maps.shape[0], maps.shape[2]
    for seed in range(weights.shape[0]):
        there, back = weights[seed, 0], weights[seed, 1]
        met = np.empty((2, size, size), np.float32)
        for i in range(size):
            for j in range(size):
                one, other = np.float32(0), np.float32(0)
                for head in range(heads):
                    one += maps[i, j, head] * there[head]
                    other += maps[i, j, head] * back[head]
                met[0, i, j] = one
                met[1, i, j] = other
        slopes = np.zeros((2, size, size), np.float32)
        scores = np.empty(size - 1, np.float32)
        for i in range(2, size):
            if gold[i - 2] < 0:
                continue
            scores[0] = np.float32(0)
            for end in range(2):
                scores[0] += ends[seed, end] * (met[0, i, end] + met[1, end, i])
            most = scores[0]
            for j in range(2, size):
                scores[j - 1] = met[0, i, j] + met[1, j, i]
                most = max(most, scores[j - 1])
            right = scores[gold[i - 2]]
            total = np.float32(0)
            for candidate in range(size - 1):
                scores[candidate] = np.exp(scores[candidate] - most)
                total += scores[candidate]
            losses[seed] += np.log(total) + most - right
            for candidate in range(size - 1):
                scores[candidate] /= total
            scores[gold[i - 2]] -= np.float32(1)
            for end in range(2):
                end_slopes[seed, end] += scores[0] * (met[0, i, end] + met[1, end, i])
                slopes[0, i, end] = slopes[1, end, i] = scores[0] * ends[seed, end]
            for j in range(2, size):
                slopes[0, i, j] = slopes[1, j, i] = scores[j - 1]
        for i in range(size):
            for j in range(size):
                one, other = slopes[0, i, j], slopes[1, i, j]
                for head in range(heads):
                    weight_slopes[seed, 0, head] += one * maps[i, j, head]
                    weight_slopes[seed, 1, head] += other * maps[i, j, head]
