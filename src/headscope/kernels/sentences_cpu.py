"""Each word's favourite (most attended word) in its sentence, from queries and keys: a compiled loop on a CPU that
attends to one sentence at a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headscope.kernels.attention_cpu import BIAS, C0, C1, C2, C3, C4, C5, C6, HALF, LEAST, MANTISSA, NO_LIMIT
from headscope.kernels.compiling import compiled, in_threads

if TYPE_CHECKING:
    from jaxtyping import Float32, Int64

    Bounds = Int64[np.ndarray, "side sentence word"]  # the first token of each word, and the first one after it

__all__ = ["NO_LIMIT", "favourites"]
_LOG2E = np.float32(1.4426950408889634)
_MOST = np.float32(126)


def favourites(
    query: Float32[np.ndarray, "text head query d"],
    key: Float32[np.ndarray, "text kv_head key d"],
    logs: Float32[np.ndarray, "text head query"],
    scale: float,
    reach: tuple[int, int],
    text: Int64[np.ndarray, "sentence"],
    first: Int64[np.ndarray, "sentence"],
    rows: Bounds,
    columns: Bounds,
    counts: Int64[np.ndarray, "sentence"],
) -> Int64[np.ndarray, "direction sentence head word"]:
    """The word that each attends to most, and the one that attends to it most, among the others of its sentence; -1 if
    none does. `counts` are the words of each sentence.

    Tokens of words are counted from the `first` of the sentence; `reach` is how many keys before and after itself a row
    sees. Among equal weights the first wins.
    """
    heads = query.shape[1]
    chosen = np.full((2, len(text), heads, rows.shape[2]), -1, np.int64)
    in_threads(_favourites, len(text) * heads, query, key, logs, np.float32(scale), *reach, text, first, rows, columns, counts, chosen)
    return chosen


@compiled
def _favourites(
    query: Float32[np.ndarray, "text head query d"],
    key: Float32[np.ndarray, "text kv_head key d"],
    logs: Float32[np.ndarray, "text head query"],
    scale: np.float32,
    before: int,
    after: int,
    text: Int64[np.ndarray, "sentence"],
    origins: Int64[np.ndarray, "sentence"],
    rows: Bounds,
    columns: Bounds,
    count: Int64[np.ndarray, "sentence"],
    chosen: Int64[np.ndarray, "direction sentence head word"],
    begin: int,
    end: int,
) -> None:
    heads, size = query.shape[1], query.shape[3]
    share = heads // key.shape[1]
    for number in range(begin, end):
        sentence, head = number // heads, number % heads
        words = count[sentence]
        length = columns[1, sentence, words - 1]
        origin = origins[sentence]
        transposed = np.empty((size, length), np.float32)
        for token in range(length):
            for d in range(size):
                transposed[d, token] = key[text[sentence], head // share, origin + token, d] * (scale * _LOG2E)
        weight = np.empty(length, np.float32)
        power = np.empty(length, np.float32)
        bits = power.view(np.int32)
        total = np.empty(words, np.float32)
        most = np.zeros(words, np.float32)  # of each column
        for row in range(words):
            total[:] = 0
            start, stop = rows[0, sentence, row], rows[1, sentence, row]
            for token in range(start, stop):
                log = logs[text[sentence], head, origin + token] * _LOG2E
                weight[:] = -log
                for d in range(size):
                    q = query[text[sentence], head, origin + token, d]
                    line = transposed[d]
                    for k in range(length):
                        weight[k] += q * line[k]
                for k in range(length):
                    x = min(max(weight[k], LEAST), _MOST)
                    weight[k] = x
                    bits[k] = (np.int32(x + _MOST - HALF) - np.int32(126) + BIAS) << MANTISSA
                for k in range(length):
                    f = weight[k] - np.float32(np.int32(weight[k] + _MOST - HALF) - np.int32(126))
                    weight[k] = power[k] * ((((((C6 * f + C5) * f + C4) * f + C3) * f + C2) * f + C1) * f + C0)
                for column in range(words):
                    for k in range(columns[0, sentence, column], columns[1, sentence, column]):
                        if token - before <= k <= token + after:
                            total[column] += weight[k]
            best = np.float32(0)
            for column in range(words):
                if column != row:
                    mean = total[column] / np.float32(max(1, stop - start))
                    if mean > best:
                        best = mean
                        chosen[0, sentence, head, row] = column
                    if mean > most[column]:
                        most[column] = mean
                        chosen[1, sentence, head, column] = row
