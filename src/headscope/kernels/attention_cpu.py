"""Attention and statistics of its rows on a CPU, without maps: a compiled loop.

Scores are computed by matrix products, in blocks of rows that stay in the cache. One loop then turns each row into
weights and sums its statistics. A second matrix product gives the outputs of the heads and, since the
members of groups stand beside the values, the weight on each group. The exponential is split into a power of 2 and a
polynomial, and the largest score is found by comparing integers, so that the compiler can vectorise over keys.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.kernels.compiling import careful, in_threads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float, Float32, Int64

CACHE = 1 << 20  # numbers of a block of scores
KEYS = 1024  # of a row, whose sums are in single precision
LARGEST = 1 << 26  # numbers of weights within spans
SUMMED = 256  # keys that one matrix product sums: a longer sum makes the weight on a group less exact
NO_LIMIT = 1 << 40
# 2^f for f from -1/2 to 1/2, fitted by least squares at Chebyshev nodes: good to 2e-8.
C0, C1, C2, C3, C4, C5, C6 = (np.float32(c) for c in (1.0, 0.6931472, 0.24022651, 0.055503294, 0.0096181291, 0.0013398875, 0.00015414552))
BIAS, MANTISSA = np.int32(127), np.int32(23)
HALF, LEAST, _ZERO = np.float32(0.5), np.float32(-126), np.float32(0)
_SIGN, _REST, _LOWEST = np.int32(31), np.int32(0x7FFFFFFF), np.int32(-(1 << 31))
_LN2 = math.log(2)


def attend(
    query: Float[torch.Tensor, "text head query d"],
    key: Float[torch.Tensor, "text kv_head key d"],
    value: Float[torch.Tensor, "text kv_head key e"],
    scale: float,
    reach: tuple[int | None, int | None],
    lengths: tuple[Int64[torch.Tensor, "text"], Int64[torch.Tensor, "text"]],
    members: Float[torch.Tensor, "text key group"],
    offsets: Sequence[int],
    spans: Int64[torch.Tensor, "side text query"] | None = None,
) -> tuple[
    Float[torch.Tensor, "text query head e"],
    Float[torch.Tensor, "text head query statistic"],
    Float[torch.Tensor, "text head query"],
    Float[torch.Tensor, "text head query width"] | None,
]:
    """The outputs of the heads, the statistics of their rows, the log-sum-exp of each row and, with `spans`, the
    weights on the keys of each row's span, 0 beyond it; None if these would need too much memory.

    `reach` is the number of keys before and after itself that a row sees, None if all; `lengths` are the rows and the
    keys of each text without padding.
    """
    dtype = query.dtype
    query, key, value = query.float(), key.float(), value.float()
    (texts, heads, rows, _), keys = query.shape, key.shape[2]
    before, after = (NO_LIMIT if limit is None else limit for limit in reach)
    counts = tuple(length.numpy() for length in lengths)
    numbers = np.array(offsets, dtype=np.int64)
    groups, size = members.shape[-1], value.shape[-1]
    output = query.new_empty((texts, rows, heads, size))
    statistics = query.new_empty((texts, heads, rows, 3 + groups + len(offsets)))
    logs = query.new_empty((texts, heads, rows))
    width = 0 if spans is None else int((spans[1] - spans[0]).max())
    fits = spans is not None and texts * heads * rows * width <= LARGEST
    near = query.new_zeros((texts, heads, rows, width if fits else 0))
    bounds = spans.numpy() if spans is not None and fits else np.zeros((2, texts, rows), np.int64)
    together = max(1, CACHE // (heads * rows * keys))  # texts
    step = rows if heads * rows * keys <= 2 * CACHE else max(16, CACHE // (heads * keys))
    buffer = query.new_empty(min(texts, together) * heads * min(rows, step) * keys)
    factor = np.float32(scale / _LN2)
    for first in range(0, texts, together):
        part = slice(first, min(texts, first + together))
        transposed = _repeated(key[part], heads).transpose(-1, -2)
        chosen = members[part, None].expand(-1, heads, -1, -1)
        summed = torch.cat([_repeated(value[part], heads), chosen], -1)
        for start in range(0, rows, step):
            stop = min(rows, start + step)
            low, high = max(0, start - before), min(keys, stop + after)  # keys that none of these rows sees are skipped
            shape = (part.stop - part.start, heads, stop - start, max(0, high - low))
            scores = buffer[: math.prod(shape)].view(shape)
            torch.matmul(query[part, :, start:stop], transposed[..., low:high], out=scores)
            block = statistics[part, :, start:stop]
            inverse = query.new_empty(shape[:3])
            in_threads(
                *(_rows, shape[0] * heads, scores.numpy(), factor, start, low, before, after, counts[0][part], counts[1][part]),
                *(groups, numbers, block.numpy(), inverse.numpy(), logs[part, :, start:stop].numpy()),
                *(bounds[:, part, start:stop], near[part, :, start:stop].numpy()),
            )
            sums = _product(scores, summed[:, :, low:high]).mul_(inverse[..., None])
            output[part, start:stop] = sums[..., :size].transpose(1, 2)
            block[..., 3 : 3 + groups] = sums[..., size:]
    return output.to(dtype), statistics, logs, near if fits else None


def _repeated(tensor: Float[torch.Tensor, "text kv_head key d"], heads: int) -> Float[torch.Tensor, "text head key d"]:
    """Keys or values repeated for all heads, if some heads share them."""
    return tensor if tensor.shape[1] == heads else tensor.repeat_interleave(heads // tensor.shape[1], 1)


def _product(
    weights: Float[torch.Tensor, "text head row key"], columns: Float[torch.Tensor, "text head key column"]
) -> Float[torch.Tensor, "text head row column"]:
    """The matrix product, as a sum of products over few keys each."""
    sums = torch.matmul(weights[..., :SUMMED], columns[..., :SUMMED, :])
    for start in range(SUMMED, weights.shape[-1], SUMMED):
        part = slice(start, start + SUMMED)
        sums += torch.matmul(weights[..., part], columns[..., part, :])
    return sums


@careful
def _rows(
    scores: Float32[np.ndarray, "text head row key"],
    factor: np.float32,
    first_row: int,
    first_key: int,
    before: int,
    after: int,
    queries: Int64[np.ndarray, "text"],
    keys: Int64[np.ndarray, "text"],
    groups: int,
    offsets: Int64[np.ndarray, "offset"],
    out: Float32[np.ndarray, "text head row statistic"],
    inverse: Float32[np.ndarray, "text head row"],
    logs: Float32[np.ndarray, "text head row"],
    spans: Int64[np.ndarray, "side text row"],
    near: Float32[np.ndarray, "text head row width"],
    begin: int,
    end: int,
) -> None:
    """Turn scores into exp(score - largest score of the row), in place, and write the statistics of each row, except
    those of groups, the factor that normalises its weights, and its weights on its span. A score that is not finite
    makes them NaN.
    """
    heads, rows, width = scores.shape[1:]
    integers = scores.view(np.int32)
    power = np.empty(KEYS, np.float32)
    bits = power.view(np.int32)
    exponent = np.empty(KEYS, np.float32)
    for number in range(begin, end):
        text, head = number // heads, number % heads
        for row in range(rows):
            line = scores[text, head, row]
            place = first_row + row
            low = max(0, place - before - first_key)
            high = min(min(keys[text], place + after + 1) - first_key, width)
            if place >= queries[text] or high <= low:
                line[:] = 0
                out[text, head, row] = 0
                inverse[text, head, row] = 0
                logs[text, head, row] = 0
                continue
            visible = line[low:high]
            ordered = integers[text, head, row, low:high]
            check = _ZERO
            largest = _LOWEST
            for k in range(len(visible)):  # integers with the same bits have the same order if those of negative scores are flipped
                largest = max(largest, ordered[k] ^ ((ordered[k] >> _SIGN) & _REST))
                check += visible[k]
            bits[0] = largest ^ ((largest >> _SIGN) & _REST)
            most = power[0]
            total = 0.0
            weighted = 0.0
            for start in range(0, len(visible), KEYS):
                part = visible[start : min(len(visible), start + KEYS)]
                for k in range(len(part)):
                    x = max((part[k] - most) * factor, LEAST)
                    exponent[k] = x
                    bits[k] = (np.int32(x - HALF) + BIAS) << MANTISSA
                sums = _ZERO
                products = _ZERO
                for k in range(len(part)):
                    x = exponent[k]
                    f = x - np.float32(np.int32(x - HALF))
                    e = power[k] * ((((((C6 * f + C5) * f + C4) * f + C3) * f + C2) * f + C1) * f + C0)
                    part[k] = e
                    sums += e
                    products += e * x
                total += float(sums)
                weighted += float(products)
            share = 1.0 / total if math.isfinite(check) else np.nan
            log = math.log2(total)
            inverse[text, head, row] = share
            logs[text, head, row] = _LN2 * (log + most * factor)
            statistics = out[text, head, row]
            statistics[0] = share * _ZERO  # no sink takes a share; NaN if the row is
            statistics[1] = _LN2 * (log - weighted * share)
            statistics[2] = share
            for at in range(len(offsets)):
                k = place + offsets[at] - first_key
                statistics[3 + groups + at] = line[k] * share if low <= k < high else 0.0
            line[:low] = 0
            line[high:] = 0
            origin = spans[0, text, row] - first_key
            low, high = max(0, origin), min(width, spans[1, text, row] - first_key)
            if low < high:
                within = line[low:high]
                weights = near[text, head, row, low - origin : high - origin]
                for k in range(len(within)):
                    weights[k] = within[k] * inverse[text, head, row]
