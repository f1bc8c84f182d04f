"""The inner loop of `pairs_cpu` on a CUDA device, in Triton, and the kernel that lays out rows for it.

Heads lie side by side in memory, so that a tile of heads is one load per key, and every thread keeps a few pairs of
heads until the last key: nothing is reduced across threads. The special function units are the bottleneck: they compute
one logarithm per pair and key. Each part of a segment has separate sums, which are added in float64 in a fixed order,
so the result is deterministic.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

if TYPE_CHECKING:
    from jaxtyping import Float, Float32, Float64, Int32, Int64

TILE = 16  # heads
UNROLL = 8  # keys
BLOCK = 64  # keys
ROWS = 16  # of one program


@triton.jit
def _log2(x):
    return tl.inline_asm_elementwise("lg2.approx.ftz.f32 $0, $1;", "=f,f", [x], dtype=tl.float32, is_pure=True, pack=1)


@triton.jit
def _pairs(
    weights,
    out,
    starts,
    ends,
    first,
    second,
    offsets,
    heads,
    row_stride,
    key_stride,
    parts,
    tiles,
    TILE: tl.constexpr,
    UNROLL: tl.constexpr,
    BLOCK: tl.constexpr,
):
    number = tl.program_id(0)
    tile, part = number % tiles, number // tiles
    segment = part // parts
    start, stop = tl.load(starts + segment), tl.load(starts + segment + 1)
    rows = (stop - start + parts - 1) // parts
    start += (part % parts) * rows
    a = tl.load(first + tile) * TILE + tl.arange(0, TILE)
    b = tl.load(second + tile) * TILE + tl.arange(0, TILE)
    p_at, q_at = tl.load(offsets + a, mask=a < heads, other=0), tl.load(offsets + b, mask=b < heads, other=0)
    total = tl.zeros([TILE, TILE], dtype=tl.float32)
    for row in range(start, tl.minimum(start + rows, stop)):
        here = tl.zeros([TILE, TILE], dtype=tl.float32)
        keys = tl.load(ends + row)
        base = weights + tl.cast(row, tl.int64) * row_stride
        for block in range(0, keys, BLOCK):
            # Sums of partial sums lose less to rounding than one long sum.
            part_of = tl.zeros([TILE, TILE], dtype=tl.float32)
            for step in range(block, tl.minimum(block + BLOCK, keys), UNROLL):
                for ahead in tl.static_range(UNROLL):
                    key = step + ahead
                    # A tiny number is added, once per head and not once per pair, so that the logarithm of 0 is finite.
                    p = tl.load(base + key * key_stride + p_at, mask=(a < heads) & (key < keys), other=0.0) + 1e-30
                    q = tl.load(base + key * key_stride + q_at, mask=(b < heads) & (key < keys), other=0.0)
                    both = p[:, None] + q[None, :]
                    part_of += both * _log2(both)
            here += part_of
        total += here
    cell = tl.arange(0, TILE)
    tl.store(out + number.to(tl.int64) * TILE * TILE + cell[:, None] * TILE + cell[None, :], total)


@triton.jit
def _lay_out(
    maps,
    out,
    texts,
    places,
    numbers,
    start,
    heads,
    keys,
    text_stride,
    head_stride,
    query_stride,
    row_stride,
    key_stride,
    HEADS: tl.constexpr,
    KEYS: tl.constexpr,
):
    row = tl.load(numbers + tl.program_id(0))
    head = tl.arange(0, HEADS)
    base = maps + tl.load(texts + row).to(tl.int64) * text_stride + (tl.load(places + row) - start).to(tl.int64) * query_stride
    base += head[:, None] * head_stride
    out += row.to(tl.int64) * row_stride
    mass = tl.zeros([HEADS, KEYS], dtype=tl.float32)
    for block in range(0, keys, KEYS):
        key = block + tl.arange(0, KEYS)
        mass += tl.load(base + key[None, :], mask=(head[:, None] < heads) & (key[None, :] < keys), other=0.0).to(tl.float32)
    sums = tl.sum(mass, 1)
    scale = 1.0 / tl.where(sums > 0, sums, 1.0)
    for block in range(0, keys, KEYS):
        key = block + tl.arange(0, KEYS)
        part = tl.load(base + key[None, :], mask=(head[:, None] < heads) & (key[None, :] < keys), other=0.0).to(tl.float32) * scale[:, None]
        tl.store(out + key[:, None] * key_stride + head[None, :], tl.trans(part), mask=(head[None, :] < heads) & (key[:, None] < keys))


def lay_out(
    maps: Float[torch.Tensor, "text head query key"],
    texts: Int64[torch.Tensor, "row"],
    places: Int64[torch.Tensor, "row"],
    numbers: Int64[torch.Tensor, "some"],
    start: int,
    out: Float32[torch.Tensor, "row key head"],
) -> None:
    """Copy numbered rows of maps, each divided by its sum, to where the kernel reads them. Maps begin with row
    `start`.
    """
    _, heads, _, keys = maps.shape
    maps = maps if maps.stride(3) == 1 else maps.contiguous()
    _lay_out[(len(numbers),)](
        *(maps, out, texts, places, numbers, start, heads, keys, *maps.stride()[:3], *out.stride()[:2]),
        HEADS=triton.next_power_of_2(heads),
        KEYS=64,
        num_warps=1,
    )


def pair_sums(
    weights: Float32[torch.Tensor, "site row key head"],
    offsets: tuple[int, ...],
    starts: Int32[torch.Tensor, "segment+1"],
    ends: Int32[torch.Tensor, "row"],
    longest: int,
) -> Float64[torch.Tensor, "segment head head"]:
    """As pairs_cpu.pair_sums; `offsets` say where each head begins, and no segment has more rows than `longest`."""
    device, heads, segments = weights.device, len(offsets), len(starts) - 1
    where, first, second = _tables(offsets, device)
    parts, tiles = max(1, math.ceil(longest / ROWS)), len(first)
    out = torch.empty((segments, parts, tiles, TILE, TILE), dtype=torch.float32, device=device)
    with torch.cuda.device(device):
        _pairs[(tiles * segments * parts,)](
            *(weights, out, starts, ends, first, second, where, heads, weights.stride(1), weights.stride(2), parts, tiles),
            TILE=TILE,
            UNROLL=UNROLL,
            BLOCK=BLOCK,
            num_warps=1,
        )
    tile_sums = out.sum(1, dtype=torch.float64)
    width = -(-heads // TILE)
    square = tile_sums.new_zeros((segments, width, width, TILE, TILE))
    square[:, first.long(), second.long()] = tile_sums
    whole = square.transpose(2, 3).reshape(segments, width * TILE, width * TILE)
    return whole[:, :heads, :heads].triu()


@lru_cache(maxsize=16)
def _tables(offsets: tuple[int, ...], device: torch.device) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Where heads begin, and the pairs of tiles, on the device."""
    first, second = torch.triu_indices(*(-(-len(offsets) // TILE),) * 2)
    return torch.tensor(offsets, dtype=torch.int32, device=device), first.int().to(device), second.int().to(device)
