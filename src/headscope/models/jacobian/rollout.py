"""Attention followed through the layers down to the input (Abnar and Zuidema 2020), as if a layer were attention and a
residual alone.

With Â = ½A + ½I, A the mean over heads, as the weights of edges from each token to those of the layer below,

    rollout  the share of input token i in token j of layer n: the sum over all paths from j down to i of the products
             of their weights, Â_n·…·Â_1. All shares in a token sum to 1 (less where a model attends to something that
             is no token)
    maxflow  the most that can flow from token j of layer n down to input token i if weights are capacities. It is at
             most 1, which is what leaves j, and at most what enters i from the first layer: after a few layers it
             often is one of these two
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
    """Half the attention and half the token itself, in float64."""
    own = torch.eye(attention.shape[-1], dtype=torch.float64, device=attention.device)
    return (attention.double().mT + own) / 2


def rollout(attention: Attention) -> Attention:
    """Shares of the input tokens in those of each layer."""
    shares = []
    below = torch.eye(attention.shape[-1], dtype=torch.float64, device=attention.device)
    for layer in edges(attention):
        below = layer @ below
        shares.append(below.T)
    return torch.stack(shares)


def maxflow(attention: Attention, longest: int) -> Attention:
    """Maximum flows from the tokens of each layer to those of the input, to within 1e-12; an error for more than
    `longest` tokens.

    Each pair has a separate graph: time grows with the square of the layers and about the fourth power of the length.
    """
    length = attention.shape[-1]
    if length > longest:
        raise MeasureError(
            f"the maximum flow between {length} tokens takes long for more than {longest}",
            f"Ask for rollout instead, or allow it with longest={length}",
        )
    fast = kernel("maxflow_cpu")
    if fast is None:
        raise MeasureError("maximum flows are found by loops that numba compiles, and it is not there", "Install it with pip install numba")
    return torch.from_numpy(fast.maximum_flows(edges(attention).cpu().numpy(), torch.get_num_threads()))
