"""Tiny randomly initialised models of many architectures that capture must be able to read."""

from __future__ import annotations

from typing import Any

import torch
import transformers
from transformers import AutoModel, PreTrainedModel

VOCAB = 60
_BERT = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24, "max_position_embeddings": 64}
_LLAMA = {**_BERT, "num_key_value_heads": 2}
_T5 = {"d_model": 16, "d_kv": 4, "d_ff": 24, "num_layers": 2, "num_decoder_layers": 2, "num_heads": 4, "decoder_start_token_id": 0}
_BART = {
    "d_model": 16,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 24,
    "decoder_ffn_dim": 24,
    "max_position_embeddings": 64,
    "decoder_start_token_id": 2,
    "pad_token_id": 1,
    "bos_token_id": 0,
    "eos_token_id": 2,
}
_GPT2 = {"n_embd": 16, "n_layer": 2, "n_head": 4, "n_positions": 64}

ENCODERS: dict[str, dict[str, Any]] = {
    "bert": _BERT,
    "roberta": _BERT,
    "xlm-roberta": _BERT,
    "electra": {**_BERT, "embedding_size": 16},
    "albert": {**_BERT, "embedding_size": 16},
    "distilbert": {"dim": 16, "n_layers": 2, "n_heads": 4, "hidden_dim": 24, "max_position_embeddings": 64},
    "camembert": _BERT,
    "ernie": _BERT,
    "modernbert": {**_BERT, "global_attn_every_n_layers": 2, "local_attention": 4},
    "deberta-v2": {**_BERT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False},
    "mpnet": _BERT,
}
DECODERS: dict[str, dict[str, Any]] = {
    "gpt2": _GPT2,
    "llama": _LLAMA,
    "mistral": {**_LLAMA, "sliding_window": 4},
    "qwen2": _LLAMA,
    "qwen3": {**_LLAMA, "head_dim": 8},
    "gemma2": {**_LLAMA, "head_dim": 8, "sliding_window": 4, "query_pre_attn_scalar": 8},
    "gemma3_text": {**_LLAMA, "head_dim": 8, "sliding_window": 4, "query_pre_attn_scalar": 8},
    "gpt_oss": {**_LLAMA, "head_dim": 8, "num_local_experts": 2, "num_experts_per_tok": 1, "sliding_window": 4},
    "gpt_neox": _BERT,
    "opt": {**_BERT, "ffn_dim": 24, "word_embed_proj_dim": 16},
    "phi3": {**_LLAMA, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2},
    "olmo2": _LLAMA,
}
ENCODER_DECODERS: dict[str, dict[str, Any]] = {
    "t5": _T5,
    "mt5": _T5,
    "bart": _BART,
    "marian": _BART,
    "m2m_100": _BART,
    "mbart": _BART,
}
BYPASS = {"deberta-v2", "mpnet"}  # models that bypass the attention interface: their maps are read from output_attentions
ALL = {**ENCODERS, **DECODERS, **ENCODER_DECODERS}


def build(name: str, vocabulary: int = VOCAB, **options: Any) -> PreTrainedModel:
    """A tiny model of the architecture, with the same weights in every call; `options` override its configuration."""
    options = {"pad_token_id": 0, **ALL.get(name, {}), **options, "vocab_size": vocabulary}
    config = transformers.AutoConfig.for_model(name, **options)
    torch.manual_seed(0)
    model: PreTrainedModel = AutoModel.from_config(config, dtype=torch.float32).eval().requires_grad_(False)
    # A randomly initialised model is nearly linear. Larger weights make attention uneven, so that a wrong mask or bias
    # changes the maps.
    for parameter in model.parameters():
        if parameter.dim() > 1:
            parameter.mul_(8)
    return model


def inputs(model: PreTrainedModel) -> dict[str, torch.Tensor]:
    """A batch of three texts of 9, 6 and 2 tokens, padded on the right. An encoder-decoder has targets of 5, 3, 7."""
    torch.manual_seed(1)

    def side(lengths: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
        mask = torch.tensor([[int(i < n) for i in range(max(lengths))] for n in lengths])
        return torch.randint(4, VOCAB, mask.shape) * mask + (1 - mask) * (model.config.pad_token_id or 0), mask

    ids, mask = side([9, 6, 2])
    batch = {"input_ids": ids, "attention_mask": mask}
    if model.config.is_encoder_decoder:
        batch["decoder_input_ids"], batch["decoder_attention_mask"] = side([5, 3, 7])
    return batch
