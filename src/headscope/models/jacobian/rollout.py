"""Attention followed through the layers down to the input (Abnar and Zuidema 2020), as if a layer were attention and a
residual alone.

With Â = ½A + ½I, A the mean over heads, as the weights of edges from each token to those of the layer below,

    rollout  the share of input token i in token j of layer n: the sum over all paths from j down to i of the products
             of their weights, Â_n·…·Â_1. All shares in a token sum to 1 (less if a model attends to something other
             than tokens)
    maxflow  the maximum flow from token j of layer n down to input token i, with weights as capacities. It is at most
             1, the capacity of the edges that leave j, and at most the capacity of the edges of the first layer that
             enter i. After a few layers it often equals one of these two
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch

from headscope.errors import MeasureError
from headscope.kernels import kernel

if TYPE_CHECKING:
    from jaxtyping import Float

    Attention = Float[torch.Tensor, "layer source target"]


def edges(attention: Attention) -> Float[torch.Tensor, "layer target source"]:
    """The edge weights Â: half the attention and half the identity, in float64."""
    own = torch.eye(attention.shape[-1], dtype=torch.float64, device=attention.device)
    return (attention.double().mT + own) / 2


def rollout(attention: Attention) -> Attention:
    """The shares of the input tokens in the tokens of each layer."""
    shares = []
    below = torch.eye(attention.shape[-1], dtype=torch.float64, device=attention.device)
    for layer in edges(attention):
        below = layer @ below
        shares.append(below.T)
    return torch.stack(shares)


def maxflow(attention: Attention, longest: int) -> Attention:
    """Maximum flows from the tokens of each layer to the input tokens, to within 1e-12; an error for more than
    `longest` tokens.

    Each pair has a separate graph: time grows with the square of the number of layers and about the fourth power of the
    length.
    """
    length = attention.shape[-1]
    if length > longest:
        raise MeasureError(
            f"the maximum flow between {length} tokens takes too long: the limit is {longest} tokens",
            f"Use rollout instead, or allow it with longest={length}",
        )
    fast = kernel("maxflow_cpu")
    if fast is None:
        raise MeasureError("maximum flows need numba, which is not installed", "Install it with pip install numba")
    return torch.from_numpy(fast.maximum_flows(edges(attention).cpu().numpy()))
