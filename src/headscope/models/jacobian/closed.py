"""Jacobians of post-LN blocks in closed form: exact sizes for all pairs of tokens without a Jacobian a pair.

With α the attention of target j to source i, v and k values and keys, o = Σα·v a head's output, s the scaling, the block's Jacobian is

    J(i→j) = M·[ Σ_h Wo_h·( α_h·(Wv_h + r_h⊗g_h) + [i=j]·s·C_h·Wq_h ) + [i=j]·I ],
    r_h = v_h(i) − o_h(j),  g_h = s·Wk_hᵀ·q_h(j),  C_h = Σ_k α_h(j,k)·(v_h(k) − o_h(j))⊗k_h(k),

    M = LN2′·(I + W2·diag(act′)·W1)·LN1′ the Jacobian of all that follows the attention at j. C is the way through the query: every
    key's weight depends on x_j. With P = M·Wo and its Gram matrix P′P in blocks of heads,

    ‖J‖² = Σ_hh' α_h·α_h'·( ⟨P′P, Wv·Wv′⟩_hh' + 2·(Wv_h·g_h')·(P′P)_hh'·r_h' + (r_h·(P′P)_hh'·r_h')·(g_h·g_h') )   for i ≠ j:

what costs d³ is done once a target, and what is done once a pair costs d². The n diagonal Jacobians are built as they stand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from headscope.models.jacobian.blocks import Block, by_head
from headscope.models.jacobian.norms import Norm

if TYPE_CHECKING:
    from jaxtyping import Float

    Sizes = Float[torch.Tensor, "source target"]

HELD = 2**25  # numbers that are held at once for a block of targets: 128 MiB in float32


@dataclass(frozen=True)
class Targets:
    """Some targets of a block: where they stand, and what of the attention belongs to them."""

    block: Block
    tokens: slice
    weights: Float[torch.Tensor, "target head source"]
    rest: Float[torch.Tensor, "target source head size"]
    slopes: Float[torch.Tensor, "target head feature"]

    @classmethod
    def of(cls, block: Block, tokens: slice) -> Targets:
        """The targets at such tokens."""
        rest = block.values.transpose(0, 1)[None] - block.heads[:, tokens].transpose(0, 1)[:, None]
        key = by_head(block.key.weight, 0, len(block.keys))
        slopes = block.scaling * (block.queries[:, tokens] @ key).transpose(0, 1)
        return cls(block, tokens, block.weights[:, tokens].transpose(0, 1), rest, slopes)

    @property
    def own(self) -> tuple[torch.Tensor, torch.Tensor]:
        """Where a pair of a target and a source is a pair of the same token."""
        here = torch.arange(len(self.weights), device=self.weights.device)
        return here, here + self.tokens.start

    def covariances(self) -> Float[torch.Tensor, "target head size size"]:
        """C of each head: the covariance of values and keys under its attention."""
        weighted = self.weights.transpose(1, 2)[..., None] * self.rest
        return torch.einsum("tshv,hsk->thvk", weighted, self.block.keys)

    def after(self) -> Float[torch.Tensor, "target feature feature"]:
        """M: the Jacobian of all that follows the attention."""
        block, slope = self.block, self.block.slope[self.tokens]
        inner = (block.down.weight * slope[:, None]).flatten(0, 1) @ block.up.weight
        inner = by_head(inner, 0, len(slope))
        inner.diagonal(dim1=1, dim2=2).add_(1)
        return block.second.take(self.tokens).left(block.first.take(self.tokens).right(inner))

    def through(self, sources: Float[torch.Tensor, "target head source"], rest: torch.Tensor) -> torch.Tensor:
        """α·(Wv + r⊗g) of all heads, one under the other: [target, source, head size, feature]."""
        value = by_head(self.block.value.weight, 0, sources.shape[1])
        inner = value + rest[..., None] * self.slopes[:, None, :, None]
        return (sources.transpose(1, 2)[..., None, None] * inner).flatten(2, 3)

    def diagonal(self, after: torch.Tensor, heads: torch.Tensor) -> Float[torch.Tensor, "target feature feature"]:
        """The Jacobians of targets with respect to themselves, given M and P."""
        here, own = self.own
        inner = self.through(self.weights[here, :, own][..., None], self.rest[here, own][:, None])[:, 0]
        query = by_head(self.block.query.weight, 0, self.weights.shape[1])
        inner = inner + self.block.scaling * (self.covariances() @ query).flatten(1, 2)
        return torch.baddbmm(after, heads, inner)


def sizes(block: Block, norm: Norm) -> Sizes:
    """G of a block, exactly."""
    reading = {"frobenius": _frobenius, "spectral": _spectral, "sum": _sum, "mean": _mean}[norm]
    return torch.cat([reading(targets).double() for targets in blocks(block, norm)]).T


def blocks(block: Block, norm: Norm = "frobenius") -> Iterator[Targets]:
    """The targets, as many at a time as memory allows."""
    length, size = block.first.hat.shape
    each = size * (block.slope.shape[-1] + 6 * size + length * (2 * size if norm == "spectral" else 5))
    step = max(1, HELD // each)
    return (Targets.of(block, slice(start, min(length, start + step))) for start in range(0, length, step))


def _frobenius(targets: Targets) -> Float[torch.Tensor, "target source"]:
    block, weights = targets.block, targets.weights
    count = weights.shape[1]
    after = targets.after()
    heads = after @ block.out.weight
    gram = by_head(by_head(heads.mT @ heads, 2, count), 1, count)  # [target, head, size, other head, size]
    value = block.value.weight
    both = by_head(by_head(value @ value.T, 1, count), 0, count)
    still = torch.einsum("thagb,hagb->thg", gram, both)
    turned = by_head(value @ targets.slopes.mT, 1, count)  # Wv_h·g_h' [target, head, size, other head]
    mixed = torch.einsum("thagb,thag->thgb", gram, turned).flatten(2)
    moved = gram * (targets.slopes @ targets.slopes.mT)[:, :, None, :, None]
    along = weights.mT  # [target, source, head]
    pulled = (along[..., None] * targets.rest).flatten(2)
    squares = torch.einsum("tsh,tsh->ts", along @ still, along)
    inner = torch.baddbmm(2 * (along @ mixed), pulled, moved.flatten(3).flatten(1, 2))
    squares = squares + torch.einsum("tsd,tsd->ts", inner, pulled)
    found: torch.Tensor = squares.clamp_min(0).sqrt()
    found[targets.own] = torch.linalg.matrix_norm(targets.diagonal(after, heads))
    return found


def _spectral(targets: Targets) -> Float[torch.Tensor, "target source"]:
    after = targets.after()
    heads = after @ targets.block.out.weight
    jacobians = heads[:, None] @ targets.through(targets.weights, targets.rest)
    jacobians[targets.own] = targets.diagonal(after, heads)
    largest: torch.Tensor = torch.linalg.svdvals(jacobians)[..., 0]
    return largest


def _sum(targets: Targets) -> Float[torch.Tensor, "target source"]:
    """The size of 1′J, the gradient of the sum of the target's features."""
    block, weights = targets.block, targets.weights
    count = weights.shape[1]
    ones = torch.ones_like(block.first.hat[targets.tokens])[:, None]
    last = block.second.take(targets.tokens).right(ones)
    inner = last + ((last @ block.down.weight) * block.slope[targets.tokens][:, None]) @ block.up.weight
    after = block.first.take(targets.tokens).right(inner)[:, 0]
    heads = by_head(after @ block.out.weight, 1, count)  # 1′P [target, head, size]
    value, query = (by_head(part.weight, 0, count) for part in (block.value, block.query))
    still = torch.einsum("tha,had->thd", heads, value)
    turn = weights.mT * torch.einsum("tsha,tha->tsh", targets.rest, heads)
    rows = weights.mT @ still + turn @ targets.slopes
    rows[targets.own] += after + block.scaling * torch.einsum("tha,thab,hbd->td", heads, targets.covariances(), query)
    lengths: torch.Tensor = torch.linalg.vector_norm(rows, dim=-1)
    return lengths


def _mean(targets: Targets) -> Float[torch.Tensor, "target source"]:
    return _sum(targets) / targets.block.first.hat.shape[-1]
