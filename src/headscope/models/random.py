"""The control that shows what an architecture does before training: embeddings as trained, everything else drawn at random."""

from __future__ import annotations

import zlib

import torch
from torch import nn


def randomise(network: nn.Module, seed: int = 0) -> None:
    """Redraw all weights but the embeddings, as Clark et al.'s control does: matrices from a normal distribution with the standard
    deviation of the model's own initialisation, cut at two of them, biases 0, scales of normalisation layers 1.

    Whatever belongs to the embeddings (words, positions, segments and their normalisation) stays as it is. Each parameter
    is drawn from its name and the seed, so that the order of parameters changes nothing.
    """
    deviation = float(getattr(network.config, "initializer_range", None) or 0.02)
    kept = {id(parameter) for module in network.modules() if isinstance(module, nn.Embedding) for parameter in module.parameters()}
    with torch.no_grad():
        for name, parameter in network.named_parameters():
            if id(parameter) in kept or "embed" in name.lower():
                continue
            if parameter.dim() > 1:
                generator = torch.Generator().manual_seed(zlib.crc32(f"{seed}/{name}".encode()))
                drawn = torch.empty(parameter.shape, dtype=torch.float32)
                nn.init.trunc_normal_(drawn, 0.0, deviation, -2 * deviation, 2 * deviation, generator)
                parameter.copy_(drawn)
            else:
                parameter.fill_(0.0 if name.endswith("bias") else 1.0)
