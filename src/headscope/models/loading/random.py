"""The control that shows what an architecture does before training: embeddings as trained, everything else drawn at
random.
"""

from __future__ import annotations

import zlib
from copy import deepcopy
from dataclasses import replace

import torch
from torch import nn

from headscope.models.model import Model


def untrained(model: Model, seed: int = 0) -> Model:
    """A copy of a model with all weights but the embeddings redrawn."""
    whole = deepcopy(model.whole or model.network)
    randomise(whole, seed)
    return replace(model, network=whole.base_model, whole=None if model.whole is None else whole)


def randomise(network: nn.Module, seed: int = 0) -> None:
    """Redraw all weights but the embeddings, as Clark et al.'s control does: matrices from a normal distribution with
    the standard deviation of the model's own initialisation, cut at two of them, biases 0, scales of normalisation
    layers 1.

    Whatever belongs to the embeddings (words, positions, segments and their normalisation) stays as it is. Each
    parameter is drawn from its name and the seed, so that the order of parameters changes nothing.
    """
    deviation = float(getattr(network.config, "initializer_range", None) or 0.02)
    body = f"{getattr(network, 'base_model_prefix', '')}."  # a model drawn with its head has the same body as without
    # T5 keeps its learned preference for distances in an embedding inside attention: that is no embedding of the text.
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
    """Set the scale of a normalisation layer that multiplies by one more than its weight, as Gemma's do, to 0
    instead of 1.
    """
    weight = getattr(module, "weight", None)
    if (
        "norm" not in type(module).__name__.lower()
        or not isinstance(weight, nn.Parameter)
        or weight.dim() != 1
        or not bool((weight == 1).all())
    ):
        return
    probe = torch.ones(1, len(weight), dtype=weight.dtype, device=weight.device)
    probe[:, ::2] = -1  # of mean 0 and mean square 1: what a neutral layer leaves as it is
    if float(module(probe).abs().mean()) > 1.5:
        weight.fill_(0.0)
