"""GGUF files: written here with the gguf package, read as in transformers, and identified by their quantisation."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM
from transformers.utils import logging

import headscope as hs
from headscope.errors import ModelError
from helpers.families import llama3
from helpers.in_memory import eager_maps, maps_of

gguf = pytest.importorskip("gguf", reason="gguf is not installed")
pytest.importorskip("accelerate", reason="accelerate is not installed")

LAYERS, HEADS, SIZE = 2, 4, 64
NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
    "post_attention_layernorm": "ffn_norm",
}
OUTSIDE = {"model.embed_tokens.weight": "token_embd", "model.norm.weight": "output_norm", "lm_head.weight": "output"}


def network_and_tokenizer() -> tuple[Any, Any]:
    torch.manual_seed(0)
    tokenizer = llama3()
    shape = {"hidden_size": SIZE, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS, "intermediate_size": 96}
    config = LlamaConfig(vocab_size=len(tokenizer), num_key_value_heads=2, initializer_range=0.1, max_position_embeddings=128, **shape)
    return LlamaForCausalLM(config).eval(), tokenizer


def rotated(weight: np.ndarray, heads: int) -> np.ndarray:
    """The rows of queries or keys in the order of llama.cpp: the rows of a head's two halves alternate."""
    rows, columns = weight.shape
    return weight.reshape(heads, 2, rows // heads // 2, columns).swapaxes(1, 2).reshape(rows, columns)


def write(path: Path, network: Any, tokenizer: Any, kind: Any) -> None:
    """Write a Llama model as a GGUF file with quantised matrices."""
    writer = gguf.GGUFWriter(path, "llama")
    config = network.config
    writer.add_block_count(LAYERS)
    writer.add_context_length(128)
    writer.add_embedding_length(SIZE)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(config.rope_parameters["rope_theta"])
    writer.add_rope_dimension_count(SIZE // HEADS)
    writer.add_vocab_size(config.vocab_size)
    vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda entry: entry[1])
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe")
    writer.add_token_list([token for token, _ in vocabulary])
    special, types = tokenizer.all_special_tokens, gguf.TokenType
    writer.add_token_types([types.CONTROL if token in special else types.NORMAL for token, _ in vocabulary])
    merges = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]
    writer.add_token_merges([" ".join(pair) for pair in merges])
    writer.add_bos_token_id(tokenizer.bos_token_id)
    writer.add_eos_token_id(tokenizer.eos_token_id)
    for name, tensor in network.state_dict().items():
        values = tensor.float().numpy()
        if "q_proj" in name or "k_proj" in name:
            values = rotated(values, HEADS if "q_proj" in name else config.num_key_value_heads)
        _, _, layer, *part, _ = name.split(".") if name.startswith("model.layers.") else ("", "", "", name, "")
        called = f"blk.{layer}.{NAMES['.'.join(part)]}.weight" if layer else f"{OUTSIDE[name]}.weight"
        quantised = kind if values.ndim == 2 else gguf.GGMLQuantizationType.F32
        writer.add_tensor(called, gguf.quants.quantize(values, quantised), raw_dtype=quantised)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "tiny.Q8_0.gguf"
    write(path, *network_and_tokenizer(), gguf.GGMLQuantizationType.Q8_0)
    return path


def by_transformers(file: Path) -> Any:
    logging.disable_progress_bar()
    try:
        return AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32, attn_implementation="eager")
    finally:
        logging.enable_progress_bar()


def test_maps_equal_those_of_the_model_loaded_by_transformers(file: Path) -> None:
    model = hs.load(file)
    theirs = by_transformers(file)
    assert np.array_equal(maps_of(model), eager_maps(theirs))
    whole, tokenizer = network_and_tokenizer()
    difference = np.abs(maps_of(model) - maps_of(hs.load(whole, tokenizer))).max()
    assert 0 < difference < 0.01  # the error of 8-bit quantisation
    ids = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)("The cats play in the garden.").input_ids
    assert model.tokenizer.hf("The cats play in the garden.").input_ids == ids
    assert hs.load(theirs, tokenizer).network.state_dict().keys() == model.network.state_dict().keys()


def test_a_file_without_quantisation_has_the_maps_of_the_original_model(tmp_path: Path) -> None:
    whole, tokenizer = network_and_tokenizer()
    write(tmp_path / "plain.gguf", whole, tokenizer, gguf.GGMLQuantizationType.F32)
    model = hs.load(tmp_path / "plain.gguf", head=True)
    assert model.origin == {"quantisation": "gguf-F32"}
    assert np.abs(maps_of(model) - maps_of(hs.load(whole, tokenizer))).max() < 1e-6
    assert model.objective == "causal"


def test_the_signature_names_the_quantisation_and_saliency_can_be_computed(file: Path) -> None:
    run = hs.run(file, "sampler", ["entropy", "saliency"], limit=3, replicates=0, gallery=0, max_length=100)
    assert f"model:{file.name}@" in run.signature
    assert "|quantisation:gguf-Q8_0|" in run.signature


@pytest.mark.usefixtures("workers_here")
def test_workers_load_the_file_by_name(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    few: dict[str, Any] = {"limit": 3, "replicates": 0, "gallery": 0, "max_length": 100}
    alone, shared = (hs.run(file.name, "sampler", ["entropy"], engine=engine, workers=1, **few) for engine in ("local", "processes"))
    # Compared with a tolerance: in one run of all tests, the values were not bit-identical, and the reason is unknown.
    np.testing.assert_allclose(alone["entropy"].table["value"], shared["entropy"].table["value"], rtol=1e-6)


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGUF" + bytes(20), b"GGUF\x03\0\0\0" + b"\xff" * 40, b"no such thing"])
def test_a_damaged_file_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    with pytest.raises(ModelError, match=r"is not a valid GGUF file|is a GGUF file without weights") as caught:
        hs.load(path)
    assert "\n" not in str(caught.value)


def test_a_truncated_file_is_refused(file: Path, tmp_path: Path) -> None:
    path = tmp_path / "cut.gguf"
    path.write_bytes(file.read_bytes())
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(ModelError, match=r"could not be loaded|is not a valid GGUF file"):
        hs.load(path)
