"""Norms of the Jacobians of known blocks in closed form: exact for all pairs of tokens, without one Jacobian per pair.

In the notation of `targets`, with the Gram matrix P′P in blocks of heads, for i ≠ j

    ‖P·K‖² = Σ_hh' α_h·α_h'·( ⟨P′P, Wv·Wv′⟩_hh' + 2·(Wv_h·g_h')·(P′P)_hh'·r_h' + (r_h·(P′P)_hh'·r_h')·(g_h·g_h') ),
    ‖J‖² = ‖P·K‖², and with a normalisation ahead of the attention ( ‖P·K‖² − (2 − ‖u‖²)·‖P·K·u‖² ) / σ².

Terms that cost d³ are computed once per target, and terms computed once per pair cost d². The n diagonal Jacobians are
built in full. With rotary positions, the products of g with Wv and with itself are computed for each pair, from Wv·Wk′
and Wk·Wk′.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

from headscope.models.jacobian.blocks import Block
from headscope.models.jacobian.choices import Norm
from headscope.models.jacobian.targets import Targets, targets_of

if TYPE_CHECKING:
    from jaxtyping import Float

    Sizes = Float[torch.Tensor, "source target"]
    Pairs = Float[torch.Tensor, "target source"]


def sizes(block: Block, norm: Norm, targets: Sequence[int] | None = None) -> Sizes:
    """The exact G of a block. With `targets`, only their columns are computed, in proportionally less time, and all
    others are 0.
    """
    reading = {"frobenius": _frobenius, "spectral": _spectral, "sum": _sum, "mean": _mean}[norm]
    if targets is None:
        return torch.cat([reading(some).double() for some in targets_of(block, norm)]).T
    length = len(block.output)
    found = block.output.new_zeros(length, length, dtype=torch.float64)
    for target in targets:
        found[:, target] = reading(Targets.of(block, slice(target, target + 1)))[0].double()
    return found


def _frobenius(targets: Targets) -> Pairs:
    ahead, weights = targets.block.ahead, targets.weights
    past, heads = targets.after()
    gram = heads.mT @ heads
    blocked = targets.by_head(gram, 2, 1)  # [target, head, size, other head, size]
    still = torch.einsum("thagb,hagb->thg", blocked, targets.block.meeting[0])
    pulled = weights[..., None] * targets.rest
    squares = torch.einsum("tsh,tsh->ts", weights @ still, weights) + _moved(targets, blocked, pulled)
    if ahead is not None:
        values, keys = (targets.by_head(ahead.unit @ part.weight.T, 1) for part in (targets.block.value, targets.block.key))
        along = weights[..., None] * values + pulled * (targets.queries * keys).sum(-1, keepdim=True)  # K·u
        lost = torch.einsum("tsd,tsd->ts", along.flatten(2) @ gram, along.flatten(2))
        squares = (squares - (2 - ahead.unit.square().sum(-1)) * lost) * ahead.inverse[:, 0].square()
    found: torch.Tensor = squares.clamp_min(0).sqrt()
    found[targets.own] = torch.linalg.matrix_norm(targets.diagonal(past, heads))
    return found


def _moved(targets: Targets, gram: torch.Tensor, pulled: Float[torch.Tensor, "target source head size"]) -> Pairs:
    """The terms of ‖P·K‖² that contain r, given P′P in blocks of heads and α·r."""
    weights, queries = targets.weights, targets.queries
    if targets.block.turn is None:
        slopes = targets.slopes()[:, 0]
        turned = targets.by_head(targets.block.value.weight @ slopes.mT, 1)  # Wv_h·g_h' [target, head, size, other head]
        mixed = torch.einsum("thagb,thag->thgb", gram, turned).flatten(2)
        form = gram * (slopes @ slopes.mT)[:, :, None, :, None]
        inner = torch.baddbmm(2 * (weights @ mixed), pulled.flatten(2), form.flatten(3).flatten(1, 2))
        return torch.einsum("tsd,tsd->ts", inner, pulled.flatten(2))
    _, values, keys = targets.block.meeting
    found = weights.new_zeros(weights.shape[:2])
    for head in range(weights.shape[-1]):  # h'
        query = queries[:, :, head]
        turned = torch.einsum("tsb,hab->tsha", query, values[:, :, head])
        angles = (torch.einsum("tsb,hab->tsha", query, keys[:, :, head]) * queries).sum(-1, keepdim=True)
        inner = (pulled[:, :, head] @ gram[:, :, :, head].flatten(1, 2).mT).view(pulled.shape)  # (P′P)_hh'·r_h'
        found += (inner * (2 * weights[..., None] * turned + angles * pulled)).sum((-1, -2))
    return found


def _spectral(targets: Targets) -> Pairs:
    past, heads = targets.after()
    inner = targets.through()
    jacobians = heads[:, None] @ (inner if targets.block.ahead is None else targets.block.ahead(inner))
    jacobians[targets.own] = targets.diagonal(past, heads)
    largest: torch.Tensor = torch.linalg.svdvals(jacobians)[..., 0]
    return largest


def _sum(targets: Targets) -> Pairs:
    """The norm of 1′J, the gradient of the sum of the target's features."""
    block, weights = targets.block, targets.weights
    past, heads = targets.sums()
    heads = targets.by_head(heads, 1)
    still = torch.einsum("tha,had->thd", heads, targets.by_head(block.value.weight, 0))
    turn = weights * torch.einsum("tsha,tha->tsh", targets.rest, heads)
    if block.turn is None:
        rows = weights @ still + turn @ targets.slopes()[:, 0]
    else:
        rows = weights @ still + (turn[..., None] * targets.queries).flatten(2) @ block.key.weight
    rows[targets.own] += torch.einsum("tha,thab,hbd->td", heads, targets.covariances(), targets.by_head(block.query.weight, 0))
    rows = rows if block.ahead is None else block.ahead(rows[:, :, None])[:, :, 0]
    rows[targets.own] += past
    lengths: torch.Tensor = torch.linalg.vector_norm(rows, dim=-1)
    return lengths


def _mean(targets: Targets) -> Pairs:
    return _sum(targets) / targets.block.output.shape[-1]
