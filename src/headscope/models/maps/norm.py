"""Norms of what heads carry (Kobayashi et al. 2020): ‖α_ij f_h(x_j)‖ with f_h(x) = (x W_V^h + b) W_O^h, rows scaled to
sum to 1.

A norm map is an attention map whose columns are multiplied by the norms of f_h(x_j), so that no vector per pair of
tokens is needed. With W_O^hᵀ = Q R the norm of v W_O^h is that of R v, so that a head needs one small triangular matrix
instead of its output projection.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from transformers.pytorch_utils import Conv1D

from headscope.errors import ModelError
from headscope.models.dry_run import alone, dry_inputs, small_windows
from headscope.models.jacobian.values import output_projections
from headscope.models.maps.base import AttentionMaps
from headscope.models.model import Model

if TYPE_CHECKING:
    from jaxtyping import Float

    from headscope.models.capture import Call

    Triangle = Float[torch.Tensor, "head r d"]


class NormMaps(AttentionMaps):
    """The norm maps of a model. Its output projections are found and verified on a dry run."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self._triangles = verified_triangles(model)
        self.exchange, self.factors = self._exchange, self._lengths

    def _lengths(self, site: int, value: Float[torch.Tensor, "batch kv_head key d"]) -> Float[torch.Tensor, "batch head key"]:
        return lengths(value, self._triangles[site])

    def _exchange(self, site: int, call: Call) -> Call:
        """An attention call with norm maps instead of weights."""
        assert call.value is not None, "a call that a tap saw has values"
        sizes, rows = self._lengths(site, call.value), call.rows

        def again(start: int, stop: int) -> Float[torch.Tensor, "batch head row key"]:
            return reweighted(rows(start, stop), sizes)

        return replace(call, weights=reweighted(call.weights, sizes), rows=again)


def lengths(value: Float[torch.Tensor, "batch kv_head key d"], triangle: Triangle) -> Float[torch.Tensor, "batch head key"]:
    """‖f_h(x_j)‖ for each head and key. Query head h reads key-value head ⌊h / group⌋."""
    grouped = triangle.reshape(value.shape[1], -1, *triangle.shape[1:]).to(torch.promote_types(value.dtype, torch.float32))
    vectors = torch.einsum("bgkd,ghrd->bghkr", value.to(grouped.dtype), grouped)
    sizes: torch.Tensor = torch.linalg.vector_norm(vectors, dim=-1)
    return sizes.flatten(1, 2)


def reweighted(
    weights: Float[torch.Tensor, "batch head row key"], sizes: Float[torch.Tensor, "batch head key"]
) -> Float[torch.Tensor, "batch head row key"]:
    """Weights times a number per key, each row scaled to sum to 1. A row without any weight stays 0."""
    products = weights.to(sizes.dtype) * sizes[:, :, None]
    sums = products.sum(-1, keepdim=True)
    # An infinite number would leave the rest of its row finite. The whole row becomes NaN, which is detected.
    return products / torch.where(torch.isfinite(sums), sums, torch.nan).clamp_min(torch.finfo(sums.dtype).tiny)


def verified_triangles(model: Model) -> tuple[Triangle, ...]:
    """For each site the triangular matrices R of its heads; an error unless the weighted values, multiplied by the
    output projection and summed over keys and heads, equal the output of that projection on a dry run, to 1e-5 in
    float32.
    """
    if model.capture != "interface":
        raise _refused(model, "its attention is read from its outputs, which do not include its values")
    model.require_plain_weights("norm maps")
    every = frozenset(range(len(model.sites)))
    with small_windows(model.network):
        inputs = alone(dry_inputs(model.network), 0)
        found = output_projections(model, inputs, every, lambda projection, weights, _: _triangle(projection, len(weights)))
    for site, triangle in zip(model.sites, found, strict=False):
        if (empty := (triangle == 0).flatten(1).all(1)).any():
            head = int(empty.nonzero()[0]) + 1
            raise _refused(model, f"head {head} of {site.name} writes nothing, so that its norms are all 0")
    if len(found) < len(every):
        site = model.sites[len(found)]
        raise _refused(model, f"no linear map reads the outputs of the heads of {site.name} and returns their sum")
    return tuple(found)


def _triangle(projection: torch.nn.Linear | Conv1D, heads: int) -> Triangle:
    """R of each head's part of an output projection."""
    weight: torch.Tensor = projection.weight.detach()
    whole = (weight.T if isinstance(projection, Conv1D) else weight).double()  # [feature, head and d]
    triangle: torch.Tensor = torch.linalg.qr(whole.reshape(len(whole), heads, -1).transpose(0, 1), mode="r").R
    return triangle.to(torch.promote_types(weight.dtype, torch.float32))


def _refused(model: Model, why: str) -> ModelError:
    return ModelError(f"{type(model.network).__name__} has no norm maps that can be verified: {why}", "Use --map weights")
