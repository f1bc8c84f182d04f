"""Small random models with prediction heads, saved in folders as a user's models are, and a few texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
import transformers

import headscope as hs
from headscope.core.document import Document, Sentence, Word
from headscope.core.tally import Tally
from headscope.corpora import Corpus
from headscope.encoding.texts import Encoded
from headscope.engine.shards import encoder_for
from headscope.engine.spec import make_spec
from headscope.models.model import Model
from helpers.families import FAMILIES

SENTENCES = ["The cat sat on a mat .", "A dog , the cats .", "The dog sat .", "Cats play .", "The cat saw the dogs playing on mats ."]
PHRASES = ("cat", "cats", "the dog", "dogs playing", "mat")
CORPUS = Corpus.of(
    Document(f"d{n}", (Sentence(tuple(map(Word, text.split()))),), label=("good", "1", "BAD")[n % 3], keyphrases=PHRASES)
    for n, text in enumerate(SENTENCES)
)
CLASSES: dict[str, Any] = {"id2label": {0: "bad", 1: "fair", 2: "good"}, "label2id": {"bad": 0, "fair": 1, "good": 2}}
TAGS: dict[str, Any] = {"id2label": {0: "O", 1: "B", 2: "I"}, "label2id": {"O": 0, "B": 1, "I": 2}}
_BERT = {"hidden_size": 24, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 20}
_BART = {
    "d_model": 24,
    "encoder_layers": 3,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 20,
    "decoder_ffn_dim": 20,
    "max_position_embeddings": 64,
    "init_std": 0.5,
}
# For each name: the family of the tokenizer, the class of the model, and options of its configuration.
TINY: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bert": ("wordpiece", "BertForMaskedLM", _BERT),
    "bert classes": ("wordpiece", "BertForSequenceClassification", {**_BERT, **CLASSES}),
    "bert tags": ("wordpiece", "BertForTokenClassification", {**_BERT, **TAGS}),
    "roberta": ("roberta", "RobertaForMaskedLM", _BERT),
    "albert": ("wordpiece", "AlbertForMaskedLM", {**_BERT, "embedding_size": 12}),
    "distilbert": ("wordpiece", "DistilBertForMaskedLM", {"dim": 24, "n_layers": 3, "n_heads": 4, "hidden_dim": 20}),
    "electra": ("wordpiece", "ElectraForMaskedLM", {**_BERT, "embedding_size": 12}),
    "mpnet": ("wordpiece", "MPNetForMaskedLM", _BERT),
    "deberta": (
        "wordpiece",
        "DebertaV2ForMaskedLM",
        {**_BERT, "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_biased_input": False},
    ),
    "gpt2": ("gpt2", "GPT2LMHeadModel", {"n_embd": 24, "n_layer": 3, "n_head": 4}),
    "gpt2 classes": ("gpt2", "GPT2ForSequenceClassification", {"n_embd": 24, "n_layer": 3, "n_head": 4, "pad_token_id": 1, **CLASSES}),
    "llama": ("llama-2", "LlamaForCausalLM", {**_BERT, "num_key_value_heads": 2}),
    "t5": (
        "t5",
        "T5ForConditionalGeneration",
        {"d_model": 24, "d_kv": 6, "num_layers": 3, "num_decoder_layers": 2, "num_heads": 4, "d_ff": 20, "decoder_start_token_id": 0},
    ),
    "bart": ("roberta", "BartForConditionalGeneration", _BART),
    "marian": ("t5", "MarianMTModel", {**_BART, "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}),
}


def saved(folder: Path, name: str) -> Path:
    """Save a model and its tokenizer with save_pretrained, and return the folder."""
    family, kind, options = TINY[name]
    tokenizer = FAMILIES[family]()
    torch.manual_seed(0)
    model = getattr(transformers, kind)
    config = model.config_class(vocab_size=len(tokenizer), initializer_range=0.5, **options)
    model(config).save_pretrained(folder / name)
    tokenizer.save_pretrained(folder / name)
    return folder / name


def loaded(folder: Path, name: str, double: bool = False) -> Model:
    """The saved model, loaded with its prediction head. With `double`, weights are float64, for close comparisons."""
    model = hs.load(saved(folder, name), device="cpu", head=True)
    assert model.whole is not None
    if double:
        model.whole.double()
    return model


def encoded(model: Model) -> list[Encoded]:
    """The texts of CORPUS as inputs of the model, of 4 to 9 words each."""
    encoder = encoder_for(make_spec({}).resolved(pairs=False), model.tokenizer, model.decoder_start, tags=model.tagging)
    return list(encoder.texts(CORPUS, Tally()))
