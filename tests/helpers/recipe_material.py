"""A model and a corpus that are so small that every recipe takes seconds. The model has twelve layers, as in the curves
of the papers, of two heads each.
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
# Settings that make each verb quick. They are ordinary settings of the verbs, and none changes which tables and columns
# there are.
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
    """Save a random BERT for masked words with the tokenizer of the embedded model, and return the folder."""
    tokenizer = AutoTokenizer.from_pretrained(locate("mini").place)
    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "intermediate_size": 8, "max_position_embeddings": 128}
    shape = {**sizes, "num_hidden_layers": layers, "num_attention_heads": 2}
    BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), initializer_range=0.5, **shape)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_small_decoder(folder: Path) -> Path:
    """Save a random decoder of two layers of four heads with the tokenizer of the embedded one; return the folder."""
    tokenizer = AutoTokenizer.from_pretrained(locate("mini-decoder").place)
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 16, "max_position_embeddings": 128}
    shape = {**sizes, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2}
    LlamaForCausalLM(LlamaConfig(vocab_size=len(tokenizer), initializer_range=0.5, **shape)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def save_slice(folder: Path, sentences: int = 7) -> Path:
    """Save the first sentences of some sampler documents, with trees, mentions and keyphrases; return the file."""
    texts = []
    for path in resolve(("sampler",)).paths[:DOCUMENTS]:
        texts.append("\n\n".join(path.read_text(encoding="utf-8").split("\n\n")[:sentences]) + "\n")
    (folder / "slice.conllu").write_text("\n".join(texts), encoding="utf-8")
    return folder / "slice.conllu"


def quick(recipe: Recipe) -> Recipe:
    """The recipe with quick settings in every step."""
    return recipe.model_copy(update={"steps": tuple(map(_quick, recipe.steps))})


def _quick(step: Step) -> Step:
    settings = {**step.settings, **QUICK[step.verb]}
    if "relations" in (measures := settings.get("measures", {})) and isinstance(measures, dict):
        settings["measures"] = {"relations": {"least": 1}}
    return step.model_copy(update={"settings": settings, "brief": {}})
