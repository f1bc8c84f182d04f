"""The objectives of checkpoints, and checkpoints that are refused because they cannot predict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import (
    BartConfig,
    BartForSequenceClassification,
    BertConfig,
    BertForPreTraining,
    BertForSequenceClassification,
    ElectraConfig,
    ElectraForMaskedLM,
    ElectraForPreTraining,
    ElectraForSequenceClassification,
    GPT2Config,
    GPT2ForSequenceClassification,
)

import headscope as hs
from headscope.errors import ModelError
from helpers.families import FAMILIES

SIZES: dict[str, Any] = {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 20}
ELECTRA: dict[str, Any] = {**SIZES, "embedding_size": 12}


def saved(folder: Path, kind: Any, config: Any, tokenizer: str = "wordpiece", **sizes: Any) -> Path:
    tokens = FAMILIES[tokenizer]()
    kind(config(vocab_size=len(tokens), **sizes)).save_pretrained(folder)
    tokens.save_pretrained(folder)
    return folder


@pytest.mark.parametrize(
    ("kind", "config", "sizes", "objective"),
    [
        (BertForPreTraining, BertConfig, SIZES, "masked"),
        (ElectraForMaskedLM, ElectraConfig, ELECTRA, "masked"),
        (ElectraForSequenceClassification, ElectraConfig, ELECTRA, "classes"),
    ],
)
def test_the_objective_is_set_only_with_the_prediction_head(tmp_path: Path, kind: Any, config: Any, sizes: Any, objective: str) -> None:
    folder = saved(tmp_path, kind, config, **sizes)
    assert hs.load(folder, device="cpu", head=True).objective == objective
    assert hs.load(folder, device="cpu").objective is None


def test_an_electra_discriminator_is_refused_as_a_language_model(tmp_path: Path) -> None:
    folder = saved(tmp_path, ElectraForPreTraining, ElectraConfig, **ELECTRA)
    says = r"was saved as ElectraForPreTraining, without the \d+ weights that predict words \(first: .*use its generator"
    with pytest.raises(ModelError, match=says):
        hs.load(folder, device="cpu", head=True)
    assert hs.load(folder, device="cpu").layout.size == 2


@pytest.mark.parametrize("lost", ["classifier.weight", "bert.pooler.dense.weight"])
def test_a_classifier_with_a_missing_weight_of_its_head_is_refused(tmp_path: Path, lost: str) -> None:
    folder = saved(tmp_path, BertForSequenceClassification, BertConfig, **SIZES)
    weights = load_file(folder / "model.safetensors")
    del weights[lost]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(ModelError, match=rf"first: {lost}"):
        hs.load(folder, device="cpu", head=True)


@pytest.mark.parametrize(
    ("kind", "config", "tokenizer", "sizes", "says"),
    [
        (BertForSequenceClassification, BertConfig, "wordpiece", {**SIZES, "num_labels": 1}, "predicts numbers"),
        (BertForSequenceClassification, BertConfig, "wordpiece", {**SIZES, "problem_type": "regression"}, "predicts numbers"),
        (
            BertForSequenceClassification,
            BertConfig,
            "wordpiece",
            {**SIZES, "problem_type": "multi_label_classification"},
            "gives a text several labels at once",
        ),
        (
            BartForSequenceClassification,
            BartConfig,
            "roberta",
            {"d_model": 12, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2},
            "has a decoder beside its encoder",
        ),
        (
            GPT2ForSequenceClassification,
            GPT2Config,
            "gpt2",
            {"n_embd": 12, "n_layer": 1, "n_head": 2},
            "does not name a padding token.*Add pad_token_id to it",
        ),
    ],
)
def test_unsupported_kinds_of_classifiers_are_refused(
    tmp_path: Path, kind: Any, config: Any, tokenizer: str, sizes: Any, says: str
) -> None:
    with pytest.raises(ModelError, match=says):
        hs.load(saved(tmp_path, kind, config, tokenizer, **sizes), device="cpu", head=True)


def test_classes_have_the_names_in_the_configuration(tmp_path: Path) -> None:
    named: dict[str, Any] = {"id2label": {0: "no", 1: "yes"}, "label2id": {"no": 0, "yes": 1}}
    model = hs.load(saved(tmp_path / "a", BertForSequenceClassification, BertConfig, **SIZES, **named), device="cpu", head=True)
    assert model.classes == {"no": 0, "yes": 1}
    model = hs.load(saved(tmp_path / "b", BertForSequenceClassification, BertConfig, **SIZES, num_labels=3), device="cpu", head=True)
    assert model.classes == {"LABEL_0": 0, "LABEL_1": 1, "LABEL_2": 2}
    assert hs.load(tmp_path / "b", device="cpu").classes == {}


def test_the_classification_head_counts_in_the_fingerprint_only_if_it_is_loaded(tmp_path: Path) -> None:
    folder = saved(tmp_path, BertForSequenceClassification, BertConfig, **SIZES)
    model = hs.load(folder, device="cpu", head=True)
    assert model.fingerprint == hs.load(folder, device="cpu", head=True).fingerprint
    body, whole = hs.load(folder, device="cpu").fingerprint, model.fingerprint
    weights = load_file(folder / "model.safetensors")
    weights["classifier.bias"] += torch.ones(2)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    assert hs.load(folder, device="cpu", head=True).fingerprint != whole
    assert hs.load(folder, device="cpu").fingerprint == body
