"""Where a model attends: found by a dry run, never read off a configuration."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

import torch

from headscope.core.heads import Kind, Site
from headscope.errors import ModelError
from headscope.models import capture

if TYPE_CHECKING:
    from transformers import PreTrainedModel

Capture = Literal["interface", "outputs"]

# Different lengths on the two sides tell cross attention (3 rows, 5 columns) from self attention.
SOURCE, TARGET = 5, 3


def dry_inputs(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    """A few harmless token ids, on both sides for an encoder-decoder."""
    device = next(model.parameters()).device
    inputs = {
        "input_ids": torch.arange(SOURCE, device=device)[None] + 1,
        "attention_mask": torch.ones(1, SOURCE, dtype=torch.long, device=device),
    }
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = torch.arange(TARGET, device=device)[None] + 1
    return inputs


def find_sites(model: PreTrainedModel) -> tuple[tuple[Site, ...], Capture]:
    """The model's attention sites in the order they are called, and how their maps are captured."""
    inputs = dry_inputs(model)
    try:
        calls = capture.observe(model, inputs) if _follows_interface(model) else []
        if calls:
            return _from_calls(model, calls), "interface"
        outputs = capture.from_outputs(model, inputs)
    except ModelError:
        raise
    except Exception as error:
        raise ModelError(
            f"{type(model).__name__} failed on a dry run over {SOURCE} tokens ({type(error).__name__}: {error})",
            "headscope reads text models: encoders, decoders and encoder-decoders",
        ) from error
    if not outputs:
        raise ModelError(
            f"{type(model).__name__} yields no attention, neither through transformers' attention interface nor as an output",
            "Choose a model whose layers attend; state-space and convolutional models have no heads to look at",
        )
    return _from_outputs(model, outputs), "outputs"


def _follows_interface(model: PreTrainedModel) -> bool:
    return bool(model._can_set_attn_implementation())


def _kind(model: PreTrainedModel, maps: torch.Tensor) -> Kind:
    """Cross if rows and columns differ; otherwise a decoder's maps are zero above the diagonal."""
    rows, columns = maps.shape[-2:]
    if rows != columns:
        return "cross"
    if model.config.is_encoder_decoder:
        return "encoder" if rows == SOURCE else "decoder"
    return "decoder" if not maps.triu(1).any() else "encoder"


def _from_calls(model: PreTrainedModel, calls: list[capture.Call]) -> tuple[Site, ...]:
    paths = {id(module): name for name, module in model.named_modules()}
    kinds = [_kind(model, call.weights) for call in calls]
    count: Counter[Kind] = Counter()
    layers = []
    for kind in kinds:
        layers.append(count[kind])
        count[kind] += 1
    # A hybrid model attends in some layers only; its modules know their true numbers. ALBERT's and others' do not.
    for kind in set(kinds):
        own = [int(getattr(call.module, "layer_idx", None) or 0) for call, k in zip(calls, kinds, strict=True) if k == kind]
        if sorted(set(own)) == own:
            numbers = iter(own)
            layers = [next(numbers) if k == kind else layer for layer, k in zip(layers, kinds, strict=True)]
    return tuple(
        Site(kind, layer, call.weights.shape[1], call.kv_heads, paths[id(call.module)])
        for call, kind, layer in zip(calls, kinds, layers, strict=True)
    )


def _from_outputs(model: PreTrainedModel, outputs: Mapping[str, tuple[torch.Tensor, ...]]) -> tuple[Site, ...]:
    return tuple(
        Site(_kind(model, maps), layer, maps.shape[1], maps.shape[1], f"{name}[{layer}]")
        for name, group in outputs.items()
        for layer, maps in enumerate(group)
    )
