"""The embedded models, and a small model in a folder, which several processes can load quickly."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import torch
from transformers import AutoTokenizer, BertConfig, BertModel

from headscope.models.load import load
from headscope.models.loading.locate import locate
from headscope.models.model import Model


@cache
def load_mini() -> Model:
    """The embedded model, loaded once per process."""
    return load("mini")


@cache
def load_mini_decoder() -> Model:
    """The embedded language model, loaded once per process."""
    return load("mini-decoder")


@cache
def load_writer() -> Model:
    """The embedded language model with its prediction head, loaded once per process."""
    return load("mini-decoder", head=True)


def save_small(folder: Path) -> Path:
    """Save a BERT of two layers of two heads with the tokenizer of the embedded model, and return the folder."""
    tokenizer = AutoTokenizer.from_pretrained(locate("mini").place)
    torch.manual_seed(0)
    shape = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24, "max_position_embeddings": 128}
    network = BertModel(BertConfig(vocab_size=len(tokenizer), initializer_range=0.5, **shape), add_pooling_layer=False)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
