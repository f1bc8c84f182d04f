"""Descriptions of a model in words, from its configuration and its modules: windows, positions, and what it
predicts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import torch

from headscope.errors import ModelError
from headscope.models.objectives import objective_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from headscope.models.model import Model

# A setting, and the type of its layers.
_WINDOWS = {"sliding_window": "sliding", "local_attention": "sliding", "attention_chunk_size": "chunked"}
_POSITIONS = re.compile(r"position|(^|\.)wpe$|pos_emb")
_ALIBI = ("bloom", "mpt")  # these always use it, and no setting says so
PREDICTIONS = {
    "masked": "masked words (masked LM)",
    "causal": "the next word (causal LM)",
    "classes": "classes of texts (classifier)",
    "tags": "tags of words (tagger)",
}


def window(network: PreTrainedModel) -> str:
    """The attention window and its layers, if it is smaller than the whole text."""
    config: Any = network.config.get_text_config()
    types = getattr(config, "layer_types", None) or ()
    for name, kind in _WINDOWS.items():
        size = getattr(config, name, None)
        layers = sum(kind in str(type_) for type_ in types)
        if isinstance(size, int) and size > 0 and getattr(config, "use_sliding_window", True) and (layers or not types):
            return f"{size:,} tokens in {f'{layers} of {len(types)}' if types else 'all'} layers"
    return "none: every layer can see the whole text"


def positions(network: PreTrainedModel) -> str:
    """The way a model encodes the positions of tokens."""
    config: Any = network.config.get_text_config()
    rope = getattr(config, "rope_parameters", None)
    if isinstance(rope, Mapping) and rope:
        kinds = [kind for kind in rope.values() if isinstance(kind, Mapping)] or [rope]  # there may be one for each type of layer
        bases = sorted({float(kind["rope_theta"]) for kind in kinds if kind.get("rope_theta")})
        scaled = sorted({str(kind["rope_type"]) for kind in kinds if kind.get("rope_type", "default") != "default"})
        base = f", base {' and '.join(f'{number:,.0f}' for number in bases)}" if bases else ""
        return f"rotary (RoPE){base}" + (f", scaled by {', '.join(scaled)}" if scaled else "")
    if getattr(config, "alibi", False) or config.model_type in _ALIBI:
        return "biases by distance (ALiBi)"
    if (buckets := getattr(config, "relative_attention_num_buckets", None)) is not None:
        return f"learned biases by distance, {buckets} buckets"
    if getattr(config, "relative_attention", False):
        return "relative: scores of content and of distance"
    if str(getattr(config, "position_embedding_type", None)).startswith("relative"):
        return "learned, relative"
    for name, module in network.named_modules():
        if isinstance(module, torch.nn.Embedding) and _POSITIONS.search(name):
            return "sinusoidal" if "Sinusoidal" in type(module).__name__ else "learned, absolute"
    return "not stated in its configuration"


def predicts(model: Model) -> str:
    """What a model can predict, by the class that it was loaded or saved as."""
    try:
        objective = model.objective or objective_of(model.name, model.network.config)[1]
    except ModelError:
        return "nothing: it was saved without a head, so that there are no gradients of a loss"
    said = PREDICTIONS[objective]
    return f"{said}, given a source" if model.encoder_decoder and objective == "causal" else said
