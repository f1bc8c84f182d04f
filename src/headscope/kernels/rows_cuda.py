"""The sums that entropy needs, from one pass over the attention rows on a CUDA device: a Triton kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
import triton
import triton.language as tl

if TYPE_CHECKING:
    from jaxtyping import Float, Float32

ROWS = 8  # of one program
KEYS = 128


@triton.jit
def _rows(weights, out, rows, keys, ROWS: tl.constexpr, KEYS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    plogp = tl.zeros([ROWS, KEYS], dtype=tl.float32)
    mass = tl.zeros([ROWS, KEYS], dtype=tl.float32)
    most = tl.zeros([ROWS, KEYS], dtype=tl.float32)
    for block in range(0, keys, KEYS):
        key = block + tl.arange(0, KEYS)
        p = tl.load(weights + row[:, None] * keys + key[None, :], mask=(row[:, None] < rows) & (key[None, :] < keys), other=0.0)
        p = p.to(tl.float32)
        plogp += p * tl.log(tl.maximum(p, 1e-37))
        mass += p
        most = tl.maximum(most, p)
    tl.store(out + row, tl.sum(plogp, 1), mask=row < rows)
    tl.store(out + rows + row, tl.sum(mass, 1), mask=row < rows)
    tl.store(out + 2 * rows + row, tl.max(most, 1), mask=row < rows)


def row_statistics(
    weights: Float[torch.Tensor, "*shape key"],
) -> tuple[Float32[torch.Tensor, "*shape"], Float32[torch.Tensor, "*shape"], Float32[torch.Tensor, "*shape"]]:
    """The sum of p ln p, the sum and the largest weight of each row."""
    flat = weights.contiguous()
    rows, keys = flat.numel() // flat.shape[-1], flat.shape[-1]
    out = torch.empty((3, rows), dtype=torch.float32, device=weights.device)
    with torch.cuda.device(weights.device):
        _rows[(triton.cdiv(rows, ROWS),)](flat, out, rows, keys, ROWS=ROWS, KEYS=KEYS, num_warps=4)
    plogp, mass, most = out.view(3, *weights.shape[:-1])
    return plogp, mass, most
