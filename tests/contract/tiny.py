"""Tiny random models of every architecture in the installed transformers that reads tokens, built from its default
configuration.

Sizes are lowered by the names of settings. Windows and numbers of selected tokens are smaller than a text, so that a
lost mask changes the maps. Architectures that need other settings to be small have them in `OWN`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from transformers import MODEL_MAPPING, AutoModel, PreTrainedModel
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from transformers.models.auto.modeling_auto import MODEL_MAPPING_NAMES

VOCAB = 64
LARGEST = 3_000_000  # parameters
WINDOW, CHOSEN = 5, 6

_SIZES: dict[Any, tuple[str, ...]] = {
    32: (
        *("hidden_size", "d_model", "n_embd", "dim", "emb_dim", "embed_dim", "dim_model", "embedding_size", "word_embed_proj_dim"),
        *("model_dim", "d_embed", "width", "max_2d_position_embeddings"),
    ),
    4: (
        *("num_attention_heads", "num_heads", "n_heads", "n_head", "attention_heads", "encoder_attention_heads", "decoder_attention_heads"),
        *("num_encoder_attention_heads", "num_decoder_attention_heads", "num_hidden_layers", "num_layers", "n_layers", "n_layer"),
        *("encoder_layers", "decoder_layers", "num_encoder_layers", "num_decoder_layers", "qk_rope_head_dim", "rotary_dim"),
        *("num_experts", "num_local_experts", "n_routed_experts", "moe_num_experts", "linear_num_value_heads"),
    ),
    2: (
        *("num_key_value_heads", "multi_query_group_num", "num_kv_heads", "kv_n_heads", "swa_num_key_value_heads", "type_vocab_size"),
        *("num_experts_per_tok", "moe_topk", "num_experts_per_token", "moe_k", "linear_num_key_heads", "linear_num_heads"),
        *("zero_expert_num", "eos_token_id"),
    ),
    48: (
        *("intermediate_size", "d_ff", "ffn_dim", "hidden_dim", "encoder_ffn_dim", "decoder_ffn_dim", "n_inner", "dim_ff"),
        *("shared_expert_intermediate_size", "shared_intermediate_size", "ffn_hidden_size", "dense_intermediate_size"),
    ),
    128: ("max_position_embeddings", "n_positions", "n_ctx", "max_seq_len", "max_source_positions", "max_target_positions"),
    8: (
        *("head_dim", "d_kv", "attention_head_size", "swa_head_dim", "v_head_dim", "qk_nope_head_dim", "kv_channels", "global_head_dim"),
        *("mamba_n_heads", "mamba_d_head"),
    ),
    16: (
        *("q_lora_rank", "kv_lora_rank", "hidden_size_per_layer_input", "laurel_rank", "moe_hidden_size", "expert_ffn_hidden_size"),
        *("moe_intermediate_size", "mamba_d_state", "linear_key_head_dim", "linear_value_head_dim", "linear_head_dim", "entity_emb_size"),
        *("pronunciation_embed_dim", "shape_embed_dim", "index_head_dim", "ple_embed_dim", "hc_lowrank", "index_n_heads"),
    ),
    VOCAB: (
        *("vocab_size", "vocab_size_per_layer_input", "entity_vocab_size", "pronunciation_vocab_size", "shape_vocab_size"),
        *("src_vocab_size", "tgt_vocab_size"),
    ),
    1: ("n_group", "topk_group", "bos_token_id", "decoder_start_token_id"),
    0: ("pad_token_id",),
    5: ("coordinate_size",),
    6: ("shape_size",),
}
_WINDOWS = {
    **dict.fromkeys(("sliding_window", "attention_chunk_size", "local_attention", "window_size"), WINDOW),
    "index_topk": CHOSEN,
}
SMALL: dict[str, Any] = {name: size for size, names in _SIZES.items() for name in names}

_ROPE = {"rope_type": "default", "rope_theta": 10000.0}
_MROPE = {**_ROPE, "mrope_section": [1, 1, 2]}
_MIXED = ["sliding_attention", "full_attention"] * 2
_HYBRID = ["linear_attention", "full_attention"] * 2
DEFAULT = object()  # a setting that keeps its default value
OWN: dict[str, dict[str, Any]] = {
    "bamba": {"attn_layer_indices": [1, 3]},
    "big_bird": {"attention_type": "original_full"},
    "bigbird_pegasus": {"attention_type": "original_full"},
    "chameleon": {
        "vocabulary_map": {"<image>": 5},
        "vq_config": {
            **{"embed_dim": 8, "num_embeddings": 8, "latent_channels": 8, "resolution": 16, "base_channels": 32},
            "channel_multiplier": [1],
        },
    },
    "cohere_compass_text": {"layer_types": _MIXED, "rope_parameters": dict.fromkeys(_MIXED, _ROPE)},
    **{name: {"rope_parameters": _MROPE} for name in ("cosmos3_edge_text", "qwen2_5_vl_text", "qwen2_vl_text")},
    **{
        name: {"head_dim": 16, "rope_parameters": {**_MROPE, "partial_rotary_factor": 0.5}}
        for name in ("glm4v_moe_text", "glm4v_text", "glm_image_text", "glm_ocr_text")
    },
    "dots1": {"n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2},
    "esmc": {"num_key_value_heads": DEFAULT},
    "falcon_h1": {"mamba_d_ssm": 64},
    "funnel": {
        **{"architectures": ["FunnelModel"], "block_sizes": [2, 2], "block_repeats": [1, 1], "num_decoder_layers": 1},
        **{"d_head": 8, "d_inner": 48, "num_hidden_layers": DEFAULT, "num_layers": DEFAULT},
    },
    "gemma3n_text": {"layer_types": _MIXED, "num_kv_shared_layers": 0, "activation_sparsity_pattern": [0.0] * 4, "intermediate_size": 48},
    "glm5_next_text": {"index_kpool": 2, "num_key_value_heads": 4, "head_dim": DEFAULT, "qk_rope_head_dim": DEFAULT},
    "gpt_neo": {"attention_types": [[["global", "local"], 2]]},
    **{name: {"layer_types": _HYBRID} for name in ("granitemoehybrid", "kimi_linear", "bailing_hybrid")},
    "hunyuan_vl_text": {"rope_parameters": {**_ROPE, "xdrope_section": [1, 1, 1, 1], "mrope_section": [1, 1, 1, 1]}},
    "jamba": {"attn_layer_period": 2, "attn_layer_offset": 1, "mamba_dt_rank": 4},
    "lfm2_moe": {"layer_types": ["conv", "full_attention"] * 2},
    "lilt": {"hidden_size": 48},
    "mamba2": {"num_heads": 8, "head_dim": 8},
    "mistral4": {"head_dim": 8},
    "reformer": {
        **{"attn_layers": ["local", "lsh"], "axial_pos_shape": [8, 8], "axial_pos_embds_dim": [16, 16], "feed_forward_size": 48},
        **{"num_buckets": 2, "num_hidden_layers": DEFAULT, "local_attn_chunk_length": 8, "lsh_attn_chunk_length": 8},
        "num_attention_heads": 2,
    },
    "xmod": {"languages": ["en_XX"], "default_language": "en_XX"},
    "youtu": {"head_dim": DEFAULT},
    "zamba": {
        **{"num_hidden_layers": 6, "layers_block_type": ["mamba", "mamba", "hybrid", "mamba", "hybrid", "mamba"]},
        **{"attention_hidden_size": 64, "attention_head_dim": 16, "mamba_dt_rank": 4},
    },
    "zamba2": {
        **{"layers_block_type": ["mamba", "hybrid"] * 2, "n_mamba_heads": 4, "mamba_headdim": 16, "num_query_groups": 4},
        **{"adapter_rank": 4, "num_key_value_heads": 4, "chunk_size": 8, "kv_channels": DEFAULT},
    },
    "zaya": {"num_experts_per_tok": 1},
}


def architectures() -> Iterator[tuple[str, bool]]:
    """Every model type whose main input is tokens, and whether it reads only tokens: others have parts for images or
    sound.
    """
    for name in MODEL_MAPPING_NAMES:
        try:
            config = CONFIG_MAPPING[name]()
            kind = MODEL_MAPPING[type(config)]
            reads = (kind[0] if isinstance(kind, list | tuple) else kind).main_input_name
        except Exception:  # no default configuration: it needs a package, a file from the hub, or more settings
            continue
        if reads == "input_ids" and not name.endswith(("_vision", "_vqmodel")):
            yield name, isinstance(getattr(config, "vocab_size", None), int) or name == "esm"


def tiny_config(name: str, **options: Any) -> Any:
    """A small configuration. `options` override the chosen settings."""
    kind = CONFIG_MAPPING[name]
    default = kind()
    aliases = getattr(default, "attribute_map", {})
    known = set(default.to_dict()) | set(aliases)
    chosen = {setting: size for setting, size in SMALL.items() if setting in known and aliases.get(setting) not in SMALL}
    chosen |= {setting: size for setting, size in _WINDOWS.items() if setting in known and isinstance(getattr(default, setting, None), int)}
    if "kv_lora_rank" in known:  # latent attention has a key head for every head, and rotates a part of each
        chosen |= {setting: 4 for setting in ("num_key_value_heads", "head_dim") if setting in known}
    chosen |= dict(_parts(default)) | OWN.get(name, {}) | options
    return kind(**{setting: value for setting, value in chosen.items() if value is not DEFAULT})


def _parts(default: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Small configurations of the parts of a model that has several. A part that cannot be made small is omitted, so it
    keeps its default configuration.
    """
    for setting in getattr(default, "sub_configs", {}):
        part = getattr(default, setting, None)
        if part is not None and part.model_type in CONFIG_MAPPING:
            try:
                yield setting, tiny_config(part.model_type).to_dict()
            except Exception:
                continue


