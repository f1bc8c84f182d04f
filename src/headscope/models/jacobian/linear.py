"""Known blocks as linear maps of small changes: tangents and cotangents pass through a block by matrix products alone.

With O, P and N of each target (see `targets`), a change x of the block's input changes its output at j by O·x(j) +
P·do(j), where

    do(j) = Σ_k α(j,k)·Wv·t(k) + Σ_k da(j,k)·(v(k) − o(j)),  da(j,k) = α(j,k)·s·(Wq·t(j)·k(k) + q(j)·Wk·t(k)),  t = N·x

is the change of the heads' outputs. With rotary positions, Wq·t and Wk·t are rotated like queries and keys. A row then
costs less than half as much as running the block, so that O and P are worth their cost if there are many rows. Few rows
pass through the parts of the block one after the other. The axis of rows comes after that of tokens here, and both come
after that of heads, so that every product is one of large matrices. In a causal block, everything before a row's first
token is 0 and skipped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from headscope.models.jacobian.blocks import Block
from headscope.models.jacobian.costs import BlockCosts
from headscope.models.jacobian.parts import by_head
from headscope.models.jacobian.targets import held, matrices

if TYPE_CHECKING:
    from jaxtyping import Float

    Rows = Float[torch.Tensor, "row token feature"]
    Behind = Float[torch.Tensor, "token row feature"]
    Heads = Float[torch.Tensor, "head token row size"]
    Matrices = Float[torch.Tensor, "token feature feature"]

FEWEST = 96  # rows that are always carried together, even if some tokens could be skipped for them


def worthwhile(block: Block, rows: float) -> bool:
    """Whether `rows` rows per token save more than O and P cost."""
    size, inner = block.out.weight.shape
    feed = block.feed
    return BlockCosts(size, inner, block.shared, feed.down.weight.shape[1], 1 + len(feed.ups)).worthwhile(rows)


def push(block: Block, rows: Rows, chunk: int, starts: Sequence[int] | None = None) -> Rows:
    """The Jacobian of the block times each row, in chunks of about `chunk` numbers; by O and P if the block holds them
    (`targets.held`).

    A row is 0 before its start, which is a token. In a causal block, rows may end before the last token: later tokens
    are left out.
    """
    behind = rows.transpose(0, 1)
    length, count, size = behind.shape
    made = rows.new_zeros(length, count, size)
    step = _step(block, length, chunk)
    if starts is not None and block.causal:
        step = min(step, max(FEWEST, count // 8))
    for start in range(0, count, step):
        some = slice(start, start + step)
        first = min(starts[some]) if starts is not None and block.causal else 0
        made[first:, some] = _push(block, behind[first:, some], slice(first, length))
    return made.transpose(0, 1)


def pull(block: Block, rows: Rows, chunk: int) -> Rows:
    """Each row times the Jacobian of the block, in chunks of about `chunk` numbers."""
    behind = rows.transpose(0, 1)
    made = torch.empty_like(behind)
    step = _step(block, len(behind), chunk)
    with held(block) as (past, heads):
        for some in (slice(start, start + step) for start in range(0, len(rows), step)):
            made[:, some] = _pull(block, past, heads, behind[:, some])
    return made.transpose(0, 1)


def _step(block: Block, length: int, chunk: int) -> int:
    """The number of rows that make about `chunk` numbers."""
    return max(1, chunk // (length * (8 * block.output.shape[1] + 2 * len(block.weights) * length)))


def _push(block: Block, rows: Behind, here: slice) -> Behind:
    """The Jacobian at the tokens `here` times rows that are 0 at all earlier tokens."""
    count, (length, number, _) = len(block.weights), rows.shape
    groups = count // block.shared
    moved = rows if block.ahead is None else block.ahead.take(here)(rows)
    parts = by_head(moved.flatten(0, 1) @ block.projections.T, 1, count + 2 * groups).view(length, number, count + 2 * groups, -1)
    query, key, value = torch.tensor_split(parts.permute(2, 0, 1, 3), (count, count + groups))
    if block.turn is not None:
        turn = block.turn.take(here)
        query, key = turn(query, 1), turn(key, 1)
    queries, weights = block.queries[:, here], block.weights[:, here, : here.stop]
    scores = (query.flatten(1, 2) @ block.keys[:, : here.stop].mT).view(count, length, number, -1)  # [head, target, row, source]
    across = key.transpose(1, 2).flatten(1, 2).mT  # [group of heads, size, row and source]
    scores[..., here.start :] += (queries.reshape(groups, block.shared * length, -1) @ across).view(count, length, number, -1)
    scores *= (block.scaling * weights)[:, :, None]
    pulled = (scores.flatten(1, 2) @ _with_ones(block.values[:, : here.stop])).view(count, length, number, -1)
    own = weights[..., here.start :].reshape(groups, block.shared * length, length)
    change = (own @ value.flatten(2)).view(count, length, number, -1)
    change += pulled[..., :-1] - pulled[..., -1:] * block.heads[:, here, None]
    return _after(block, rows, change.permute(1, 2, 0, 3).flatten(2), here)


def _after(block: Block, rows: Behind, change: Float[torch.Tensor, "token row inner"], here: slice) -> Behind:
    """O·rows + P·change at some tokens, by O and P if the block holds them."""
    if (made := matrices(block)) is not None:
        past, heads = (part[here] for part in made)
        return torch.baddbmm(rows @ past.mT, change, heads.mT)
    between, added = block.between.take(here), change @ block.out.weight.T
    if block.parallel:
        return rows + added + block.feed.push(between.push(rows), here)
    added += rows
    if block.last is None:
        return added + block.feed.push(between.push(added), here)
    inner = between.push(added)
    return block.last.take(here).push(inner + block.feed.push(inner, here))


def _pull(block: Block, past: Matrices, heads: Matrices, rows: Behind) -> Behind:
    count, length, number = len(block.weights), len(rows), rows.shape[1]
    groups = count // block.shared
    change: Heads = by_head(rows @ heads, 2, count).permute(2, 0, 1, 3).contiguous()
    own = -(change * block.heads[:, :, None]).sum(-1, keepdim=True)
    scores = torch.cat([change, own], -1).flatten(1, 2) @ _with_ones(block.values).mT
    scores = scores.view(count, length, number, length) * (block.scaling * block.weights)[:, :, None]
    query = (scores.flatten(1, 2) @ block.keys).view(count, length, number, -1)
    queries, weights = (part.reshape(groups, block.shared * length, -1) for part in (block.queries, block.weights))
    key = (queries.mT @ scores.view(*queries.shape[:2], -1)).view(groups, -1, number, length).permute(0, 3, 2, 1)
    value = (weights.mT @ change.view(*queries.shape[:2], -1)).view(groups, length, number, -1)
    if block.turn is not None:
        query, key = block.turn.back(query, 1), block.turn.back(key, 1)
    inner = torch.cat([query, key, value]).permute(1, 2, 0, 3).flatten(2) @ block.projections
    return rows @ past + (inner if block.ahead is None else block.ahead(inner))


def _with_ones(values: Float[torch.Tensor, "head token size"]) -> Float[torch.Tensor, "head token size"]:
    """Values with one more feature, which is 1: its weighted sum is the sum of the weights."""
    return torch.cat([values, torch.ones_like(values[..., :1])], -1)
