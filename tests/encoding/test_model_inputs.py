"""Inputs of models: ids, masks, segment ids, padding, decoder inputs and the maximum length."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest
import torch
from transformers import BartConfig, BartModel, BertConfig, BertModel, GPT2Config, GPT2Model, RobertaConfig, RobertaModel, T5Config, T5Model

from headscope.core.tally import Tally
from headscope.encoding.choices import Unit
from headscope.encoding.texts import Encoded, Encoder
from headscope.models.model import Model
from helpers.families import document, tokenizer

SMALL: dict[str, Any] = {"vocab_size": 700, "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 8}
BART: dict[str, Any] = {
    "vocab_size": 700,
    "d_model": 8,
    "encoder_layers": 1,
    "decoder_layers": 1,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 8,
    "decoder_ffn_dim": 8,
}


@cache
def model(name: str) -> Model:
    torch.manual_seed(0)
    builders: dict[str, Callable[[], tuple[Any, str]]] = {
        "bert": lambda: (BertModel(BertConfig(**SMALL, max_position_embeddings=40)), "letters"),
        "bert of one type": lambda: (BertModel(BertConfig(**SMALL, max_position_embeddings=40, type_vocab_size=1)), "letters"),
        "roberta": lambda: (RobertaModel(RobertaConfig(**SMALL, max_position_embeddings=40, type_vocab_size=1, pad_token_id=1)), "roberta"),
        "gpt2": lambda: (GPT2Model(GPT2Config(vocab_size=700, n_positions=40, n_embd=8, n_layer=1, n_head=2)), "gpt2"),
        "t5": lambda: (
            T5Model(T5Config(vocab_size=700, d_model=8, d_kv=4, d_ff=8, num_layers=1, num_heads=2, decoder_start_token_id=0)),
            "t5",
        ),
        "bart": lambda: (BartModel(BartConfig(**BART, max_position_embeddings=40, decoder_start_token_id=2)), "roberta"),
        "bart without a start": lambda: (BartModel(BartConfig(**BART, decoder_start_token_id=None, bos_token_id=0)), "roberta"),
    }
    network, family = builders[name]()
    return Model(name, network.eval(), tokenizer(family), (), "interface")


def texts(name: str, unit: Unit = "sentence", *paragraphs: str) -> list[Encoded]:
    made = model(name)
    return list(Encoder(made.tokenizer, unit, 40, decoder_start=made.decoder_start).texts([document("d", *paragraphs)], Tally()))


def test_bert_gets_ids_a_mask_and_token_types() -> None:
    inputs = model("bert").inputs(texts("bert", "pair", "ab", "c", "d", "e"))
    # [PAD] [UNK] [CLS] [SEP] [MASK], then a to z from 5 on, then ##a to ##z from 31 on.
    assert {key: value.tolist() for key, value in inputs.items()} == {
        "input_ids": [[2, 5, 32, 3, 7, 3], [2, 8, 3, 9, 3, 0]],
        "attention_mask": [[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0]],
        "token_type_ids": [[0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0]],
    }
    assert {value.dtype for value in inputs.values()} == {torch.int64}


@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("bert", {"input_ids", "attention_mask", "token_type_ids"}),
        ("bert of one type", {"input_ids", "attention_mask"}),
        ("roberta", {"input_ids", "attention_mask"}),
        ("gpt2", {"input_ids", "attention_mask"}),
        ("t5", {"input_ids", "attention_mask", "decoder_input_ids", "decoder_attention_mask"}),
        ("bart", {"input_ids", "attention_mask", "decoder_input_ids", "decoder_attention_mask"}),
    ],
)
def test_a_model_gets_only_the_inputs_that_it_accepts(name: str, keys: set[str]) -> None:
    inputs = model(name).inputs(texts(name, "sentence", "a cat | a"))
    assert set(inputs) == keys
    with torch.no_grad():
        assert torch.isfinite(model(name).network(**inputs).last_hidden_state).all()


@pytest.mark.parametrize(("name", "pad"), [("bert", 0), ("roberta", 1), ("gpt2", 0)])
def test_padding_is_on_the_right_and_is_masked(name: str, pad: int) -> None:
    made = texts(name, "sentence", "a | a a a")
    inputs = model(name).inputs(made)
    lengths = [len(text) for text in made]
    assert lengths[0] < lengths[1]
    assert inputs["input_ids"][0].tolist() == made[0].ids.tolist() + [pad] * (lengths[1] - lengths[0])
    assert inputs["attention_mask"].sum(1).tolist() == lengths
    assert inputs["attention_mask"][0].tolist() == [1] * lengths[0] + [0] * (lengths[1] - lengths[0])
    # Masked tokens do not change the output.
    alone = model(name).inputs(made[:1])
    with torch.no_grad():
        padded = model(name).network(**inputs).last_hidden_state[0, : lengths[0]]
        torch.testing.assert_close(padded, model(name).network(**alone).last_hidden_state[0], atol=1e-5, rtol=1e-4)


def test_source_and_target_are_padded_separately() -> None:
    made = texts("t5", "pair", "a a a", "a", "a", "a a")
    inputs = model("t5").inputs(made)
    (a,) = tokenizer("t5").hf("a", add_special_tokens=False)["input_ids"]
    assert {key: value.tolist() for key, value in inputs.items()} == {
        "input_ids": [[a, a, a, 1], [a, 1, 0, 0]],
        "attention_mask": [[1, 1, 1, 1], [1, 1, 0, 0]],
        "decoder_input_ids": [[0, a, 0], [0, a, a]],
        "decoder_attention_mask": [[1, 1, 0], [1, 1, 1]],
    }


@pytest.mark.parametrize(("name", "start"), [("bert", None), ("gpt2", None), ("t5", 0), ("bart", 2), ("bart without a start", 0)])
def test_the_decoder_start_token_comes_from_the_configuration(name: str, start: int | None) -> None:
    assert model(name).decoder_start == start


@pytest.mark.parametrize(("name", "longest"), [("bert", 40), ("roberta", 38), ("gpt2", 40), ("bart", 40)])
def test_max_length_is_the_longest_input_that_runs(name: str, longest: int) -> None:
    made = model(name)
    assert made.max_length == longest
    ids = torch.full((1, longest + 1), 7)
    with torch.no_grad():
        made.network(input_ids=ids[:, :longest])
        with pytest.raises((IndexError, RuntimeError)):
            made.network(input_ids=ids)


def test_t5_has_no_maximum_length() -> None:
    assert model("t5").max_length is None