def build_tiny(name: str, implementation: str | None, **options: Any) -> PreTrainedModel:
    """A tiny model with the same weights in every call, loaded with this attention implementation. None leaves the
    choice to transformers.
    """
    config = tiny_config(name, **options)
    with torch.device("meta"):
        size = sum(parameter.numel() for parameter in AutoModel.from_config(config).parameters())
    if size > LARGEST:
        raise ValueError(f"{size:,} parameters after all sizes known by name were lowered")
    torch.manual_seed(0)
    attention = {} if implementation is None else {"attn_implementation": implementation}
    model: PreTrainedModel = AutoModel.from_config(config, dtype=torch.float32, **attention).eval().requires_grad_(False)
    generator = torch.Generator().manual_seed(1)
    for parameter in model.parameters():
        if parameter.dim() > 1:  # larger weights make attention uneven: a wrong mask or bias changes the maps
            parameter.mul_(8) if parameter.any() else parameter.normal_(0, 0.2, generator=generator)
    return model


def padded(model: PreTrainedModel, side: str) -> dict[str, torch.Tensor]:
    """A batch of two texts of 21 and 13 tokens, padded on this side. An encoder-decoder has targets of 17 and 9."""
    generator = torch.Generator().manual_seed(3)
    rows = int(model.get_input_embeddings().weight.shape[0])

    def texts(*lengths: int) -> tuple[torch.Tensor, torch.Tensor]:
        mask = torch.tensor([[int(place < length) for place in range(max(lengths))] for length in lengths])
        mask = mask.flip(1) if side == "left" else mask
        ids = torch.randint(4, rows, mask.shape, generator=generator)
        pad = getattr(model.config.get_text_config(), "pad_token_id", None)
        return torch.where(mask.bool(), ids, pad if isinstance(pad, int) and 0 <= pad < rows else 0), mask

    batch = dict(zip(("input_ids", "attention_mask"), texts(21, 13), strict=True))
    if model.config.is_encoder_decoder:
        batch |= dict(zip(("decoder_input_ids", "decoder_attention_mask"), texts(17, 9), strict=True))
    return batch
