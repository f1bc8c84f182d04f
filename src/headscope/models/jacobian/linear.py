"""Known blocks as linear maps of small changes: tangents are carried through a block by products of matrices alone.

With M and P = M·Wo of each target (see `closed`), a change t of the block's input changes its output at j by M·t(j) + P·do(j), where
do is the change of the heads' outputs. A tangent then costs less than half of what it costs to run the block, which pays for M and P
if there are many tangents.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from headscope.models.jacobian import closed
from headscope.models.jacobian.blocks import Block, by_head

if TYPE_CHECKING:
    from jaxtyping import Float

    Rows = Float[torch.Tensor, "row token feature"]


def worthwhile(block: Block, rows: int) -> bool:
    """Whether so many tangents save more than M and P cost: about 14d² flop a token and tangent against 10d³ a token."""
    return 14 * rows > 10 * block.first.hat.shape[1]


def push(block: Block, rows: Rows, chunk: int) -> Rows:
    """The Jacobian of the block times each row, in chunks of about so many numbers."""
    after = torch.cat([targets.after() for targets in closed.blocks(block)])
    heads = (after @ block.out.weight).mT
    after = after.mT
    length = rows.shape[1]
    step = max(1, chunk // (length * (4 * rows.shape[2] + 2 * len(block.weights) * length)))
    return torch.cat([_push(block, after, heads, rows[start : start + step]) for start in range(0, len(rows), step)])


def _push(block: Block, after: torch.Tensor, heads: torch.Tensor, rows: Rows) -> Rows:
    count = len(block.weights)
    query, key, value = (by_head(rows @ part.weight.T, 2, count).transpose(1, 2) for part in (block.query, block.key, block.value))
    scores = block.weights * block.scaling * (query @ block.keys.mT + block.queries @ key.mT)
    weights = scores - block.weights * scores.sum(-1, keepdim=True)
    change = (weights @ block.values + block.weights @ value).permute(2, 0, 1, 3).flatten(2)  # [token, row, head size]
    return torch.baddbmm(change @ heads, rows.transpose(0, 1), after).transpose(0, 1)
