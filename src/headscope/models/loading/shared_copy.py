"""A copy of a model that shares its weights: what headscope changes while it reads a model, it changes in the copy."""

from __future__ import annotations

from collections.abc import Collection
from copy import deepcopy
from itertools import chain
from typing import TYPE_CHECKING, Any

import torch

from headscope.errors import ModelError
from headscope.models.loading.quiet import first_line

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def shared_copy(name: str, network: PreTrainedModel, changed: Collection[torch.nn.Module] = ()) -> PreTrainedModel:
    """A copy of a model with separate modules and a separate configuration, in evaluation mode and without gradients,
    whose weights are those of the model, in the same memory. Weights of `changed` modules are copied.

    So neither an error nor Ctrl-C can leave the model in another state than it was in. Hooks that the user set stay
    active in the copy.
    """
    memo: dict[int, Any] = {}
    for parameter in network.parameters():
        memo[id(parameter)] = _shared(parameter)
    for module in network.modules():
        for tensor in chain(module.buffers(recurse=False), (value for value in vars(module).values() if isinstance(value, torch.Tensor))):
            memo[id(tensor)] = tensor
        for hooks in (value for attribute, value in vars(module).items() if attribute.endswith("_hooks") and isinstance(value, dict)):
            memo |= {id(hook): hook for hook in hooks.values()}
    for parameter in (parameter for module in changed for parameter in module.parameters()):
        memo[id(parameter)] = torch.nn.Parameter(parameter.detach().clone(), requires_grad=False)
    try:
        return deepcopy(network, memo).eval()
    except Exception as error:
        raise ModelError(
            f"{name} cannot be copied ({type(error).__name__}: {first_line(error)})",
            "Save it with save_pretrained, and its tokenizer beside it, and name the folder",
        ) from error


def _shared(parameter: torch.nn.Parameter) -> torch.nn.Parameter:
    """The same numbers as a parameter without gradient. What is no plain parameter, such as a quantised one, may lose
    what belongs to it, and stays as it is; it has no gradient.
    """
    return torch.nn.Parameter(parameter.detach(), requires_grad=False) if type(parameter) is torch.nn.Parameter else parameter
