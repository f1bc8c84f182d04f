"""Known blocks as linear maps of small changes: tangents and cotangents are carried through a block by products of
matrices alone.

With O, P and N of each target (see `targets`), a change x of the block's input changes its output at j by O·x(j) +
P·do(j), where

    do(j) = Σ_k α(j,k)·Wv·t(k) + Σ_k da(j,k)·(v(k) − o(j)),  da(j,k) = α(j,k)·s·(Wq·t(j)·k(k) + q(j)·Wk·t(k)),  t = N·x

is the change of the heads' outputs; with rotary positions Wq·t and Wk·t are rotated as queries and keys are. A row
then costs less than half of what it costs to run the block, which pays for O and P if there are many rows. Rows lie
behind tokens here, and both behind heads, so that every product is one of large matrices.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeGuard

import torch

from headscope.models.jacobian.blocks import Block
from headscope.models.jacobian.parts import by_head
from headscope.models.jacobian.targets import held

if TYPE_CHECKING:
    from jaxtyping import Float

    Rows = Float[torch.Tensor, "row token feature"]
    Behind = Float[torch.Tensor, "token row feature"]
    Heads = Float[torch.Tensor, "head token row size"]
    Matrices = Float[torch.Tensor, "token feature feature"]


def worthwhile(block: Block | str, rows: int, made: bool = False) -> TypeGuard[Block]:
    """Whether the block is known, and so many rows save more than O and P cost: about 14d² flop a token and row
    against 10d³ a token; nothing if they are `made` in any case.
    """
    return isinstance(block, Block) and (made or 14 * rows > 10 * block.output.shape[1])


def push(block: Block, rows: Rows, chunk: int) -> Rows:
    """The Jacobian of the block times each row, in chunks of about so many numbers."""
    return _in_chunks(_push, block, rows, chunk)


def pull(block: Block, rows: Rows, chunk: int) -> Rows:
    """Each row times the Jacobian of the block, in chunks of about so many numbers."""
    return _in_chunks(_pull, block, rows, chunk)


def _in_chunks(product: Callable[[Block, Matrices, Matrices, Behind], Behind], block: Block, rows: Rows, chunk: int) -> Rows:
    behind = rows.transpose(0, 1)
    length, count, size = behind.shape
    made = rows.new_empty(length, count, size)
    step = max(1, chunk // (length * (8 * size + 2 * len(block.weights) * length)))
    with held(block) as (past, heads):
        for start in range(0, count, step):
            made[:, start : start + step] = product(block, past, heads, behind[:, start : start + step])
    return made.transpose(0, 1)


def _push(block: Block, past: Matrices, heads: Matrices, rows: Behind) -> Behind:
    count, length, number = len(block.weights), len(rows), rows.shape[1]
    weight = torch.cat([block.query.weight, block.key.weight, block.value.weight])
    moved = rows if block.ahead is None else block.ahead(rows)
    query, key, value = by_head(moved.flatten(0, 1) @ weight.T, 1, 3 * count).view(length, number, 3, count, -1).permute(2, 3, 0, 1, 4)
    if block.turn is not None:
        query, key = block.turn(query, 1), block.turn(key, 1)
    scores = query.flatten(1, 2) @ block.keys.mT  # [head, target and row, source]
    across = key.transpose(1, 2).flatten(1, 2).mT  # [head, size, row and source]
    scores = torch.baddbmm(scores.view(count, length, -1), block.queries, across).view(count, length, number, length)
    scores *= (block.scaling * block.weights)[:, :, None]
    pulled = (scores.flatten(1, 2) @ _with_ones(block.values)).view(count, length, number, -1)
    change = (block.weights @ value.flatten(2)).view(count, length, number, -1)
    change += pulled[..., :-1] - pulled[..., -1:] * block.heads[:, :, None]
    return torch.baddbmm(rows @ past.mT, change.permute(1, 2, 0, 3).flatten(2), heads.mT)


def _pull(block: Block, past: Matrices, heads: Matrices, rows: Behind) -> Behind:
    count, length, number = len(block.weights), len(rows), rows.shape[1]
    change: Heads = by_head(rows @ heads, 2, count).permute(2, 0, 1, 3).contiguous()
    own = -(change * block.heads[:, :, None]).sum(-1, keepdim=True)
    scores = torch.cat([change, own], -1).flatten(1, 2) @ _with_ones(block.values).mT
    scores = scores.view(count, length, number, length) * (block.scaling * block.weights)[:, :, None]
    query = (scores.flatten(1, 2) @ block.keys).view(count, length, number, -1)
    key = (block.queries.mT @ scores.flatten(2)).view(count, -1, number, length).permute(0, 3, 2, 1)
    value = (block.weights.mT @ change.flatten(2)).view(count, length, number, -1)
    if block.turn is not None:
        query, key = block.turn.back(query, 1), block.turn.back(key, 1)
    inner = torch.stack([query, key, value]).permute(2, 3, 0, 1, 4).flatten(2)
    weight = torch.cat([block.query.weight, block.key.weight, block.value.weight])
    inner = inner @ weight
    return rows @ past + (inner if block.ahead is None else block.ahead(inner))


def _with_ones(values: Float[torch.Tensor, "head token size"]) -> Float[torch.Tensor, "head token size"]:
    """Values with a feature that is 1, whose weighted sum is the sum of the weights."""
    return torch.cat([values, torch.ones_like(values[..., :1])], -1)
