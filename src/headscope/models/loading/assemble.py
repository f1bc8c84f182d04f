"""The last steps of loading any model: checks in memory, and finding its attention sites."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from headscope.encoding.tokenizer import Tokenizer
from headscope.errors import ModelError
from headscope.models.folder import check_finite
from headscope.models.loading.quantised import quantisation
from headscope.models.loading.quiet import quietly
from headscope.models.loading.random import randomise
from headscope.models.loading.tokenizers import check_tokenizer
from headscope.models.model import Model
from headscope.models.predictions import Objective
from headscope.models.prune import cut_again
from headscope.models.sites import find_sites

if TYPE_CHECKING:
    from transformers import PreTrainedModel

DTYPES = {"float32": torch.float32, "float16": torch.float16, "bfloat16": torch.bfloat16}


def check_network(name: str, network: PreTrainedModel, tokenizer: Any, remedy: str) -> None:
    """Refuse weights that are not in memory, on several devices, not finite, or of an unsupported type, and a tokenizer
    that does not belong to them. `remedy` says how to give the right tokenizer.
    """
    if any(tensor.is_meta for tensor in network.parameters()):
        raise ModelError(
            f"some weights of {name} are not in the memory of a device (they are offloaded, or were never loaded)",
            "Load the model whole, in a smaller dtype if need be",
        )
    if len(devices := sorted({str(tensor.device) for tensor in network.parameters()})) > 1:
        raise ModelError(
            f"the weights of {name} are on {len(devices)} devices ({', '.join(devices)}), and headscope reads models on one",
            f"Load it onto one, as in device={devices[-1]!r}, in a smaller dtype if need be",
        )
    check_tokenizer(name, tokenizer, network, remedy)
    check_finite(name, network)
    dtype = str(next(network.parameters()).dtype).removeprefix("torch.")
    if dtype not in DTYPES:
        raise ModelError(f"{name} has weights of the type {dtype}", f"Convert it to {', '.join(DTYPES)}, as in model.float()")


def redraw(name: str, network: PreTrainedModel, seed: int | None) -> None:
    """Redraw the weights by this seed; do nothing if it is None."""
    if seed is None:
        return
    if (kind := quantisation(network)) is not None:
        raise ModelError(f"{name} is quantised ({kind}), so its weights cannot be redrawn", "Use the unquantised model")
    randomise(network, seed)


def assemble(
    name: str,
    network: PreTrainedModel,
    tokenizer: Any,
    objective: Objective | None,
    origin: Mapping[str, str],
    pruned: dict[str, Any] | None = None,
) -> Model:
    """The model with its attention sites; `objective` is None for a model that is not used for predictions."""
    body = network.base_model
    with quietly():
        sites, capture = find_sites(body)
    pruning = None if pruned is None else cut_again(body, sites, pruned)
    left = sites if pruning is None else pruning.left()
    kind = quantisation(network)
    origin = {**origin, **({"quantisation": kind} if kind is not None else {})}
    return Model(name, body, Tokenizer(tokenizer), left, capture, network if objective is not None else None, objective, pruning, origin)
