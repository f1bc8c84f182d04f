"""The targets of known blocks, and the parts of their Jacobians.

With α the attention of target j to source i, v and k values and keys, o = Σα·v a head's output, s the scaling, the
block's Jacobian is

    J(i→j) = [i=j]·O + P·K·N,   K_h = α_h·(Wv_h + r_h⊗g_h) + [i=j]·s·C_h·Wq_h,
    r_h = v_h(i) − o_h(j),  g_h = s·Wk_hᵀ·q_h(j),  C_h = Σ_k α_h(j,k)·(v_h(k) − o_h(j))⊗k_h(k).

O is the Jacobian at j of everything that bypasses the attention, and P = M·Wo is that of everything after its heads.
With F the Jacobian of the feed-forward part,

    post-LN    O = M = LN2′·(I + F)·LN1′        pre-LN    O = M = I + F·LN2′        parallel    O = I + F·LN2′, M = I

C is the path through the query: the weight of every key depends on x_j. N is the Jacobian at i of a normalisation ahead
of the attention, I if there is none. With its weights and the subtraction of the mean folded into Wq, Wk and Wv, it is
(I − u·u′)/σ, u = hat/√d. With rotary positions g depends on i as well, g_h = s·Wk_hᵀ·R(i)′·q_h(j), where q and k are
rotated, and C·Wq becomes C·R(j)·Wq.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from headscope.models.jacobian.blocks import Block
from headscope.models.jacobian.choices import Norm
from headscope.models.jacobian.parts import by_head

if TYPE_CHECKING:
    from jaxtyping import Float

    Matrices = Float[torch.Tensor, "target feature feature"]

_HELD = "matrices"  # the attribute of a block that holds O and P
# Numbers that are held at once for a group of targets: 32 MiB in float32, much of which stays in the cache. A GPU needs
# more to be kept busy.
HELD, GPU_HELD = 2**23, 2**25


@dataclass(frozen=True)
class Targets:
    """Some targets of a block: their positions, and their part of the attention.

    `queries` are s·q, ready to be multiplied by keys before their rotation. Without rotation they are the same for all
    sources and stored once.
    """

    block: Block
    tokens: slice
    weights: Float[torch.Tensor, "target source head"]
    rest: Float[torch.Tensor, "target source head size"]
    queries: Float[torch.Tensor, "target #source head size"]

    @classmethod
    def of(cls, block: Block, tokens: slice) -> Targets:
        """The targets at these tokens."""
        rest = block.values.transpose(0, 1)[None] - block.heads[:, tokens].transpose(0, 1)[:, None]
        queries = block.scaling * block.queries[:, tokens].transpose(0, 1)[:, None]
        queries = queries if block.turn is None else block.turn.back(queries, 1)
        return cls(block, tokens, block.weights[:, tokens].permute(1, 2, 0), rest, queries)

    @property
    def own(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The indices of the pairs whose target and source are the same token."""
        here = torch.arange(len(self.weights), device=self.weights.device)
        return here, here + self.tokens.start

    def by_head(self, x: torch.Tensor, *axes: int) -> torch.Tensor:
        """A tensor with axes of features split into heads. The last axis must be given first."""
        for axis in axes:
            x = by_head(x, axis, self.weights.shape[-1])
        return x

    def slopes(self) -> Float[torch.Tensor, "target #source head feature"]:
        """The vector g of each head."""
        return torch.einsum("tshk,hkd->tshd", self.queries, self.by_head(self.block.key.weight, 0))

    def covariances(self) -> Float[torch.Tensor, "target head size size"]:
        """s·C of each head, ready to be multiplied by queries before their rotation: the covariance of values and keys
        under the head's attention.
        """
        found = torch.einsum("tshv,hsk->thvk", self.weights[..., None] * self.rest, self.block.scaling * self.block.keys)
        return found if self.block.turn is None else self.block.turn.take(self.tokens).back(found, 0)

    def after(self) -> tuple[Matrices, Float[torch.Tensor, "target feature inner"]]:
        """O and P, from the block if it holds them (`held`)."""
        block = self.block
        if (made := matrices(block)) is not None:
            past, heads = made
            return past[self.tokens], heads[self.tokens]
        between, inner = block.between.take(self.tokens), block.feed.jacobian(self.tokens)
        inner = inner if block.last is not None else between.right(inner)
        inner.diagonal(dim1=1, dim2=2).add_(1)
        past = inner if block.last is None else block.last.take(self.tokens).left(between.right(inner))
        return past, block.out.weight.expand(len(past), -1, -1) if block.parallel else past @ block.out.weight

    def sums(self) -> tuple[Float[torch.Tensor, "target feature"], Float[torch.Tensor, "target inner"]]:
        """1′O and 1′P."""
        block, between = self.block, self.block.between.take(self.tokens)
        ones = torch.ones_like(between.hat)[:, None]
        if block.last is None:
            past = ones + between.right(block.feed.right(ones, self.tokens))
        else:
            ones = block.last.take(self.tokens).right(ones)
            past = between.right(ones + block.feed.right(ones, self.tokens))
        return past[:, 0], (ones if block.parallel else past)[:, 0] @ block.out.weight

    def through(self) -> Float[torch.Tensor, "target source inner feature"]:
        """α·(Wv + r⊗g) of all heads, stacked."""
        inner = self.by_head(self.block.value.weight, 0) + self.rest[..., None] * self.slopes()[..., None, :]
        return (self.weights[..., None, None] * inner).flatten(2, 3)

    def itself(self) -> Targets:
        """Each target with itself as its only source."""
        (here, own), queries = self.own, self.queries
        queries = queries if queries.shape[1] == 1 else queries[here, own][:, None]
        return Targets(self.block, self.tokens, self.weights[here, own][:, None], self.rest[here, own][:, None], queries)

    def diagonal(self, past: Matrices, heads: torch.Tensor) -> Matrices:
        """The Jacobians of targets with respect to themselves, given O and P."""
        inner = self.itself().through()[:, 0]
        inner = inner + (self.covariances() @ self.by_head(self.block.query.weight, 0)).flatten(1, 2)
        inner = inner if self.block.ahead is None else self.block.ahead.take(self.tokens)(inner)
        return torch.baddbmm(past, heads, inner)


def matrices(block: Block) -> tuple[Matrices, Float[torch.Tensor, "target feature inner"]] | None:
    """O and P of all targets if the block holds them, otherwise None."""
    return block.__dict__.get(_HELD)


@contextmanager
def held(block: Block) -> Iterator[tuple[Matrices, Float[torch.Tensor, "target feature inner"]]]:
    """Compute O and P of all targets and keep them in the block within the context, where all computations use them."""
    if (made := matrices(block)) is not None:
        yield made
        return
    past, heads = (torch.cat(parts) for parts in zip(*(targets.after() for targets in targets_of(block)), strict=True))
    block.__dict__[_HELD] = past, heads
    try:
        yield past, heads
    finally:
        del block.__dict__[_HELD]


def targets_of(block: Block, norm: Norm = "frobenius") -> Iterator[Targets]:
    """The targets, in groups that fit into memory."""
    length, size = block.output.shape
    each = size * (block.feed.down.weight.shape[1] + 6 * size + length * (2 * size if norm == "spectral" else 8))
    step = max(1, (HELD if block.output.device.type == "cpu" else GPU_HELD) // each)
    return (Targets.of(block, slice(start, min(length, start + step))) for start in range(0, length, step))
