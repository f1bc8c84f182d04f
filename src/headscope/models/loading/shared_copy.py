"""A copy of a model that shares its weights. While headscope reads a model, it changes only the copy."""

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
    """A copy of a model in evaluation mode and without gradients. The copy has separate modules and a separate
    configuration, but its weights are those of the model, in the same memory. Only the weights of `changed` modules are
    copied.

    Neither an error nor Ctrl-C can therefore leave the model in a changed state. Hooks that the user set stay active in
    the copy.
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
    """A parameter without gradient in the memory of the given one. Other types of parameters, such as quantised ones,
    could lose attributes and are returned unchanged; they have no gradient.
    """
    return torch.nn.Parameter(parameter.detach(), requires_grad=False) if type(parameter) is torch.nn.Parameter else parameter
