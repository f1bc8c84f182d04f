"""How differently heads attend: Jensen-Shannon divergence between all pairs of heads, in nats (METHODS §6, §18.1)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from jaxtyping import Float, Float64

BLOCK = 1 << 18  # numbers worked on at a time: they stay in the cache


def jensen_shannon(maps: Float[torch.Tensor, "head row key"]) -> tuple[Float64[torch.Tensor, "head head"], int]:
    """The divergence of every pair of heads summed over rows, and the number of rows: sums of several texts add up.

    Rows are divided by their sums first, so that what a sink takes does not count. The work is done in the type of the maps,
    row by row; rows are added up in float64.
    """
    heads, rows, keys = maps.shape
    total = torch.zeros((heads, heads), dtype=torch.float64, device=maps.device)
    step = max(1, BLOCK // (heads * keys))
    for start in range(0, rows, step):
        total += _block(maps[:, start : start + step])
    return total, rows


def _block(maps: Float[torch.Tensor, "head row key"]) -> Float64[torch.Tensor, "head head"]:
    """With p and q of one row, JS = (sum p ln p + sum q ln q - sum (p + q) ln (p + q)) / 2 + ln 2: only the last sum is of pairs."""
    p = maps / maps.sum(-1, keepdim=True)
    own = _plogp(p)  # [head]
    pairs = torch.zeros((len(p), len(p)), dtype=torch.float64, device=p.device)
    for head in range(len(p) - 1):
        pairs[head, head + 1 :] = _plogp(p[head + 1 :] + p[head])
    upper = ((own[:, None] + own - pairs) / 2 + math.log(2) * maps.shape[1]).clamp_min(0).triu(1)
    return upper + upper.T


def _plogp(weights: Float[torch.Tensor, "head row key"]) -> Float64[torch.Tensor, "head"]:
    """Sum of p ln p over rows and keys, with 0 ln 0 = 0."""
    logs = weights.clamp_min(torch.finfo(weights.dtype).tiny).log_()
    return logs.mul_(weights).sum(-1).sum(-1, dtype=torch.float64)
