"""Scalar mixes: layers added up with weights that are learned (METHODS §8.1).

h = gamma * sum over layers l of s_l h_l, with s the softmax of one number per layer. A probe that may not see a
layer has no number for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

    Shown = Sequence[tuple[int, ...]]  # for each probe the layers it sees


def cumulative(layers: int) -> Shown:
    """What the probes of cumulative scoring see: layer 0 alone, 0 and 1, and so on to all; `layers` counts layer 0
    in.
    """
    return [tuple(range(last + 1)) for last in range(layers)]


def single(layers: int) -> Shown:
    """What the probes of single layers see."""
    return [(layer,) for layer in range(layers)]


def visible(shown: Shown, layers: int) -> Bool[torch.Tensor, "probe layer"]:
    """Which layers each probe sees."""
    seen = torch.zeros(len(shown), layers, dtype=torch.bool)
    for row, layers_seen in zip(seen, shown, strict=True):
        row[list(layers_seen)] = True
    return seen


def shares(numbers: Float[torch.Tensor, "*probes layer"], seen: Bool[torch.Tensor, "probe layer"]) -> Float[torch.Tensor, "*probes layer"]:
    """s: how much of each layer is in the mix; what a probe does not see is 0."""
    return numbers.masked_fill(~seen, -torch.inf).softmax(-1)


def mixed(
    states: Float[torch.Tensor, "seed layer *shape"],
    numbers: Float[torch.Tensor, "seed probe layer"],
    scale: Float[torch.Tensor, "seed probe"],
    seen: Bool[torch.Tensor, "probe layer"],
) -> Float[torch.Tensor, "seed probe *shape"]:
    """The mixes of all probes, by one product of matrices."""
    weights = shares(numbers, seen) * scale[..., None]
    return (weights @ states.flatten(2)).view(*weights.shape[:2], *states.shape[2:])
