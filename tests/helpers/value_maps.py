"""Plain implementations of norm maps and value zeroing: loops over pairs of tokens, with modules found by name."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from transformers.pytorch_utils import Conv1D

from headscope.models.capture import implementation
from headscope.models.model import Model
from headscope.models.sites import find_sites
from helpers.architectures import VOCAB, build

# The value and output projections of a layer's attention, by their paths in the layer.
PARTS = {
    "bert": ("attention.self.value", "attention.output.dense"),
    "roberta": ("attention.self.value", "attention.output.dense"),
    "mpnet": ("attention.attn.v", "attention.attn.o"),
    "deberta-v2": ("attention.self.value_proj", "attention.output.dense"),
    "distilbert": ("attention.v_lin", "attention.out_lin"),
    "gpt2": ("attn.c_attn", "attn.c_proj"),
    "llama": ("self_attn.v_proj", "self_attn.o_proj"),
    "t5": ("layer.0.SelfAttention.v", "layer.0.SelfAttention.o"),
    "bart": ("self_attn.v_proj", "self_attn.out_proj"),
}


def tiny(name: str) -> Model:
    """A tiny model in float64 whose biases are not zero."""
    network = build(name).double()
    torch.manual_seed(5)
    for parameter in network.parameters():
        if parameter.dim() == 1:
            parameter.add_(torch.randn_like(parameter) * 0.3)
    return Model("tiny", network, None, *find_sites(network))  # type: ignore[arg-type]


def text(model: Model, tokens: int = 6) -> dict[str, torch.Tensor]:
    torch.manual_seed(tokens)
    ids = torch.randint(4, VOCAB, (1, tokens))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    target = {"decoder_input_ids": ids[:, :2], "decoder_attention_mask": torch.ones_like(ids[:, :2])}
    return {**inputs, **target} if model.encoder_decoder else inputs


def plain_norms(model: Model, name: str, inputs: dict[str, torch.Tensor]) -> np.ndarray:
    """‖α·f(x)‖ [layer, head, source, target] by loops over pairs. The last head stands for the sum of all heads."""
    network = model.network.encoder if name in ("t5", "bart") else model.network
    layers = next(module for module in network.modules() if isinstance(module, torch.nn.ModuleList))
    given: list[torch.Tensor] = []
    modules: list[list[Any]] = [[layer.get_submodule(path) for path in PARTS[name]] for layer in layers]
    hooks = [value.register_forward_hook(lambda module, args, out: given.append(args[0][0])) for value, _ in modules]
    with implementation(model.network, "eager"), torch.no_grad():
        out = model.network(**inputs, output_attentions=True, use_cache=False)
    for hook in hooks:
        hook.remove()
    maps = out.encoder_attentions if model.encoder_decoder else out.attentions
    each, every = [], []
    for x, weights, (value, projection) in zip(given, maps, modules, strict=True):
        alpha, n, heads = weights[0].numpy(), len(x), weights.shape[1]
        into = value.weight.numpy() if isinstance(value, Conv1D) else value.weight.numpy().T
        bias = np.zeros(into.shape[1]) if value.bias is None else value.bias.numpy()
        back = projection.weight.numpy() if isinstance(projection, Conv1D) else projection.weight.numpy().T
        size = back.shape[0] // heads
        into, bias = into[:, -(into.shape[1] if name != "gpt2" else 16) :], bias[-(len(bias) if name != "gpt2" else 16) :]
        groups = heads * size // into.shape[1]  # how many heads share values
        one, total = np.zeros((heads, n, n)), np.zeros((n, n))
        for i, j in np.ndindex(n, n):
            carried = np.zeros(back.shape[1])
            for head in range(heads):
                own = slice(head // groups * size, (head // groups + 1) * size)
                vector = (x[i].numpy() @ into[:, own] + bias[own]) @ back[head * size : (head + 1) * size]
                one[head, i, j] = np.linalg.norm(alpha[head, j, i] * vector)
                carried += alpha[head, j, i] * vector
            total[i, j] = np.linalg.norm(carried)
        each.append(one)
        every.append(total[None])
    return np.concatenate([np.stack(each), np.stack(every)], 1)


def plain_turns(model: Model, name: str, inputs: dict[str, torch.Tensor]) -> np.ndarray:
    """Value zeroing, [layer, query, key]: 1 − cos between the outputs of a layer with and without the value of a token.
    Rows are scaled to sum to 1.

    For each layer and token there is a whole pass of the model, in which the output of the value projection at that
    token is zero.
    """
    network = model.network.encoder if name in ("t5", "bart") else model.network
    layers = next(module for module in network.modules() if isinstance(module, torch.nn.ModuleList))
    given: list[torch.Tensor] = []

    def outputs() -> torch.Tensor:
        given.clear()
        with implementation(model.network, "eager"), torch.no_grad():
            model.network(**inputs, use_cache=False)
        return torch.stack(given)

    def note(module: torch.nn.Module, args: Any, out: Any) -> None:
        given.append((out[0] if isinstance(out, tuple) else out)[0])

    hooks = [layer.register_forward_hook(note) for layer in layers]
    usual = outputs().numpy()
    maps = np.zeros((len(layers), usual.shape[1], usual.shape[1]))
    for number, layer in enumerate(layers):
        for key in range(usual.shape[1]):

            def zero(module: torch.nn.Module, args: Any, out: torch.Tensor, key: int = key) -> torch.Tensor:
                out = out.clone()
                out[:, key, -16 if name == "gpt2" else 0 :] = 0  # GPT-2 has queries, keys and values in one projection: the values are last
                return out

            hook = layer.get_submodule(PARTS[name][0]).register_forward_hook(zero)
            changed = outputs().numpy()[number]
            hook.remove()
            for query in range(len(changed)):
                one, other = usual[number, query], changed[query]
                maps[number, query, key] = 1 - one @ other / np.linalg.norm(one) / np.linalg.norm(other)
    for hook in hooks:
        hook.remove()
    shares: np.ndarray = maps / maps.sum(-1, keepdims=True)
    return shares
