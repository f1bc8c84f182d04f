"""Statistics of rows of attention: from maps, from queries and keys without maps, and of even attention.

The columns are those of `core.rows.RowSums`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.rows import AttentionScores, Reach
from headscope.core.transfer import to_device
from headscope.kernels import kernel

if TYPE_CHECKING:
    import torch
    from jaxtyping import Bool, Float, Int

    Values = Float[torch.Tensor, "batch head query statistic"]
    Members = Float[torch.Tensor, "batch key group"]
    Lengths = Int[torch.Tensor, "batch"]

BLOCK = 1 << 20  # numbers processed at a time on a CPU, so that intermediate results stay in the cache
ROWS = 1 << 26  # numbers in a block of rows of scores on other devices, and in the plain form


def row_statistics(
    weights: Float[torch.Tensor, "batch head query key"],
    rows: Bool[torch.Tensor, "batch query"],
    members: Members,
    offsets: Sequence[int],
) -> Values:
    """The statistics of the rows of maps; zeros for rows that are padding, where `rows` is False."""
    import torch

    plogp, mass, most = spread(weights)
    # For p with sum s, the entropy of p / s is ln s - (sum p ln p) / s, so the maps need not be divided.
    entropy = torch.where(mass != 0, mass.log() - plogp / mass, 0)  # a row of a norm map can be empty; NaN stays
    columns = [torch.stack([(1 - mass).clamp_min(0), entropy, most], -1), _grouped(weights, members), _diagonals(weights, offsets)]
    return torch.where(rows[:, None, :, None], torch.cat(columns, -1), 0)


def _grouped(weights: Float[torch.Tensor, "batch head query key"], members: Members) -> Values:
    batch, heads, queries, keys = weights.shape
    return (weights.reshape(batch, heads * queries, keys) @ members.to(weights.dtype)).view(batch, heads, queries, -1)


def _diagonals(weights: Float[torch.Tensor, "batch head query key"], offsets: Sequence[int]) -> Values:
    """The weight of each row on the key `offset` positions away; 0 if there is none."""
    columns = weights.new_zeros((*weights.shape[:-1], len(offsets)))
    for number, offset in enumerate(offsets):
        diagonal = weights.diagonal(offset, -2, -1)
        columns[:, :, max(0, -offset) : max(0, -offset) + diagonal.shape[-1], number] = diagonal
    return columns


def spread(
    weights: Float[torch.Tensor, "text *shape key"],
) -> tuple[Float[torch.Tensor, "text *shape"], Float[torch.Tensor, "text *shape"], Float[torch.Tensor, "text *shape"]]:
    """For each row the sum of p ln p, with 0 ln 0 = 0, the sum, and the largest weight."""
    if weights.is_cuda and (fast := kernel("rows_cuda")) is not None:
        plogp, mass, most = fast.row_statistics(weights)
        return plogp, mass, most
    return sum_plogp(weights), weights.sum(-1), weights.amax(-1)


def sum_plogp(weights: Float[torch.Tensor, "text *shape key"]) -> Float[torch.Tensor, "text *shape"]:
    """The sum of p ln p of each row, with 0 ln 0 = 0, a few texts at a time."""
    import torch

    texts = max(1, BLOCK // max(1, weights[0].numel())) if weights.device.type == "cpu" else max(1, len(weights))
    buffer = torch.empty_like(weights[:texts])
    sums = weights.new_empty(weights.shape[:-1])
    for start in range(0, len(weights), texts):
        part = weights[start : start + texts]
        logs = torch.clamp_min(part, torch.finfo(part.dtype).tiny, out=buffer[: len(part)])
        torch.sum(logs.log_().mul_(part), -1, out=sums[start : start + texts])
    return sums


def seen(reach: Reach, queries: Lengths, keys: Lengths, rows: range, columns: int) -> Bool[torch.Tensor, "batch row column"]:
    """Which keys the rows can attend to: those within reach that are not padding; none for a row of padding."""
    import torch

    row = torch.arange(rows.start, rows.stop, device=keys.device)[:, None]
    column = torch.arange(columns, device=keys.device)
    visible = (row < queries[:, None, None]) & (column < keys[:, None, None])
    if reach.before is not None:
        visible = visible & (column >= row - reach.before)
    if reach.after is not None:
        visible = visible & (column <= row + reach.after)
    return visible


def score_statistics(
    query: Float[torch.Tensor, "batch head query d"],
    key: Float[torch.Tensor, "batch kv_head key d"],
    scale: float,
    reach: Reach,
    lengths: tuple[Lengths, Lengths],
    members: Members,
    offsets: Sequence[int],
) -> tuple[Values, Float[torch.Tensor, "batch head query"]]:
    """The statistics of attention between these queries and keys, and the log-sum-exp of each row (0 on padding), by
    blocks of rows: the plain form, in double precision if the queries are, else in single.
    """
    import torch

    query, key = (tensor if tensor.dtype == torch.float64 else tensor.float() for tensor in (query, key))
    (batch, heads, size, _), columns = query.shape, key.shape[2]
    key = key.repeat_interleave(heads // key.shape[1], 1).transpose(-1, -2)
    values = query.new_zeros((batch, heads, size, 3 + members.shape[-1] + len(offsets)))
    logs = query.new_zeros((batch, heads, size))
    step = max(1, ROWS // max(1, batch * heads * columns))
    for start in range(0, size, step):
        rows = range(start, min(start + step, size))
        visible = seen(reach, *lengths, rows, columns)[:, None]
        scores = (query[:, :, start : rows.stop] @ key * scale).masked_fill(~visible, -torch.inf)
        weights = scores.softmax(-1).masked_fill(~visible, 0)
        valid = torch.arange(start, rows.stop, device=key.device) < lengths[0][:, None]
        part = row_statistics(weights, valid, members, ())
        logs[:, :, start : rows.stop] = torch.where(visible.any(-1), scores.logsumexp(-1), 0)
        values[:, :, start : rows.stop, : part.shape[-1]] = part
        for number, offset in enumerate(offsets, part.shape[-1]):
            place = torch.arange(rows.start, rows.stop, device=key.device) + offset
            inside = (place >= 0) & (place < columns)
            index = place.clamp(0, columns - 1)[None, None, :, None].expand(batch, heads, -1, 1)
            values[:, :, start : rows.stop, number] = weights.gather(-1, index)[..., 0] * inside
    return values, logs


def score_blocks(scores: AttentionScores, wanted: range | None = None) -> Iterator[tuple[range, Float[torch.Tensor, "batch head row key"]]]:
    """The weights of all rows, or of the `wanted` ones, a block of rows at a time: e^(score - log of the row), 0 where
    the key is not seen.
    """
    import torch

    (batch, heads, size, _), columns = scores.query.shape, scores.key.shape[2]
    if scores.query.is_cuda and (fast := kernel("attention_cuda")) is not None:
        reach = (scores.reach.before, scores.reach.after)
        parts = (scores.query, scores.key, scores.logs, scores.scale, reach, scores.lengths)
        for rows in blocks(batch * heads * columns, wanted or range(size), scores.query.device):
            yield rows, fast.weights(*parts, rows)
        return
    key = scores.key.float().repeat_interleave(heads // scores.key.shape[1], 1).transpose(-1, -2).flatten(0, 1)
    for rows in blocks(batch * heads * columns, wanted or range(size), scores.query.device):
        part = slice(rows.start, rows.stop)
        query, logs = scores.query[:, :, part].float().flatten(0, 1), scores.logs[:, :, part, None].float().flatten(0, 1)
        weights = torch.baddbmm(logs, query, key, beta=-1, alpha=scores.scale).exp_().view(batch, heads, len(rows), columns)
        yield rows, weights.masked_fill_(~seen(scores.reach, *scores.lengths, rows, columns)[:, None], 0)


def even_blocks(
    reach: Reach, lengths: tuple[Lengths, Lengths], columns: int
) -> Iterator[tuple[range, Float[torch.Tensor, "batch 1 row key"]]]:
    """The weights of a head that attends evenly to all it can see, a block of rows at a time."""
    for rows in blocks(len(lengths[0]) * columns, range(int(lengths[0].max())), lengths[0].device):
        visible = seen(reach, *lengths, rows, columns)[:, None].float()
        yield rows, visible / visible.sum(-1, keepdim=True).clamp_min(1)


def blocks(width: int, rows: range, device: torch.device) -> Iterator[range]:
    """Rows in blocks that fit into the cache of a CPU or the memory of another device. A row has `width` numbers."""
    step = max(1, (BLOCK if device.type == "cpu" else ROWS) // max(1, width))
    return (rows[start : start + step] for start in range(0, len(rows), step))


def score_pairs(
    scores: AttentionScores, text: Int[torch.Tensor, "pair"], row: Int[torch.Tensor, "pair"], column: Int[torch.Tensor, "pair"]
) -> Float[torch.Tensor, "pair head"]:
    """The weights of pairs of a row and a key, computed from scores, a block of pairs at a time; 0 where the key is not
    seen.
    """
    import torch

    heads, size = scores.query.shape[1], scores.query.shape[3]
    parts = []
    for start in range(0, len(text), step := max(1, (BLOCK if text.device.type == "cpu" else ROWS) // (heads * size))):
        at, i, j = (index[start : start + step] for index in (text, row, column))
        query = scores.query[at, :, i].float()
        key = scores.key[at, :, j].float().repeat_interleave(heads // scores.key.shape[1], 1)
        parts.append(((query * key).sum(-1) * scores.scale - scores.logs[at, :, i]).exp())
    weights = torch.cat(parts) if parts else scores.logs.new_zeros((0, heads))
    return weights.masked_fill(~within(scores.reach, row, column)[:, None], 0)


def within(reach: Reach, row: Int[torch.Tensor, "*shape"], column: Int[torch.Tensor, "*shape"]) -> Bool[torch.Tensor, "*shape"]:
    """Whether a key is within reach of a row."""
    import torch

    visible = torch.ones_like(row, dtype=torch.bool)
    if reach.before is not None:
        visible = visible & (column >= row - reach.before)
    if reach.after is not None:
        visible = visible & (column <= row + reach.after)
    return visible


def _between(
    members: Members, first: Int[torch.Tensor, "batch query"], last: Int[torch.Tensor, "batch query"], reach: Reach
) -> Float[torch.Tensor, "batch query group"]:
    """The number of keys of each group from `first` up to `last`; of all seen keys if reach has no limit."""
    import torch

    if reach == Reach():  # all rows of a text have the same last key
        inside = torch.arange(members.shape[1], device=members.device) < last[:, :1]
        return (members * inside[..., None]).sum(1, keepdim=True).expand(-1, first.shape[1], -1)
    before = torch.nn.functional.pad(members.cumsum(1), (0, 0, 1, 0))
    start, end = (
        before.gather(1, place.clamp(0, members.shape[1])[..., None].expand(-1, -1, members.shape[-1])) for place in (first, last)
    )
    return end - start


def even_statistics(
    reach: Reach, lengths: tuple[Lengths, Lengths], size: int, members: Members, offsets: Sequence[int]
) -> Float[torch.Tensor, "batch 1 query statistic"]:
    """The statistics of a head that attends evenly to all it can see: counts divided by counts."""
    import torch

    (queries, keys), columns = lengths, members.shape[1]
    row = torch.arange(size, device=keys.device)
    first = (row - reach.before).clamp_min(0) if reach.before is not None else torch.zeros_like(row)
    last = (row + reach.after + 1).clamp_max(columns) if reach.after is not None else torch.full_like(row, columns)
    last = torch.minimum(last, keys[:, None])
    count = (last - first).clamp_min(0) * (row < queries[:, None])
    share = 1 / count.clamp_min(1)
    groups = _between(members, first.expand_as(last), last, reach) * share[..., None]
    places = row[:, None] + to_device(np.array(offsets, dtype=np.int64), keys.device)
    at = ((places >= first[:, None]) & (places < last[..., None])) * share[..., None]
    spread = torch.stack([torch.zeros_like(share), count.clamp_min(1).log(), share], -1)
    return (torch.cat([spread, groups, at], -1) * (count > 0)[..., None]).float()[:, None]
