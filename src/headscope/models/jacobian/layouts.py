"""The paths of the parts of known blocks, and the orders in which the parts may be run.

post      y = x + attention(x),       z = LN1(y),    out = LN2(z + feed(z))
pre       y = x + attention(LN1(x)),                 out = y + feed(LN2(y))
parallel                                             out = x + attention(LN1(x)) + feed(LN2(x))
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Order = Literal["post", "pre", "parallel"]
PARTS = ("query", "key", "value", "out", "first", "up", "activation", "down", "second")


@dataclass(frozen=True)
class Layout:
    """Paths within a block, in the order of PARTS; `first` and `second` are the normalisations in the order they are
    run.

    If one map makes queries, keys and values, they follow each other for all heads together (`whole`) or within each
    head (`heads`).
    """

    paths: tuple[str, ...]
    orders: tuple[Order, ...] = ("post",)
    fused: Literal["", "whole", "heads"] = ""
    gate: str = ""


_BERT = (
    *(f"attention.self.{name}" for name in ("query", "key", "value")),
    "attention.output.dense",
    "attention.output.LayerNorm",
    "intermediate.dense",
    "intermediate.intermediate_act_fn",
    "output.dense",
    "output.LayerNorm",
)
_ROBERTA_PRE = (*_BERT[:4], "attention.LayerNorm", *_BERT[5:8], "intermediate.LayerNorm")
_BART = (
    *(f"self_attn.{name}_proj" for name in "qkv"),
    "self_attn.out_proj",
    "self_attn_layer_norm",
    "fc1",
    "activation_fn",
    "fc2",
    "final_layer_norm",
)
_MPNET = (*(f"attention.attn.{name}" for name in "qkvo"), "attention.LayerNorm", *_BERT[5:])
_DISTIL = (
    *(f"attention.{name}_lin" for name in ("q", "k", "v", "out")),
    "sa_layer_norm",
    "ffn.lin1",
    "ffn.activation",
    "ffn.lin2",
    "output_layer_norm",
)
_ALBERT = tuple(
    f"albert_layers.0.{name}"
    for name in (
        *(f"attention.{part}" for part in ("query", "key", "value", "dense", "LayerNorm")),
        "ffn",
        "activation",
        "ffn_output",
        "full_layer_layer_norm",
    )
)
_GPT2 = (*("attn.c_attn",) * 3, "attn.c_proj", "ln_1", "mlp.c_fc", "mlp.act", "mlp.c_proj", "ln_2")
_NEOX = (
    *("attention.query_key_value",) * 3,
    "attention.dense",
    "input_layernorm",
    "mlp.dense_h_to_4h",
    "mlp.act",
    "mlp.dense_4h_to_h",
    "post_attention_layernorm",
)
_LLAMA = (
    *(f"self_attn.{name}_proj" for name in "qkvo"),
    "input_layernorm",
    "mlp.up_proj",
    "mlp.act_fn",
    "mlp.down_proj",
    "post_attention_layernorm",
)
_STARCODER = (*_LLAMA[:5], "mlp.c_fc", "mlp.act", "mlp.c_proj", _LLAMA[8])
_LIKE_BERT = "Bert Roberta XLMRoberta Electra Camembert Ernie Data2VecText LayoutLM Splinter BertGeneration"
# By the class of a block.
KNOWN: dict[str, Layout] = {
    **{f"{name}Layer": Layout(_BERT) for name in _LIKE_BERT.split()},
    **{f"{name}EncoderLayer": Layout(_BART) for name in ("Bart", "Marian", "PLBart", "BlenderbotSmall")},
    "MPNetLayer": Layout(_MPNET),
    "TransformerBlock": Layout(_DISTIL),
    "AlbertLayerGroup": Layout(_ALBERT),
    "RobertaPreLayerNormLayer": Layout(_ROBERTA_PRE, ("pre",)),
    **{f"{name}EncoderLayer": Layout(_BART, ("pre",)) for name in ("MBart", "M2M100", "Pegasus", "Blenderbot")},
    "BioGptDecoderLayer": Layout(_BART, ("pre",)),
    "OPTDecoderLayer": Layout(_BART, ("pre", "post")),
    "GPT2Block": Layout(_GPT2, ("pre",), "whole"),
    "GPTNeoXLayer": Layout(_NEOX, ("parallel", "pre"), "heads"),
    **{f"{name}DecoderLayer": Layout(_LLAMA, ("pre",), gate="mlp.gate_proj") for name in ("Llama", "Mistral", "Qwen2")},
    "Starcoder2DecoderLayer": Layout(_STARCODER, ("pre",)),
}
