"""A control for the effect of training: a model with its trained embeddings and all other weights drawn at random."""

from __future__ import annotations

import zlib
from copy import deepcopy
from dataclasses import replace

import torch
from torch import nn

from headscope.models.model import Model


def untrained(model: Model, seed: int = 0) -> Model:
    """A copy of a model with all weights except the embeddings redrawn."""
    whole = deepcopy(model.whole or model.network)
    randomise(whole, seed)
    return replace(model, network=whole.base_model, whole=None if model.whole is None else whole)


def randomise(network: nn.Module, seed: int = 0) -> None:
    """Redraw all weights except the embeddings, as in the control of Clark et al.: matrices from a normal distribution
    with the standard deviation of the model's initialisation, truncated at two standard deviations; biases 0; scales of
    normalisation layers 1.

    The embeddings (words, positions, segments and their normalisation) are kept. Each parameter is drawn from its name
    and the seed, so the order of parameters has no effect.
    """
    deviation = float(getattr(network.config, "initializer_range", None) or 0.02)
    body = f"{getattr(network, 'base_model_prefix', '')}."  # so that the body is the same with and without a head
    # T5 stores its learned position biases in an embedding module inside attention. It does not embed the text.
    kept = {
        id(parameter)
        for name, module in network.named_modules()
        if isinstance(module, nn.Embedding) and "bias" not in name
        for parameter in module.parameters()
    }
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if id(parameter) in kept or "embed" in name.lower():
                continue
            name = name.removeprefix(body)
            if parameter.dim() > 1:
                generator = torch.Generator().manual_seed(zlib.crc32(f"{seed}/{name}".encode()))
                drawn = torch.empty(parameter.shape, dtype=torch.float32)
                nn.init.trunc_normal_(drawn, 0.0, deviation, -2 * deviation, 2 * deviation, generator)
                parameter.copy_(drawn)
            else:
                parameter.fill_(0.0 if name.endswith("bias") else 1.0)
        for module in network.modules():
            _neutral(module)


def _neutral(module: nn.Module) -> None:
    """Set the weight of a normalisation layer to 0 instead of 1 if the layer multiplies by 1 + weight, as in Gemma."""
    weight = getattr(module, "weight", None)
    if (
        "norm" not in type(module).__name__.lower()
        or not isinstance(weight, nn.Parameter)
        or weight.dim() != 1
        or not bool((weight == 1).all())
    ):
        return
    probe = torch.ones(1, len(weight), dtype=weight.dtype, device=weight.device)
    probe[:, ::2] = -1  # mean 0 and mean square 1: a neutral layer does not change it
    if float(module(probe).abs().mean()) > 1.5:
        weight.fill_(0.0)
