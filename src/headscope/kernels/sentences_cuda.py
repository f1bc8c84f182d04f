"""Each word's favourite (most attended word) in its sentence on a CUDA device, from queries and keys or from maps: a
Triton kernel.

A program takes one sentence and one head. Two products with matrices of 0 and 1 turn its weights between tokens into
weights between words. Only the largest of each row and column is written.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

if TYPE_CHECKING:
    from jaxtyping import Float, Int64

    Bounds = Int64[torch.Tensor, "side sentence word"]  # the first token of each word, and the first one after it

_NO_LIMIT = 1 << 30


@triton.jit
def _favourites(
    query, key, logs, chosen, text_of, first_of, rows, columns, place_of, counts,
    factor, heads, share, texts, size, positions, sentences, words, before, after,
    query_text, query_head, query_row, key_text, key_head, key_row,
    D: tl.constexpr, WIDTH: tl.constexpr, TOKENS: tl.constexpr, WORDS: tl.constexpr, MAPS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    sentence, head = tl.program_id(0), tl.program_id(1)
    text, first = tl.load(text_of + sentence), tl.load(first_of + sentence)
    count = tl.load(counts + sentence)
    token, word, d = tl.arange(0, TOKENS), tl.arange(0, WORDS), tl.arange(0, WIDTH)
    there = word < count
    at = sentence * words + word
    row_start = tl.load(rows + at, mask=there, other=0)
    row_stop = tl.load(rows + sentences * words + at, mask=there, other=0)
    start = tl.load(columns + at, mask=there, other=0)
    stop = tl.load(columns + sentences * words + at, mask=there, other=0)
    inside = token < tl.max(stop, 0)
    query += text * query_text + head.to(tl.int64) * query_head
    if MAPS:
        both = inside[:, None] & inside[None, :]
        weights = tl.load(query + (first + token[:, None]) * query_row + first + token[None, :], mask=both, other=0.0).to(tl.float32)
    else:
        key += text * key_text + (head // share).to(tl.int64) * key_head
        q = tl.load(query + (first + token[:, None]) * query_row + d[None, :], mask=inside[:, None] & (d[None, :] < D), other=0.0)
        k = tl.load(key + (first + token[None, :]) * key_row + d[:, None], mask=inside[None, :] & (d[:, None] < D), other=0.0)
        log = tl.load(logs + (text * heads + head) * size + first + token, mask=inside, other=0.0) * 1.4426950408889634
        gap = token[None, :] - token[:, None]
        seen = inside[:, None] & inside[None, :] & (gap <= after) & (gap >= -before)
        weights = tl.where(seen, tl.exp2(tl.dot(q, k, input_precision=PRECISION) * factor - log[:, None]), 0.0)
    attending = (token[None, :] >= row_start[:, None]) & (token[None, :] < row_stop[:, None])
    attended = (token[:, None] >= start[None, :]) & (token[:, None] < stop[None, :])
    between = tl.dot(attending.to(tl.float32), weights, input_precision="tf32x3")
    between = tl.dot(between, attended.to(tl.float32), input_precision="tf32x3")
    between /= tl.maximum(row_stop - row_start, 1).to(tl.float32)[:, None]
    between = tl.where(there[:, None] & there[None, :] & (word[:, None] != word[None, :]), between, 0.0)
    place = tl.load(place_of + at, mask=there, other=0)
    out = chosen + (text * heads + head) * positions + place
    for direction in tl.static_range(2):
        most, pick = tl.max(between, 1 - direction), tl.argmax(between, 1 - direction)
        picked = tl.load(place_of + sentence * words + pick, mask=there, other=0)
        tl.store(out + direction * texts * heads * positions, tl.where(most > 0, picked, -1), mask=there)


def favourites(
    chosen: Int64[torch.Tensor, "direction text head position"],
    weights: Float[torch.Tensor, "text head query key"] | None,
    scores: tuple[torch.Tensor, torch.Tensor, torch.Tensor, float] | None,
    reach: tuple[int | None, int | None],
    text: Int64[torch.Tensor, "sentence"],
    first: Int64[torch.Tensor, "sentence"],
    rows: Bounds,
    columns: Bounds,
    place: Int64[torch.Tensor, "sentence word"],
    counts: Int64[torch.Tensor, "sentence"],
    tokens: int,
) -> None:
    """Write the favourites of the words of some sentences, none longer than `tokens`, into `chosen`.

    `weights` are maps; without them `scores` are queries, keys, the log-sum-exp of each row and the scale.
    """
    assert weights is not None or scores is not None, "there are neither maps nor what they are made of"
    query: torch.Tensor
    key: torch.Tensor
    query, key, logs, scale = (weights, weights, weights, 1.0) if weights is not None else scores  # type: ignore[misc]
    query, key = (tensor if tensor.stride(-1) == 1 else tensor.contiguous() for tensor in (query, key))
    _, texts, heads, positions = chosen.shape
    width = query.shape[-1]
    before, after = (_NO_LIMIT if limit is None else limit for limit in reach)
    with torch.cuda.device(chosen.device):
        _favourites[(len(text), heads)](
            *(query, key, logs, chosen, text, first, rows, columns, place, counts),
            *(scale / math.log(2), heads, heads // key.shape[1], texts, query.shape[2], positions, len(text), rows.shape[2], before, after),
            *(*query.stride()[:3], *key.stride()[:3]),
            D=width,
            WIDTH=max(16, triton.next_power_of_2(width)) if weights is None else 16,
            TOKENS=max(16, triton.next_power_of_2(tokens)),
            WORDS=max(16, triton.next_power_of_2(rows.shape[2])),
            MAPS=weights is not None,
            PRECISION="tf32x3" if query.dtype == torch.float32 else "ieee",
            num_warps=4 if tokens > 32 else 2,
        )
