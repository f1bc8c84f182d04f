"""Loading: the embedded models, folders, names on the hub, data types and devices."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest
import torch
from transformers import AutoModel

import headscope as hs
from headscope.errors import ModelError, RunError
from headscope.models import EMBEDDED
from headscope.models import load as loading
from headscope.models.model import Model

MODELS = Path(loading.__file__).parent
MINI = MODELS / "mini"
SHA256 = {
    "mini/model-00001-of-00003.safetensors": "4f17e0847cfe6a6bf54bfe9969130006c63686213d5dd8f0067d051758e1dcce",
    "mini/model-00002-of-00003.safetensors": "a1c036a72577ff0515bcc529ffbed137613e4caec805ed111e2ba0e02b3474da",
    "mini/model-00003-of-00003.safetensors": "b211796938168bf335e4ac5347a84156d27f84773ba0d577644531b1c7c49ee1",
    "mini/tokenizer.json": "ec38c9cb10b771e28958de1b95b54983792c5563d057e064853155e72a600eec",
    "mini/config.json": "355978efa93f9fc08a951ab132517d5785474691c1fb648c96b07489852bc7e4",
    "mini-decoder/model.safetensors": "0b80ff65a8741b3d34733e53265cb64b96bb30952412be713872ce27212da414",
    "mini-decoder/tokenizer.json": "ae77f8f0fdd76c556bf5f1a063a4c1e12e56f55d8b3230ced669d62c9dbaae2c",
    "mini-decoder/config.json": "b8cdff15be7f2e6cf56dc19056c359c77934b8f592c8550b65a54d9aa762fed7",
}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copytree(MINI, tmp_path / "copy"))


def test_the_files_of_the_embedded_models_have_the_expected_checksums() -> None:
    for name, expected in SHA256.items():
        assert hashlib.sha256((MODELS / name).read_bytes()).hexdigest() == expected, name
    for name in EMBEDDED:
        loading.verify_embedded(name)


def test_the_embedded_model_has_twelve_layers_of_twelve_heads(mini: Model) -> None:
    assert mini.layout.size == 144
    assert [(site.kind, site.layer, site.heads) for site in mini.sites] == [("encoder", layer, 12) for layer in range(12)]
    assert mini.capture == "interface"
    assert mini.max_length == 256
    assert not mini.network.training
    assert next(mini.network.parameters()).dtype == torch.float32


def test_the_embedded_decoder_has_eight_layers_of_eight_heads(mini_decoder: Model) -> None:
    shapes = [(site.kind, site.layer, site.heads, site.kv_heads) for site in mini_decoder.sites]
    assert shapes == [("decoder", layer, 8, 4) for layer in range(8)]
    assert mini_decoder.max_length == 512


def test_the_fingerprint_depends_on_the_content_of_a_folder_and_not_on_its_path(mini: Model, copy: Path) -> None:
    other = hs.load(copy)
    assert other.fingerprint == mini.fingerprint
    assert str(copy) not in hs.run(other, "sampler", limit=1, replicates=0, gallery=0).signature
    (copy / "config.json").write_text((copy / "config.json").read_text().replace("1e-12", "1e-11"))
    assert hs.load(copy).fingerprint != mini.fingerprint


def test_an_unreachable_hub_name_is_refused_after_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    requested = []

    def unreachable(self: object, name: str, timeout: float) -> None:
        requested.append(name)
        raise ConnectionError("no network here")

    monkeypatch.setattr("huggingface_hub.HfApi.model_info", unreachable)
    with pytest.raises(ModelError, match=r"nor available from the hub \(ConnectionError\)"):
        hs.load("nobody/nothing-at-all")
    assert requested == ["nobody/nothing-at-all"]


def test_an_unknown_dtype_and_a_missing_folder_are_refused() -> None:
    with pytest.raises(ModelError, match="dtype 'float8' is unknown"):
        hs.load(dtype="float8")
    with pytest.raises(ModelError, match="is not a folder"):
        hs.load("/nowhere")


def test_entropy_of_a_bfloat16_model_is_close_to_that_in_float32(mini: Model) -> None:
    half = hs.run(hs.load(dtype="bfloat16"), "sampler", ["entropy"], limit=5, replicates=0, gallery=0)
    full = hs.run(mini, "sampler", ["entropy"], limit=5, replicates=0, gallery=0)
    difference = [a - b for a, b in zip(half["entropy"].table["value"], full["entropy"].table["value"], strict=True)]
    assert 0 < max(map(abs, difference)) < 0.15


def test_device_auto_changes_no_result_and_is_refused_where_it_does_not_apply(mini: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("accelerate", reason="accelerate is not installed")
    spread = hs.load("mini", device="auto")
    assert spread.fingerprint == mini.fingerprint
    first, second = (hs.run(model, "sampler", ["entropy"], limit=3, replicates=0, gallery=0)["entropy"].table for model in (spread, mini))
    assert first.to_pandas().equals(second.to_pandas())
    given = AutoModel.from_pretrained(MODELS / "mini", device_map="auto", dtype=torch.float32)
    assert hs.load(given).fingerprint == mini.fingerprint
    with pytest.raises(RunError, match="device auto does not apply to the processes engine"):
        hs.run("mini", engine="processes", device="auto")
    monkeypatch.setattr(loading, "find_spec", lambda name: None)
    with pytest.raises(ModelError, match=r"device auto needs accelerate, which is not installed. pip install 'headscope\[accelerate\]'"):
        hs.load("mini", device="auto")


@pytest.mark.parametrize("name", EMBEDDED)
def test_the_docs_contain_the_model_card_and_its_sources(name: str) -> None:
    page = (Path(__file__).parents[2] / "docs" / f"{name}.md").read_text(encoding="utf-8")
    assert (MODELS / name / "README.md").read_text(encoding="utf-8").strip() in page
    for line in (MODELS / name / "sources.tsv").read_text(encoding="utf-8").splitlines():
        assert f"| {line.split(chr(9))[0]} |" in page
