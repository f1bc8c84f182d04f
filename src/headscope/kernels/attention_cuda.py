"""Statistics of attention rows from queries and keys on a CUDA device, without maps: a Triton kernel.

A program takes some rows of one head and iterates over the keys in blocks, as fused attention does. With m the running
maximum, it keeps sums in single precision of e^(s - m), of e^(s - m) (s - m), which gives the entropy without
cancellation, and of e^(s - m) on each group of keys. Nothing as large as a map or an output is written. Weights at
offsets are computed from their queries and keys when the row is complete.

The programs are numbered along one axis, those of a head one after the other: a second axis would allow only 65,535
heads of all texts together.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxtyping import Float, Float32, Int64

GROUPS = 4  # of keys, in one launch
_NO_LIMIT = 1 << 30


@triton.jit
def _block(
    q, key, members, most, total, weighted, masses, factor, start, stop, width, row, before, after, key_row, group_row,
    D: tl.constexpr, SIZE: tl.constexpr, KEYS: tl.constexpr, GROUPS: tl.constexpr, MASKED: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """Process the keys from `start` to `stop`; without a mask, every row sees all of them."""
    d, slot = tl.arange(0, SIZE), tl.arange(0, GROUPS)
    for first in range(start, stop, KEYS):
        column = first + tl.arange(0, KEYS)
        inside = column < width
        if MASKED or D != SIZE:
            k = tl.load(key + column[None, :] * key_row + d[:, None], mask=inside[None, :] & (d[:, None] < D), other=0.0)
        else:
            k = tl.load(key + column[None, :] * key_row + d[:, None])
        scores = tl.dot(q, k, input_precision=PRECISION) * factor
        if MASKED:
            gap = column[None, :] - row[:, None]
            scores = tl.where(inside[None, :] & (gap <= after) & (gap >= -before), scores, -float("inf"))
        largest = tl.maximum(most, tl.max(scores, 1))
        base = largest
        if MASKED:  # a row that has seen no key yet has no largest score: the next score must not be compared with 0
            base = tl.where(largest == -float("inf"), 0.0, largest)
        shrink = tl.exp2(most - base)
        x = scores - base[:, None]
        p = tl.exp2(x)
        if MASKED:
            x = tl.where(scores == -float("inf"), 0.0, x)
        weighted = shrink * (weighted + tl.where(most == -float("inf"), 0.0, total * (most - base))) + tl.sum(p * x, 1)
        total = total * shrink + tl.sum(p, 1)
        masses *= shrink[:, None]
        for group in tl.static_range(GROUPS):
            member = tl.load(members + group * group_row + column, mask=inside, other=0.0)
            mass = tl.sum(p * member[None, :], 1)
            masses += tl.where(slot[None, :] == group, mass[:, None], 0.0)
        most = largest
    return most, total, weighted, masses


@triton.jit
def _statistics(
    query, key, members, rows, keys, offsets, out, logs,
    factor, heads, share, size, before, after, first_column, columns, first_offset,
    query_text, query_head, query_row, key_text, key_head, key_row, group_text, group_row,
    D: tl.constexpr, SIZE: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr, GROUPS: tl.constexpr, OFFSETS: tl.constexpr,
    SPREAD: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    blocks = tl.cdiv(size, ROWS)
    begin, item = tl.program_id(0) % blocks * ROWS, tl.program_id(0) // blocks
    text, head = item // heads, item % heads
    height, width = tl.load(rows + text).to(tl.int32), tl.load(keys + text).to(tl.int32)
    row, d = begin + tl.arange(0, ROWS), tl.arange(0, SIZE)
    valid = row < height
    query += text.to(tl.int64) * query_text + head.to(tl.int64) * query_head
    key += text.to(tl.int64) * key_text + (head // share).to(tl.int64) * key_head
    members += text.to(tl.int64) * group_text
    at = query + row[:, None] * query_row + d[None, :]
    q = tl.load(at, mask=valid[:, None] & (d[None, :] < D), other=0.0)
    most = tl.full([ROWS], -float("inf"), tl.float32)
    total = tl.zeros([ROWS], tl.float32)
    weighted = tl.zeros([ROWS], tl.float32)
    masses = tl.zeros([ROWS, GROUPS], tl.float32)
    low = tl.maximum(begin - before, 0) // KEYS * KEYS
    high = tl.minimum(width, begin + ROWS + after)
    if begin >= height:
        high = low
    # Between these two every row of the program sees every key.
    open_low = tl.minimum(tl.maximum((tl.maximum(begin + ROWS - 1 - before, 0) + KEYS - 1) // KEYS * KEYS, low), high)
    open_high = tl.maximum(tl.minimum(width, begin + after + 1) // KEYS * KEYS, open_low)
    open_high = tl.where(high > low, tl.minimum(open_high, high // KEYS * KEYS), open_low)
    open_high = tl.maximum(open_high, open_low)
    most, total, weighted, masses = _block(
        q, key, members, most, total, weighted, masses, factor, low, open_low, tl.minimum(width, open_low), row, before, after, key_row,
        group_row, D, SIZE, KEYS, GROUPS, True, PRECISION,
    )  # fmt: skip
    most, total, weighted, masses = _block(
        q, key, members, most, total, weighted, masses, factor, open_low, open_high, width, row, before, after, key_row,
        group_row, D, SIZE, KEYS, GROUPS, False, PRECISION,
    )  # fmt: skip
    most, total, weighted, masses = _block(
        q, key, members, most, total, weighted, masses, factor, open_high, high, width, row, before, after, key_row,
        group_row, D, SIZE, KEYS, GROUPS, True, PRECISION,
    )  # fmt: skip
    line = out + ((text.to(tl.int64) * size + row) * heads + head) * columns
    written = row < size
    share_of = tl.where(total > 0, 1 / total, 0.0)
    alive = valid & (total != 0)  # NaN must also pass
    if SPREAD:
        tl.store(line, tl.zeros([ROWS], tl.float32), mask=written)
        entropy = 0.6931471805599453 * (tl.log2(total) - weighted / total)
        tl.store(line + 1, tl.where(alive, entropy, 0.0), mask=written)
        tl.store(line + 2, tl.where(alive, 1 / total, 0.0), mask=written)
        log = tl.where(alive, 0.6931471805599453 * (tl.log2(total) + most), 0.0)
        tl.store(logs + item.to(tl.int64) * size + row, log, mask=written)
    slot = tl.arange(0, GROUPS)
    column = first_column + slot
    held = written[:, None] & (column[None, :] < first_offset)
    tl.store(line[:, None] + column[None, :], tl.where(valid[:, None], masses * share_of[:, None], 0.0), mask=held)
    if OFFSETS > 0:
        exact = q.to(tl.float32)
        for number in tl.static_range(OFFSETS):
            place = row + tl.load(offsets + number)
            gap = place - row
            seen = alive & (place >= 0) & (place < width) & (gap <= after) & (gap >= -before)
            other = tl.load(key + place[:, None] * key_row + d[None, :], mask=seen[:, None] & (d[None, :] < D), other=0.0)
            score = tl.sum(exact * other.to(tl.float32), 1) * factor
            weight = tl.where(seen, tl.exp2(score - most) * share_of, 0.0)
            tl.store(line + first_offset + number, weight, mask=written)


def _shape(size: int, width: int) -> tuple[int, int, int, int]:
    """Rows and keys per program, its warps and stages: the fastest choice on an H200 for texts of about this length."""
    if size <= 256:
        return 128, 32, 4, 3
    return (128, 64, 4, 3) if size <= 4096 and width <= 64 else (64, 128, 4, 3)


_last: list[tuple[torch.Tensor, tuple[int, ...], torch.Tensor, torch.Tensor]] = []


def _laid_out(
    members: Float[torch.Tensor, "text key group"], offsets: tuple[int, ...], groups: int
) -> tuple[Float32[torch.Tensor, "text group key"], torch.Tensor]:
    """The padded groups of keys and the offsets on the device. Cached, since all layers of a batch need the same."""
    if not _last or _last[0][0] is not members or _last[0][1] != offsets or _last[0][2].shape[1] != groups:
        padded = torch.zeros((len(members), groups, members.shape[1]), dtype=torch.float32, device=members.device)
        padded[:, : members.shape[2]] = members.transpose(1, 2)
        places = torch.tensor(offsets or (0,), dtype=torch.int32).pin_memory().to(members.device, non_blocking=True)
        _last[:] = [(members, offsets, padded, places)]
    return _last[0][2:]


def statistics(
    query: Float[torch.Tensor, "text head query d"],
    key: Float[torch.Tensor, "text kv_head key d"],
    scale: float,
    reach: tuple[int | None, int | None],
    lengths: tuple[Int64[torch.Tensor, "text"], Int64[torch.Tensor, "text"]],
    members: Float[torch.Tensor, "text key group"],
    offsets: Sequence[int],
    shape: tuple[int, int, int, int] | None = None,
) -> tuple[Float32[torch.Tensor, "text head query statistic"], Float32[torch.Tensor, "text head query"]]:
    """The statistics of rows and their log-sum-exp, as `stats.rows.score_statistics` gives them. `shape` sets rows and
    keys per program, its warps and stages, for tuning.
    """
    query, key = (tensor if tensor.stride(-1) == 1 else tensor.contiguous() for tensor in (query, key))
    (texts, heads, size, width), groups = query.shape, members.shape[-1]
    columns = 3 + groups + len(offsets)
    out = torch.empty((texts, size, heads, columns), dtype=torch.float32, device=query.device)  # so that rows are summed by one product
    logs = torch.empty((texts, heads, size), dtype=torch.float32, device=query.device)
    launches = max(1, -(-groups // GROUPS))
    padded, places = _laid_out(members, tuple(offsets), launches * GROUPS)
    before, after = (_NO_LIMIT if limit is None else limit for limit in reach)
    row_count, key_count, warps, stages = shape or _shape(size, width)
    with torch.cuda.device(query.device):
        for launch in range(launches):
            part = padded[:, launch * GROUPS :]
            _statistics[(triton.cdiv(size, row_count) * texts * heads,)](
                *(query, key, part, *lengths, places, out, logs),
                *(scale / math.log(2), heads, heads // key.shape[1], size, before, after, 3 + launch * GROUPS, columns, 3 + groups),
                *(*query.stride()[:3], *key.stride()[:3], *part.stride()[:2]),
                D=width,
                SIZE=max(16, triton.next_power_of_2(width)),
                ROWS=row_count,
                KEYS=key_count,
                GROUPS=GROUPS,
                OFFSETS=len(offsets) if launch == 0 else 0,
                SPREAD=launch == 0,
                PRECISION="tf32x3" if query.dtype == torch.float32 else "ieee",
                num_warps=warps,
                num_stages=stages,
            )
    return out.transpose(1, 2), logs


@triton.jit
def _weights(
    query, key, logs, out, rows, keys, factor, heads, share, size, first, height, columns, before, after,
    query_text, query_head, query_row, key_text, key_head, key_row,
    D: tl.constexpr, SIZE: tl.constexpr, ROWS: tl.constexpr, KEYS: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    blocks = tl.cdiv(height, ROWS)
    item = tl.program_id(0) // blocks
    text, head = item // heads, item % heads
    place, d = tl.program_id(0) % blocks * ROWS + tl.arange(0, ROWS), tl.arange(0, SIZE)
    row, inside = first + place, place < height
    valid = inside & (row < tl.load(rows + text))
    width = tl.load(keys + text)
    query += text.to(tl.int64) * query_text + head.to(tl.int64) * query_head
    key += text.to(tl.int64) * key_text + (head // share).to(tl.int64) * key_head
    q = tl.load(query + row[:, None] * query_row + d[None, :], mask=valid[:, None] & (d[None, :] < D), other=0.0)
    log = tl.load(logs + item.to(tl.int64) * size + row, mask=valid, other=0.0) * 1.4426950408889634
    out += (item.to(tl.int64) * height + place[:, None]) * columns
    for block in range(0, columns, KEYS):
        column = block + tl.arange(0, KEYS)
        k = tl.load(key + column[None, :] * key_row + d[:, None], mask=(column[None, :] < width) & (d[:, None] < D), other=0.0)
        gap = column[None, :] - row[:, None]
        seen = valid[:, None] & (column[None, :] < width) & (gap <= after) & (gap >= -before)
        weight = tl.where(seen, tl.exp2(tl.dot(q, k, input_precision=PRECISION) * factor - log[:, None]), 0.0)
        tl.store(out + column[None, :], weight, mask=inside[:, None] & (column[None, :] < columns))


def weights(
    query: Float[torch.Tensor, "text head query d"],
    key: Float[torch.Tensor, "text kv_head key d"],
    logs: Float32[torch.Tensor, "text head query"],
    scale: float,
    reach: tuple[int | None, int | None],
    lengths: tuple[Int64[torch.Tensor, "text"], Int64[torch.Tensor, "text"]],
    rows: range,
) -> Float32[torch.Tensor, "text head row key"]:
    """The attention weights of some rows, from queries, keys and the log-sum-exp of each row; 0 where a key is not
    seen.
    """
    query, key = (tensor if tensor.stride(-1) == 1 else tensor.contiguous() for tensor in (query, key))
    (texts, heads, size, width), columns = query.shape, key.shape[2]
    out = torch.empty((texts, heads, len(rows), columns), dtype=torch.float32, device=query.device)
    before, after = (_NO_LIMIT if limit is None else limit for limit in reach)
    with torch.cuda.device(query.device):
        _weights[(triton.cdiv(len(rows), 64) * texts * heads,)](
            *(query, key, logs, out, *lengths, scale / math.log(2), heads, heads // key.shape[1], size, rows.start, len(rows)),
            *(columns, before, after, *query.stride()[:3], *key.stride()[:3]),
            D=width,
            SIZE=max(16, triton.next_power_of_2(width)),
            ROWS=64,
            KEYS=64,
            PRECISION="tf32x3" if query.dtype == torch.float32 else "ieee",
            num_warps=4,
        )
    return out
