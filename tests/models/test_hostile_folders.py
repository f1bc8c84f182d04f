"""Model folders that are damaged, mislabelled or malicious: they are refused in one line, before memory is allocated or
code runs.
"""

from __future__ import annotations

import json
import os
import pickle
import resource
import shutil
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from huggingface_hub import HfApi
from safetensors.torch import load_file, save_file
from typer.testing import CliRunner

import headscope as hs
from headscope.cli.main import app
from headscope.errors import EncodingError, ModelError
from headscope.models.load import load_tokenizer
from helpers.architectures import build
from helpers.families import FAMILIES

Spoil = Callable[[Path], object]
QUERY = "encoder.layer.0.attention.self.query.weight"
WEIGHTS = "model.safetensors"
INDEX = "model.safetensors.index.json"
PRUNED: dict[str, Any] = {"version": 1, "layers": {"encoder/1": {"heads": 4, "kept": [1, 2]}}, "tensors": {}}


@pytest.fixture(scope="module")
def undamaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny undamaged BERT with its tokenizer."""
    folder = tmp_path_factory.mktemp("models") / "sound"
    tokenizer = FAMILIES["wordpiece"]()
    build("bert", vocabulary=len(tokenizer)).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def folder(undamaged: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(undamaged, tmp_path / "model"))


def config(**settings: Any) -> Spoil:
    """Change settings in config.json."""

    def spoil(folder: Path) -> None:
        path = folder / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **settings}))

    return spoil


def content(name: str, data: bytes | str | dict[str, Any]) -> Spoil:
    """Replace the content of a file."""
    text = json.dumps(data) if isinstance(data, dict) else data
    return lambda folder: (folder / name).write_bytes(text if isinstance(text, bytes) else text.encode())


def tensors(change: Callable[[dict[str, torch.Tensor]], object]) -> Spoil:
    """Change the weights."""

    def spoil(folder: Path) -> None:
        weights = load_file(folder / WEIGHTS)
        change(weights)
        save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})

    return spoil


def without(*names: str) -> Spoil:
    def spoil(folder: Path) -> None:
        for name in names:
            (folder / name).unlink()

    return spoil


def index(file: object) -> Spoil:
    """Write an index that places all weights in `file`."""

    def spoil(folder: Path) -> None:
        names = list(load_file(folder / WEIGHTS))
        shutil.copy(folder / WEIGHTS, folder.parent / "outside.safetensors")
        (folder / WEIGHTS).rename(folder / "model-00001.safetensors")
        (folder / INDEX).write_text(json.dumps({"metadata": {}, "weight_map": dict.fromkeys(names, file)}))

    return spoil


def link(name: str, target: str) -> Spoil:
    def spoil(folder: Path) -> None:
        (folder / name).unlink()
        (folder / name).symlink_to(target)

    return spoil


def pipe(folder: Path) -> None:
    (folder / "tokenizer.json").unlink()
    os.mkfifo(folder / "tokenizer.json")


def vocabulary(change: Callable[[dict[str, int]], dict[str, int]]) -> Spoil:
    def spoil(folder: Path) -> None:
        path = folder / "tokenizer.json"
        found = json.loads(path.read_text())
        found["model"]["vocab"] = change(found["model"]["vocab"])
        path.write_text(json.dumps(found))

    return spoil


def a_third_layer(weights: dict[str, torch.Tensor]) -> None:
    weights |= {name.replace(".layer.1.", ".layer.2."): tensor.clone() for name, tensor in weights.items() if ".layer.1." in name}


def only(suffix: str) -> Spoil:
    def spoil(folder: Path) -> None:
        (folder / WEIGHTS).unlink()
        (folder / f"weights{suffix}").write_bytes(b"GGUF")

    return spoil


def pruned(**changes: Any) -> Spoil:
    return content("pruned_heads.json", {**PRUNED, **changes})


def described(**changes: Any) -> Spoil:
    one = {"shape": [16, 16], "axis": 0, "pieces": 4, "width": 4, "kept": [0, 1], **changes}
    return pruned(tensors={QUERY: one})


CASES: dict[str, tuple[Spoil, str]] = {
    "no config": (without("config.json"), "has no config.json. Name the folder that save_pretrained wrote"),
    "config that is cut": (content("config.json", "{"), "is not JSON"),
    "config that is a list": (content("config.json", "[]"), "contains a list, but an object is needed"),
    "config in binary": (content("config.json", b"\xff\xfe\x00"), "is not JSON"),
    "config nested deep": (content("config.json", "[" * 100_000), "is not JSON"),
    "config with NaN": (config(layer_norm_eps=float("nan")), "layer_norm_eps in the config.json of .* is not a number"),
    "a billion layers": (config(num_hidden_layers=10**9), "num_hidden_layers = 1000000000, but no model has that many"),
    "a number of 400 digits": (config(num_hidden_layers=10**400), "no model has that many"),
    "more layers than tensors": (config(num_hidden_layers=5000), "num_hidden_layers = 5000, but the weights are 39 tensors"),
    "a billion labels": (config(num_labels=10**9), "num_labels = 1000000000"),
    "a billion experts inside": (config(text_config={"num_local_experts": 10**9}), "num_local_experts"),
    "vectors of a billion": (config(hidden_size=10**9), "describes 9,000,000,255,000,000,176 numbers, but the weights have"),
    "a vast vocabulary": (config(vocab_size=10**12), "describes .* numbers, but"),
    "vast positions": (config(max_position_embeddings=10**12), "describes .* numbers, but"),
    "no heads": (config(num_attention_heads=0), "could not be loaded"),
    "heads that do not divide": (config(num_attention_heads=3), "not a multiple of the number of attention heads"),
    "no layers": (config(num_hidden_layers=0), "yields no attention"),
    "layers in words": (config(num_hidden_layers="two"), "could not be loaded"),
    "another shape": (config(intermediate_size=25), "weights of another shape"),
    "an unknown kind": (config(model_type="mystery"), "is of the type 'mystery', which transformers .* does not know"),
    "a kind that is a number": (config(model_type=3), "is of the type '3'"),
    "quantised": (config(quantization_config={"quant_method": "gptq", "bits": 4}), "is quantised"),
    "attention from elsewhere": (config(attn_implementation="evil/kernel"), "custom code for its attention"),
    "an activation that is code": (config(hidden_act="os.system"), "could not be loaded"),
    "an adapter": (
        content("adapter_config.json", {"peft_type": "LORA", "base_model_name_or_path": "nobody/nothing"}),
        "contains an adapter",
    ),
    "weights cut short": (lambda folder: os.truncate(folder / WEIGHTS, 5000), "model.safetensors is not a valid safetensors file"),
    "weights that are empty": (content(WEIGHTS, b""), "is not a valid safetensors file"),
    "a header said to be huge": (content(WEIGHTS, struct.pack("<Q", 10**18) + b"{}"), "header too large"),
    "a header longer than the file": (content(WEIGHTS, struct.pack("<Q", 99_000_000) + b"{}"), "invalid header length"),
    "an offset beyond the file": (
        content(WEIGHTS, struct.pack("<Q", 61) + b'{"a":{"dtype":"F32","shape":[9999],"data_offsets":[0,39996]}}'),
        "not a valid",
    ),
    "weights that are missing": (tensors(lambda weights: weights.pop(QUERY)), f"lacks 1 weights .*{QUERY}.*would be random"),
    "a weight of another shape": (tensors(lambda weights: weights.update({QUERY: torch.zeros(3, 3)})), "another shape"),
    "weights of a further layer": (tensors(a_third_layer), "has 16 weights of layers that its config.json does not have"),
    "NaN among the weights": (tensors(lambda weights: weights[QUERY][0, 0].fill_(float("nan"))), f"{QUERY} of .* contains NaN"),
    "infinity among them": (tensors(lambda weights: weights[QUERY][0, 0].fill_(float("-inf"))), f"{QUERY} of .* contains NaN or inf"),
    "weights in GGUF": (only(".gguf"), "only as GGUF"),
    "weights in TensorFlow's format": (only(".h5"), r"has no \*.safetensors weights but weights.h5"),
    "no weights": (without(WEIGHTS), r"has no \*.safetensors weights"),
    "an index out of the folder": (index("../outside.safetensors"), "names '../outside.safetensors', which is not a file in the folder"),
    "an index to the root": (index("/etc/passwd"), "which is not a file in the folder"),
    "an index to nothing": (index("model-9.safetensors"), "which is not a file in the folder"),
    "an index to a name too long for any file": (index("x" * 5000), "which is not a file in the folder"),
    "an index of numbers": (index(5), "does not say where weights are"),
    "an index that is a list": (content(INDEX, "[]"), "contains a list"),
    "a link to a device": (link("tokenizer.json", "/dev/zero"), "cannot be read as a file"),
    "a link to nothing": (link(WEIGHTS, "nowhere"), "cannot be read as a file"),
    "a link to what is none of its business": (link("config.json", "/etc/passwd"), "is not JSON"),
    "a pipe that never ends": (pipe, "cannot be read as a file"),
    "no tokenizer": (without("tokenizer.json", "tokenizer_config.json"), "Put the model's tokenizer.json beside its weights"),
    "half a tokenizer": (lambda folder: os.truncate(folder / "tokenizer.json", 300), "the tokenizer of .* cannot be read"),
    "a tokenizer that is a list": (content("tokenizer.json", "[]"), "the tokenizer of .* cannot be read"),
    "settings of a tokenizer that are a list": (content("tokenizer_config.json", "[]"), "the tokenizer of .* cannot be read"),
    "a larger tokenizer": (
        vocabulary(lambda v: v | {f"w{n}": 72 + n for n in range(9)}),
        "token ids up to 80, but the model has",
    ),
    "a tokenizer of other numbers": (vocabulary(lambda v: {w: n + 10**6 for w, n in v.items()}), "token ids up to 1000071"),
    "pruned heads that are a list": (content("pruned_heads.json", "[]"), "does not say which heads were cut out"),
    "pruned heads nested deep": (content("pruned_heads.json", "[" * 100_000), "does not say which heads were cut out"),
    "pruned heads of another version": (pruned(version="\ud800"), r"has version '\\ud800', but only version 1 is known"),
    "pruned heads beyond the model": (pruned(layers={"encoder/1": {"heads": 10**12, "kept": [1]}}), "describes 1000000000000 heads"),
    "pruned heads that never were": (pruned(layers={"encoder/1": {"heads": 4, "kept": [0, -1]}}), "describes 4 heads"),
    "pruned heads of no layer": (pruned(layers={"encoder/9": {"heads": 4, "kept": [1]}}), "'encoder/9', which the model does not have"),
    "pruned tensors that are vast": (described(shape=[10**6, 10**6]), "which does not fit the model"),
    "pruned tensors along no axis": (described(axis=7), "which does not fit the model"),
    "pruned pieces that are not there": (described(kept=[0, 4]), "which does not fit the model"),
    "pruned pieces twice": (described(kept=[0, 0]), "which does not fit the model"),
    "pruned pieces that are words": (described(kept=["a"]), "which does not fit the model"),
    "pruned tensors that are numbers": (pruned(tensors={QUERY: 5}), "which does not fit the model"),
    "pruned tensors that are whole": (described(), r"has the shape \[16, 16\] where pruned_heads.json says \[8, 16\]"),
}


@pytest.mark.parametrize(("spoil", "says"), CASES.values(), ids=list(CASES))
def test_a_damaged_folder_is_refused_with_one_clear_error(folder: Path, spoil: Spoil, says: str) -> None:
    spoil(folder)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ModelError, match=says) as caught:
        hs.load(folder)
    assert caught.value.remedy
    assert len(str(caught.value)) < 1000
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kB


def test_the_folder_without_damage_is_loaded(folder: Path) -> None:
    assert hs.view(hs.load(folder), "the cats play").grids()


def test_unused_tensors_and_files_and_linked_weights_are_accepted(folder: Path) -> None:
    tensors(lambda weights: weights.update({"cls.predictions.bias": torch.zeros(3)}))(folder)
    content("generation_config.json", "[")(folder)
    shutil.move(folder / WEIGHTS, folder.parent / "blob")
    (folder / WEIGHTS).symlink_to(folder.parent / "blob")  # as in the hub's cache
    assert hs.load(folder).layout.size == 8


class Canary:
    """An object that creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return open, (str(self.path), "w")


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "checkpoint.pth", "last.ckpt"])
def test_pickles_are_never_loaded(folder: Path, tmp_path: Path, name: str) -> None:
    canary = tmp_path / "it ran"
    (folder / name).write_bytes(pickle.dumps(Canary(canary)))
    assert hs.load(folder).layout.size == 8  # beside valid weights, a pickle is ignored
    (folder / WEIGHTS).unlink()
    with pytest.raises(ModelError, match=f"only as a pickle .{name}.*Convert it"):
        hs.load(folder)
    (folder / WEIGHTS).write_bytes((folder / name).read_bytes())  # a pickle with the name of valid weights
    with pytest.raises(ModelError, match="not a valid safetensors"):
        hs.load(folder)
    assert not canary.exists()
    pickle.loads((folder / name).read_bytes()).close()
    assert canary.exists(), "unpickling does not create the file, so nothing was tested"


