"""Quantised models: int8 weights by torchao on a CPU, and refusals of what needs plain weights or CUDA."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForMaskedLM, BertConfig, BertForMaskedLM, TorchAoConfig

import headscope as hs
from headscope.errors import ModelError
from helpers.families import wordpiece
from helpers.in_memory import eager_maps, maps_of

FEW: dict[str, Any] = {"limit": 3, "replicates": 0, "max_length": 48}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "whole"
    torch.manual_seed(0)
    shape = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 48, "max_position_embeddings": 64}
    BertForMaskedLM(BertConfig(vocab_size=len(wordpiece()), initializer_range=0.1, **shape)).save_pretrained(folder)
    wordpiece().save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def int8(folder: Path) -> Path:
    """The same model with int8 weights, saved by transformers."""
    quantization = pytest.importorskip("torchao.quantization", reason="torchao is not installed")
    how = TorchAoConfig(quantization.Int8WeightOnlyConfig())
    network = AutoModelForMaskedLM.from_pretrained(folder, quantization_config=how, dtype=torch.float32)
    network.save_pretrained(folder.parent / "int8")
    wordpiece().save_pretrained(folder.parent / "int8")
    return folder.parent / "int8"


def test_int8_maps_equal_those_of_transformers(folder: Path, int8: Path) -> None:
    eager = AutoModelForMaskedLM.from_pretrained(int8, attn_implementation="eager")
    named, given = hs.load(int8), hs.load(eager)
    assert np.array_equal(maps_of(named), eager_maps(eager))
    assert np.array_equal(maps_of(given), maps_of(named))
    assert given.fingerprint == named.fingerprint != hs.load(folder).fingerprint
    difference = np.abs(maps_of(named) - maps_of(hs.load(folder))).max()
    assert 0 < difference < 0.01  # the error of 8-bit quantisation
    changed = AutoModelForMaskedLM.from_pretrained(int8)
    changed.bert.encoder.layer[0].attention.self.query.weight.qdata[0, 0] += 1
    assert hs.load(changed).fingerprint != named.fingerprint


def test_the_signature_names_the_quantisation(int8: Path) -> None:
    run = hs.run(int8, "sampler", ["entropy", "positions"], gallery=2, allow_unknown=True, **FEW)
    assert "|quantisation:torchao-Int8WeightOnly|" in run.signature
    assert hs.view(hs.load(int8), "the cat plays").grids()


def test_functions_that_need_gradients_or_plain_weights_are_refused(int8: Path, tmp_path: Path) -> None:
    refusals: list[tuple[Any, dict[str, Any]]] = [
        (hs.flow, {"measures": ["G"]}),
        (hs.flow, {"measures": ["norms"]}),
        (hs.ablate, {"parts": ["importance"]}),
    ]
    for study, settings in refusals:
        with pytest.raises(ModelError, match=r"is quantised \(torchao-Int8WeightOnly\), which does not allow .*"):
            study(int8, "sampler", **settings, **FEW)
    with pytest.raises(ModelError, match="which does not allow gradients"):
        hs.run(int8, "sampler", ["saliency"], allow_unknown=True, **FEW)
    with pytest.raises(ModelError, match="which does not allow cutting out heads"):
        hs.prune(int8, 0.5, by="random", limit=4, max_length=48, replicates=0)
    with pytest.raises(ModelError, match="so its weights cannot be redrawn"):
        hs.load(int8, random=0)


def test_quantisation_that_cannot_be_read_is_refused_with_a_remedy(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = Path(shutil.copytree(folder, tmp_path / "broken"))
    config = json.loads((folder / "config.json").read_text())

    def refused(says: str, **settings: Any) -> None:
        (broken / "config.json").write_text(json.dumps({**config, "quantization_config": settings}))
        with pytest.raises(ModelError, match=says) as caught:
            hs.load(broken)
        assert caught.value.remedy

    refused(
        "is quantised by gptq, which headscope does not read. Use the unquantised model, or one quantised by torchao", quant_method="gptq"
    )
    refused("is quantised by an unknown method", bits=4)
    if not torch.cuda.is_available():
        refused("is quantised by bitsandbytes, which needs CUDA, and CUDA is not available", quant_method="bitsandbytes", load_in_8bit=True)
    monkeypatch.setattr("headscope.models.loading.quantised.find_spec", lambda name: None)
    refused(r"is quantised by torchao, which is not installed. pip install 'headscope\[quantised\]'", quant_method="torchao")
