"""What entropy needs to know of every row of attention: the sum of p ln p, the sum, the largest weight."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headscope.kernels import kernel

if TYPE_CHECKING:
    import torch
    from jaxtyping import Float

    Rows = Float[torch.Tensor, "*shape"]

BLOCK = 1 << 20  # numbers worked on at a time on a CPU: what is in between stays in the cache


def row_statistics(weights: Float[torch.Tensor, "text *shape key"]) -> tuple[Rows, Rows, Rows]:
    """Of each row the sum of p ln p, with 0 ln 0 = 0, the sum and the largest weight; in one reading where there is
    a kernel for it.
    """
    if weights.is_cuda and (fast := kernel("rows_cuda")) is not None:
        plogp, mass, most = fast.row_statistics(weights)
        return plogp, mass, most
    return _plogp(weights), weights.sum(-1), weights.amax(-1)


def _plogp(weights: Float[torch.Tensor, "text *shape key"]) -> Rows:
    """A few texts at a time."""
    import torch

    texts = max(1, BLOCK // max(1, weights[0].numel())) if weights.device.type == "cpu" else max(1, len(weights))
    buffer = torch.empty_like(weights[:texts])
    sums = weights.new_empty(weights.shape[:-1])
    for start in range(0, len(weights), texts):
        part = weights[start : start + texts]
        logs = torch.clamp_min(part, torch.finfo(part.dtype).tiny, out=buffer[: len(part)])
        torch.sum(logs.log_().mul_(part), -1, out=sums[start : start + texts])
    return sums
