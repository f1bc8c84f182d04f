"""Tiny models of every known kind of block, and their Jacobians by autograd: one gradient per number of a layer's
output.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch.overrides import TorchFunctionMode
from transformers import PreTrainedModel

from headscope.models.capture import implementation
from headscope.models.model import Model
from headscope.models.sites import find_sites
from helpers.architectures import DECODERS, ENCODER_DECODERS, ENCODERS, VOCAB, build

# More known blocks: for each name an architecture and its options.
VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "gpt2-wide": ("gpt2", {"n_inner": 40, "activation_function": "relu"}),
    "opt-post": ("opt", {"do_layer_norm_before": False}),
    "gpt_neox-serial": ("gpt_neox", {"use_parallel_residual": False, "rope_parameters": {"rope_type": "default", "rope_theta": 20.0}}),
    "llama-heads": ("llama", {"head_dim": 6, "attention_bias": True, "mlp_bias": True, "num_key_value_heads": 1}),
    "starcoder2": ("starcoder2", DECODERS["llama"]),
    "roberta-prelayernorm": ("roberta-prelayernorm", ENCODERS["bert"]),
    "pegasus": ("pegasus", ENCODER_DECODERS["bart"]),
    "blenderbot": ("blenderbot", ENCODER_DECODERS["bart"]),
    "biogpt": ("biogpt", ENCODERS["bert"]),
}


def wrap(network: PreTrainedModel) -> Model:
    """A model without a tokenizer, for inputs of token ids."""
    return Model("tiny", network, None, *find_sites(network))  # type: ignore[arg-type]


def tiny(name: str) -> Model:
    """A tiny model in float64 whose normalisations have random weights and biases. With weights of 1, the features of a
    token would sum to a constant.
    """
    architecture, options = VARIANTS.get(name, (name, {}))
    network = build(architecture, **options).double()
    torch.manual_seed(3)
    for parameter in network.parameters():
        if parameter.dim() == 1:
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return wrap(network)


def text(model: Model, tokens: int, width: int) -> dict[str, torch.Tensor]:
    """An input of random tokens, padded on the right to `width`."""
    torch.manual_seed(tokens)
    mask = (torch.arange(width) < tokens).long()[None]
    ids = torch.randint(4, VOCAB, (1, width))
    inputs = {"input_ids": ids * mask + (model.network.config.pad_token_id or 0) * (1 - mask), "attention_mask": mask}
    if model.encoder_decoder:
        inputs["decoder_input_ids"] = ids[:, :1]
    return inputs


class Wide(TorchFunctionMode):
    """Keep float64 throughout a model: many models convert states to float32 before they normalise them."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        if func is torch.Tensor.to and args[0].dtype == torch.float64 and torch.float32 in args[1:]:
            return args[0]
        if func is torch.nn.functional.softmax and args[0].dtype == torch.float64:
            kwargs.pop("dtype", None)
        return func(*args, **kwargs)


@dataclass
class Jacobians:
    """Jacobians [layer, target, out, source, in]: `layer` of each layer, `start` of all layers up to it. They are
    computed from the inputs (`given`) and outputs (`made`) of the layers.
    """

    given: list[torch.Tensor]
    made: list[torch.Tensor]

    @cached_property
    def layer(self) -> np.ndarray:
        return np.stack([self.of(out, source) for source, out in zip(self.given, self.made, strict=True)])

    @cached_property
    def start(self) -> np.ndarray:
        return np.stack([self.of(out, self.given[0]) for out in self.made])

    @staticmethod
    def of(out: torch.Tensor, source: torch.Tensor) -> np.ndarray:
        rows = [torch.autograd.grad(number, source, retain_graph=True)[0][0] for number in out.flatten()]
        return torch.stack(rows).reshape(*out.shape[1:], *source.shape[1:]).numpy()

    @staticmethod
    def norms(jacobians: np.ndarray, norm: str) -> np.ndarray:
        pairs = jacobians.transpose(0, 3, 1, 2, 4)  # [layer, source, target, out, in]
        if norm == "frobenius":
            return np.asarray(np.sqrt((pairs**2).sum((-1, -2))))
        if norm == "spectral":
            return np.asarray(np.linalg.norm(pairs, 2, axis=(-2, -1)))
        return np.asarray(np.linalg.norm(pairs.sum(-2), axis=-1)) / (pairs.shape[-1] if norm == "mean" else 1)


def autograd(network: PreTrainedModel, inputs: dict[str, torch.Tensor]) -> Jacobians:
    """The Jacobians of a network, computed with torch and transformers alone. The first list of modules in the network
    is its layers. Each number of an output has a separate backward pass.
    """
    layers = next(module for module in network.modules() if isinstance(module, torch.nn.ModuleList))
    given: list[torch.Tensor] = []
    made: list[torch.Tensor] = []

    def before(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        states = args[0] if args else kwargs["hidden_states"]
        given.append(states if given else states.detach().requires_grad_())
        return ((given[-1], *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": given[-1]})

    def after(module: torch.nn.Module, args: tuple[Any, ...], out: Any) -> None:
        made.append(out[0] if isinstance(out, tuple) else out)

    hooks = [
        hook for layer in layers for hook in (layer.register_forward_pre_hook(before, with_kwargs=True), layer.register_forward_hook(after))
    ]
    with implementation(network, "eager"):
        network(**inputs, use_cache=False)
    for hook in hooks:
        hook.remove()
    return Jacobians(given, made)