@pytest.mark.parametrize("known", [True, False])
def test_code_in_a_folder_is_never_imported(folder: Path, tmp_path: Path, known: bool) -> None:
    canary = tmp_path / "it ran"
    (folder / "evil.py").write_text(f"open({str(canary)!r}, 'w')\n")
    (folder / "chat_template.jinja").write_text(f"{{{{ cycler.__init__.__globals__.os.mknod({str(canary)!r}) }}}}")
    config(auto_map={"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}, **({} if known else {"model_type": "mystery"}))(folder)
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    content("tokenizer_config.json", {**settings, "auto_map": {"AutoTokenizer": ["evil.Slow", "evil.Fast"]}, "tokenizer_class": "Evil"})(
        folder
    )
    if known:
        assert hs.view(hs.load(folder), "the cat").grids()
    else:
        with pytest.raises(ModelError, match="needs custom code"):
            hs.load(folder)
        with pytest.raises(ModelError, match="needs custom code"):
            load_tokenizer(folder)
    assert not canary.exists()
    assert "evil" not in sys.modules


def test_a_token_without_an_embedding_is_refused_when_it_occurs(folder: Path) -> None:
    """A token that is added beyond the embedding table is reported when a text contains it."""
    path = folder / "tokenizer.json"
    found = json.loads(path.read_text())
    found["added_tokens"].append({**found["added_tokens"][0], "id": 72, "content": "cats", "special": False})
    path.write_text(json.dumps(found))
    model = hs.load(folder)
    assert hs.view(model, "the dog").grids()
    with pytest.raises(EncodingError, match="contains 'cats', for which the model has no embedding"):
        hs.view(model, "the cats").grids()


@pytest.mark.parametrize("name", ["model.gguf", "weights.safetensors", "."])
def test_a_path_that_is_not_a_model_folder_is_refused(tmp_path: Path, name: str) -> None:
    if name != ".":
        (tmp_path / name).write_bytes(b"GGUF")
    with pytest.raises(ModelError, match=r"is not a valid GGUF file|is not a folder|has no config.json"):
        hs.load(tmp_path / name)


def test_a_hub_name_without_a_network_is_refused_after_one_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")  # no server listens here
    requested: list[str] = []
    original = HfApi.model_info

    def recorded(self: HfApi, name: str, **how: Any) -> Any:
        requested.append(name)
        return original(self, name, **how)

    monkeypatch.setattr(HfApi, "model_info", recorded)
    with pytest.raises(ModelError, match="neither a folder here, nor in the local cache, nor available from the hub"):
        hs.load("nobody/nothing-at-all")
    assert requested == ["nobody/nothing-at-all"]


def test_commands_refuse_a_damaged_folder_and_print_nothing_else(folder: Path) -> None:
    config(num_hidden_layers=10**9)(folder)
    for command in (["view", "the cat", "--model"], ["run", "--out", str(folder.parent / "run"), "--model"], ["serve", "--model"]):
        result = CliRunner().invoke(app, [*command, str(folder)])
        assert isinstance(result.exception, ModelError)  # which `main` prints in one line
        assert result.output == ""
