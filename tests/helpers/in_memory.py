"""Maps of models by headscope and by transformers, and the state of a model that headscope must not change."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from headscope.models.model import Model

IDS = torch.arange(5, 29)[None] * 7 % 60


def maps_of(model: Model) -> NDArray[np.float32]:
    """The maps of all layers as headscope captures them, [layer, head, query, key]."""
    maps: list[NDArray[np.float32]] = []
    inputs = {"input_ids": IDS, "attention_mask": torch.ones_like(IDS)}
    model.stream(inputs, lambda index, weights, *_: maps.append(weights[0].float().cpu().numpy()))
    return np.stack(maps)


def eager_maps(network: Any) -> NDArray[np.float32]:
    """The maps that a network loaded with eager attention returns, [layer, head, query, key]."""
    with torch.no_grad():
        returned = network(input_ids=IDS, attention_mask=torch.ones_like(IDS), output_attentions=True)
    return np.stack([maps[0].float().numpy() for maps in returned.attentions])


def state_of(network: Any) -> dict[str, Any]:
    """The state that headscope must not change: types, implementations, modes, hooks, gradients, memory and numbers."""
    modules = dict(network.named_modules())
    return {
        "types": {name: type(module) for name, module in modules.items()},
        "implementations": {name: module.config._attn_implementation for name, module in modules.items() if hasattr(module, "config")},
        "config": str(network.config),
        "training": {name: module.training for name, module in modules.items()},
        "hooks": {
            (name, attribute): list(value.values())
            for name, module in modules.items()
            for attribute, value in vars(module).items()
            if attribute.endswith("_hooks")
        },
        "attributes": {name: sorted(vars(module)) for name, module in modules.items()},
        "tensors": {
            name: (id(tensor), tensor.requires_grad, tensor.dtype, tensor.device, tensor.data_ptr(), float(tensor.detach().double().sum()))
            for name, tensor in (*network.named_parameters(), *network.named_buffers())
        },
    }
