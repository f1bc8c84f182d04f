"""A model and a corpus so small that every recipe is done in seconds: twelve layers, as the papers' curves have, of
two heads each.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM, LlamaConfig, LlamaForCausalLM

from headscope.corpora.inputs import resolve
from headscope.models.loading.locate import locate
from headscope.replication.recipe import Recipe, Step

DOCUMENTS = 6
# What makes each verb quick. Every setting exists for other reasons, and none changes which tables and columns there
# are.
QUICK: dict[str, dict[str, Any]] = {
    "run": {"replicates": 5, "max_length": 64},
    "flow": {"replicates": 0, "items": 8, "limit": 4, "context": 16, "max_length": 40},
    "ablate": {"replicates": 20, "limit": 4, "orders": 0, "steps": 2, "max_length": 64},
    "probe attention": {"replicates": 20, "epochs": 1, "seeds": 1, "max_length": 64, "held_out": 0.4},
    "probe structural": {"replicates": 20, "epochs": 1, "max_length": 64},
    "probe edge": {"replicates": 20, "checks": 1, "seeds": 1, "hidden": 8, "limit": 30, "test": 0.4, "max_length": 64, "searched": 0},
    "probe keywords": {"replicates": 20, "folds": 2, "max_length": 64},
    "train": {"epochs": 1, "max_length": 64, "held_out": 0.6},
}


def save_small(folder: Path, layers: int = 12) -> Path:
    """A random BERT that guesses masked words, with the tokenizer of the embedded model."""
    tokenizer = AutoTokenizer.from_pretrained(locate("mini").place)
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "intermediate_size": 8, "max_position_embeddings": 128}
    shape = {**sizes, "num_hidden_layers": layers, "num_attention_heads": 2}
    BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), initializer_range=0.5, **shape)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_small_decoder(folder: Path) -> Path:
    """A random language model of two layers of two heads, with the tokenizer of the embedded one."""
    tokenizer = AutoTokenizer.from_pretrained(locate("mini-decoder").place)
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "intermediate_size": 8, "max_position_embeddings": 128}
    shape = {**sizes, "num_hidden_layers": 2, "num_attention_heads": 2, "num_key_value_heads": 1}
    LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), initializer_range=0.5, **shape)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_slice(folder: Path, sentences: int = 7) -> Path:
    """The first sentences of some documents of the sampler, trees, mentions and keyphrases included."""
    texts = []
    for path in resolve(("sampler",)).paths[:DOCUMENTS]:
        texts.append("\n\n".join(path.read_text(encoding="utf-8").split("\n\n")[:sentences]) + "\n")
    (folder / "slice.conllu").write_text("\n".join(texts), encoding="utf-8")
    return folder / "slice.conllu"


def quick(recipe: Recipe) -> Recipe:
    """The recipe with steps that take no time."""
    return recipe.model_copy(update={"steps": tuple(map(_quick, recipe.steps))})


def _quick(step: Step) -> Step:
    settings = {**step.settings, **QUICK[step.verb]}
    if "relations" in (measures := settings.get("measures", {})) and isinstance(measures, dict):
        settings["measures"] = {"relations": {"least": 1}}
    return step.model_copy(update={"settings": settings, "brief": {}})
