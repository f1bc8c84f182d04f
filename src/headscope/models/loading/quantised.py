"""Quantised models: which can be read, how signatures describe them, and the plain tensors that store them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import torch

from headscope.errors import ModelError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

READ = {"torchao": "pip install 'headscope[quantised]'", "bitsandbytes": "pip install bitsandbytes"}


def require_readable(name: str, config: Mapping[str, Any]) -> None:
    """Refuse a configuration of quantised weights that cannot be read here."""
    settings = config.get("quantization_config") or config.get("compression_config")
    if not settings:
        return
    method = str(settings.get("quant_method", "an unknown method") if isinstance(settings, dict) else "an unknown method")[:40]
    if method not in READ:
        raise ModelError(
            f"{name} is quantised by {method}, which headscope does not read",
            f"Use the unquantised model, or one quantised by {' or '.join(READ)}",
        )
    if method == "bitsandbytes" and not torch.cuda.is_available():
        raise ModelError(f"{name} is quantised by bitsandbytes, which needs CUDA, and CUDA is not available", "Use the unquantised model")
    if find_spec(method) is None:
        raise ModelError(f"{name} is quantised by {method}, which is not installed", READ[method])


def quantisation(network: PreTrainedModel) -> str | None:
    """The quantisation of a model's weights in memory, as in `torchao-Int8WeightOnlyConfig`; None if they are plain
    floating-point numbers.
    """
    kinds = {type(tensor).__name__ for tensor in network.parameters() if not is_plain(tensor)}
    if not kinds:
        return None
    settings = getattr(network.config, "quantization_config", None)
    method = _method(settings)
    if method is None:
        return "+".join(sorted(kinds))
    return "-".join([method, *_scheme(settings)])


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether a weight is a tensor of floating-point numbers, and not quantised."""
    return type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.dtype.is_floating_point and tensor.dtype.itemsize > 1


def pieces(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """The plain tensors that a weight is stored as: the weight itself, or the numbers and scales of a quantised one."""
    if not hasattr(tensor, "__tensor_flatten__"):
        yield tensor
        return
    for name in tensor.__tensor_flatten__()[0]:
        yield from pieces(getattr(tensor, name))


def _method(settings: Any) -> str | None:
    method = settings.get("quant_method") if isinstance(settings, dict) else getattr(settings, "quant_method", None)
    return None if method is None else str(getattr(method, "value", method))


def _scheme(settings: Any) -> list[str]:
    """The scheme within a method, as far as the configuration names it: int8, int4, nf4."""
    values = settings if isinstance(settings, dict) else vars(settings)
    if values.get("load_in_8bit") or values.get("_load_in_8bit"):
        return ["int8"]
    if values.get("load_in_4bit") or values.get("_load_in_4bit"):
        return [str(values.get("bnb_4bit_quant_type", "4bit"))]
    kind = values.get("quant_type")
    if isinstance(kind, dict):
        kind = next((str(part["_type"]) for part in kind.values() if isinstance(part, dict) and "_type" in part), None)
    name = kind if isinstance(kind, str) else None if kind is None else type(kind).__name__
    return [] if name is None else [re.sub(r"Config$", "", name)]
