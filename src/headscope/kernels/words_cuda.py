"""Triton kernels on words: attention between words from attention between tokens, reading every map once; and counts of
how often heads choose the right word.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

if TYPE_CHECKING:
    from jaxtyping import Float, Float32, Int32, Int64

    Bounds = Int64[torch.Tensor, "side text word"]

COLUMNS = 128  # of one program
CASES = 256  # of one program


@triton.jit
def _word_map(weights, out, rows, columns, heads, queries, keys, row_count, column_count, longest, texts, COLUMNS: tl.constexpr):
    number = tl.program_id(0)
    row, head, text = number % row_count, (number // row_count) % heads, number // (row_count * heads)
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    start = tl.load(rows + text * row_count + row)
    stop = tl.load(rows + (texts + text) * row_count + row)
    first = tl.load(columns + text * column_count + column, mask=column < column_count, other=0)
    last = tl.load(columns + (texts + text) * column_count + column, mask=column < column_count, other=0)
    total = tl.zeros([COLUMNS], dtype=tl.float32)
    for query in range(start, stop):
        line = weights + ((text * heads + head).to(tl.int64) * queries + query) * keys
        for ahead in range(0, longest):
            total += tl.load(line + first + ahead, mask=first + ahead < last, other=0.0).to(tl.float32)
    total /= tl.maximum(stop - start, 1).to(tl.float32)
    tl.store(out + number.to(tl.int64) * column_count + column, total, mask=column < column_count)


def word_map(
    weights: Float[torch.Tensor, "text head query key"], rows: Bounds, columns: Bounds, longest: int
) -> Float32[torch.Tensor, "text head word word"]:
    """As words_cpu.word_map; no word has more tokens than `longest`."""
    flat = weights.contiguous()
    texts, heads, queries, keys = flat.shape
    out = torch.empty((texts, heads, rows.shape[2], columns.shape[2]), dtype=torch.float32, device=weights.device)
    grid = (texts * heads * rows.shape[2], triton.cdiv(columns.shape[2], COLUMNS))
    with torch.cuda.device(weights.device):
        _word_map[grid](
            *(flat, out, rows, columns, heads, queries, keys, rows.shape[2], columns.shape[2], longest, texts),
            COLUMNS=COLUMNS,
            num_warps=1,
        )
    return out


@triton.jit
def _count_right(chosen, text, word, answer, cell, out, cases, texts, heads, words, cells, CASES: tl.constexpr):
    case = tl.program_id(0) * CASES + tl.arange(0, CASES)
    direction, head = tl.program_id(1) // heads, tl.program_id(1) % heads
    there = case < cases
    where = ((direction * texts + tl.load(text + case, mask=there, other=0)) * heads + head) * words
    pick = tl.load(chosen + where + tl.load(word + case, mask=there, other=0), mask=there, other=-1)
    right = there & (pick == tl.load(answer + case, mask=there, other=-2))
    number = tl.load(cell + case, mask=there, other=0)
    right = right & (number < cells)
    tl.atomic_add(out + (number * tl.num_programs(1) + tl.program_id(1)), tl.full([CASES], 1, tl.int32), mask=right, sem="relaxed")


def count_right(
    chosen: Int64[torch.Tensor, "direction text head word"],
    text: Int64[torch.Tensor, "case"],
    word: Int64[torch.Tensor, "case"],
    answer: Int64[torch.Tensor, "case"],
    cell: Int64[torch.Tensor, "case"],
    cells: int,
) -> Int32[torch.Tensor, "cell direction head"]:
    """As words_cpu.count_right; cases of cells beyond `cells` are not counted."""
    directions, texts, heads, words = chosen.shape
    out = torch.zeros((cells, directions, heads), dtype=torch.int32, device=chosen.device)
    with torch.cuda.device(chosen.device):
        _count_right[(triton.cdiv(len(cell), CASES), directions * heads)](
            *(chosen, text, word, answer, cell, out, len(cell), texts, heads, words, cells), CASES=CASES
        )
    return out
