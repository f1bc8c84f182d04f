"""Pruned heads: outputs equal those with gates of 0, in memory, from disk, and in code that uses only transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
import torch
import transformers
from safetensors.torch import load_file

import headscope as hs
from headscope.core.heads import HeadId
from headscope.errors import ModelError
from headscope.models.gates import gated, gates_without
from headscope.models.model import Model
from headscope.models.prune import FILE, prune, save
from headscope.models.sites import find_sites
from helpers.architectures import build, inputs
from helpers.predicting import TINY, encoded, loaded

PRUNABLE = [name for name in TINY if name not in ("albert", "mpnet", "deberta")]


def chosen(model: Model) -> list[HeadId]:
    """Some heads of every site but the last, in different numbers, and all of the second layer of the first kind."""
    first = model.sites[0].kind
    heads = []
    for number, site in enumerate(model.sites[:-1]):
        group = site.heads // site.kv_heads
        whole = site.kind == first and site.layer == 1
        dropped = range(site.heads) if whole else range(site.heads - group * (1 + number % 2), site.heads) if group > 1 else [number % 3, 1]
        heads += [HeadId(site.kind, site.layer, head) for head in {*dropped} if whole or len({*dropped}) < site.heads]
    return heads


def logits(model: Model, texts: list[Any] | None = None) -> torch.Tensor:
    assert model.whole is not None
    batch = model.inputs(encoded(model) if texts is None else texts)
    with torch.no_grad():
        found: torch.Tensor = model.whole(**batch, use_cache=False).logits
    if model.objective == "classes":
        return found
    return found * batch.get("decoder_attention_mask", batch["attention_mask"])[:, :, None]


def parameters(network: Any) -> int:
    return sum(parameter.numel() for parameter in network.parameters())


@pytest.mark.parametrize("name", PRUNABLE)
def test_a_pruned_model_equals_closed_gates_in_memory_from_disk_and_in_plain_code(tmp_path: Path, name: str) -> None:
    model = loaded(tmp_path, name)
    heads = chosen(model)
    with gated(model, gates_without(model, heads)):
        expected = logits(model)
    smaller = prune(model, heads)
    assert not torch.allclose(logits(model), expected, atol=1e-2)
    torch.testing.assert_close(logits(smaller), expected, rtol=1e-5, atol=1e-5 * max(1, float(expected.abs().max())))
    assert smaller.pruning is not None
    assert sorted(smaller.pruning.removed()) == sorted(heads)
    assert parameters(smaller.whole) < parameters(model.whole)
    assert smaller.layout.size == model.layout.size - len(heads)
    assert len(smaller.sites) == len(model.sites) - 1

    folder = save(smaller, tmp_path / "smaller")
    again = hs.load(folder, device="cpu", head=True)
    assert again.pruning == smaller.pruning
    assert again.sites == smaller.sites
    torch.testing.assert_close(logits(again), logits(smaller), rtol=0, atol=0)
    assert parameters(again.whole) == parameters(smaller.whole)
    torch.testing.assert_close(by_plain_code(folder, name, model), expected, rtol=1e-4, atol=1e-4)
    with torch.no_grad():
        batch = model.inputs(encoded(model))
        bare = hs.load(folder, device="cpu")
        one, other = (of.network.encoder if name == "t5" else of.network for of in (bare, again))  # T5's base model includes its head
        batch = {key: given for key, given in batch.items() if name != "t5" or not key.startswith("decoder")}
        torch.testing.assert_close(one(**batch)[0], other(**batch)[0], rtol=1e-5, atol=1e-5)


def saved_copy(model: Model, path: Path, keep_shape: bool) -> Path:
    """Save the model twice, into a new folder and over the saved files, and return the folder."""
    save(model, path, keep_shape)
    return save(model, path, keep_shape)


@pytest.mark.parametrize("name", ["bert", "gpt2", "llama", "bart"])
def test_the_loader_in_the_readme_has_the_same_outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """The code block is run unchanged. It uses transformers, and not headscope."""
    model = loaded(tmp_path, name)
    heads = chosen(model)
    smaller = prune(model, heads)
    folder = saved_copy(smaller, tmp_path / "smaller", keep_shape=False)
    text = (folder / "README.md").read_text()
    dropped = [head.head + 1 for head in sorted(heads) if (head.kind, head.layer) == (model.sites[0].kind, 0)]
    assert f"| {model.sites[0].name} | 4 | {', '.join(map(str, dropped))} |" in text
    code = text.split("```python\n")[1].split("```")[0]
    assert "headscope" not in code
    monkeypatch.chdir(folder)
    names: dict[str, Any] = {}
    exec(code, names)
    plain = Model(name, names["model"].base_model, model.tokenizer, model.sites, model.capture, names["model"], model.objective)
    expected = logits(hs.load(folder, device="cpu", head=True))
    torch.testing.assert_close(logits(plain), expected, rtol=1e-5, atol=1e-5 * max(1, float(expected.abs().max())))
    with pytest.raises(RuntimeError, match="mismatched"):
        getattr(transformers, TINY[name][1]).from_pretrained(folder)


@pytest.mark.parametrize("name", PRUNABLE)
def test_a_folder_that_keeps_its_shape_has_the_same_outputs_in_transformers(tmp_path: Path, name: str) -> None:
    model = loaded(tmp_path, name)
    heads = chosen(model)
    with gated(model, gates_without(model, heads)):
        expected = logits(model)
    folder = saved_copy(prune(model, heads), tmp_path / "zeroed", keep_shape=True)
    assert not (folder / FILE).exists()
    assert "AutoModel.from_pretrained" in (folder / "README.md").read_text()
    network, info = getattr(transformers, TINY[name][1]).from_pretrained(folder, output_loading_info=True)
    assert not any(info.values()), info
    plain = Model(name, network.eval().base_model, model.tokenizer, model.sites, model.capture, network, model.objective)
    close: dict[str, Any] = {"rtol": 1e-5, "atol": 1e-5 * max(1, float(expected.abs().max()))}
    torch.testing.assert_close(logits(plain), expected, **close)
    ours = hs.load(folder, device="cpu", head=True)
    assert ours.pruning is None
    assert ours.sites == model.sites
    torch.testing.assert_close(logits(ours), expected, **close)


def test_a_readme_of_another_author_is_kept(tmp_path: Path) -> None:
    model = loaded(tmp_path, "bert")
    (tmp_path / "smaller").mkdir()
    (tmp_path / "smaller" / "README.md").write_text("# My model")
    save(prune(model, chosen(model)), tmp_path / "smaller")
    assert (tmp_path / "smaller" / "README.md").read_text() == "# My model"


def by_plain_code(folder: Path, name: str, model: Model) -> torch.Tensor:
    """The logits of a saved folder, rebuilt from `pruned_heads.json` without headscope's loader."""
    said = json.loads((folder / "pruned_heads.json").read_text())
    weights = load_file(folder / "model.safetensors")
    for tensor, cut in said["tensors"].items():
        whole = torch.zeros(cut["shape"])
        for place, piece in enumerate(cut["kept"]):
            source, target = (slice(at * cut["width"], (at + 1) * cut["width"]) for at in (place, piece))
            if cut["axis"] == 0:
                whole[target] = weights[tensor][source]
            else:
                whole[:, target] = weights[tensor][:, source]
        weights[tensor] = whole
    kind = getattr(transformers, TINY[name][1])
    network = kind.from_pretrained(None, config=transformers.AutoConfig.from_pretrained(folder), state_dict=weights).eval()
    return logits(Model(name, network.base_model, model.tokenizer, model.sites, model.capture, network, model.objective))


@pytest.mark.parametrize("name", ["bert", "gpt_neox", "modernbert", "qwen3", "mistral", "opt", "electra", "m2m_100", "mt5"])
def test_pruning_equals_closed_gates_on_further_architectures(name: str) -> None:
    network = build(name)
    model = Model(name, network, cast("Any", None), *find_sites(network))
    heads = [head for head in chosen(model) if name not in ("qwen3", "mistral") or head.head >= 2]
    smaller = prune(model, heads)
    batch = inputs(network)
    mask = batch.get("decoder_attention_mask", batch["attention_mask"])[:, :, None]
    with torch.no_grad(), gated(model, gates_without(model, heads)):
        expected = network(**batch, use_cache=False)[0] * mask
    with torch.no_grad():
        torch.testing.assert_close(smaller.network(**batch, use_cache=False)[0] * mask, expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", ["t5", "marian", "llama", "gpt2"])
def test_text_generated_with_a_cache_equals_that_with_closed_gates(tmp_path: Path, name: str) -> None:
    model = loaded(tmp_path, name, double=name != "t5")
    heads = chosen(model)
    smaller = prune(model, heads)
    batch = {key: value for key, value in model.inputs(encoded(model)[:1]).items() if not key.startswith("decoder")}
    options: dict[str, Any] = {"max_new_tokens": 8, "min_new_tokens": 8, "do_sample": False, "num_beams": 2, "pad_token_id": 0}
    with gated(model, gates_without(model, heads)):
        expected = cast("Any", model.whole).generate(**batch, **options)
    torch.testing.assert_close(cast("Any", smaller.whole).generate(**batch, **options), expected, rtol=0, atol=0)


def test_maps_of_the_remaining_heads_equal_those_with_closed_gates(tmp_path: Path) -> None:
    model = loaded(tmp_path, "bert")
    heads = [HeadId.parse(name) for name in ("1-2", "2-1", "2-2", "2-3", "2-4")]
    smaller = prune(model, heads)
    assert [(site.name, site.heads) for site in smaller.sites] == [("encoder/1", 3), ("encoder/3", 4)]
    batch = model.inputs(encoded(model))
    expected: dict[int, torch.Tensor] = {}
    found: dict[int, torch.Tensor] = {}
    with gated(model, gates_without(model, heads)):
        model.stream(batch, lambda index, maps, *_: expected.update({index: maps.clone()}))
    smaller.stream(batch, lambda index, maps, *_: found.update({index: maps.clone()}))
    torch.testing.assert_close(found[0], expected[0][:, [0, 2, 3]])
    torch.testing.assert_close(found[1], expected[2])
    assert find_sites(smaller.network)[0] == smaller.sites


@pytest.mark.parametrize("name", ["bert", "t5"])
def test_pruning_twice_equals_pruning_all_heads_at_once(tmp_path: Path, name: str) -> None:
    model = loaded(tmp_path, name)
    once = prune(model, [HeadId.parse("1-2"), HeadId.parse("3-4")])
    twice = prune(once, [HeadId.parse("1-2"), HeadId.parse("2-1")])  # its 1-2 is the third head of the whole model's first layer
    at_once = prune(model, [HeadId.parse(head) for head in ("1-2", "1-3", "3-4", "2-1")])
    assert twice.pruning == at_once.pruning
    assert twice.pruning is not None
    assert str(twice.pruning.original(HeadId.parse("1-2"))) == "1-4"
    torch.testing.assert_close(logits(twice), logits(at_once), rtol=0, atol=0)
    again = hs.load(save(twice, tmp_path / "twice"), device="cpu", head=True)
    torch.testing.assert_close(logits(again), logits(at_once), rtol=0, atol=0)


def test_heads_that_share_weights_are_pruned_only_together(tmp_path: Path) -> None:
    model = loaded(tmp_path, "llama")
    with pytest.raises(ModelError, match="decoder/1 has 2 heads to one key and value, which are cut out together"):
        prune(model, [HeadId("decoder", 0, 1)])
    smaller = prune(model, [HeadId("decoder", 0, 2), HeadId("decoder", 0, 3)])
    assert (smaller.sites[0].heads, smaller.sites[0].kv_heads) == (2, 1)
    albert = loaded(tmp_path, "albert")
    with pytest.raises(ModelError, match="share their weights, so that encoder/2 cannot lose other heads"):
        prune(albert, [HeadId.parse("1-1")])
    smaller = prune(albert, [HeadId("encoder", layer, 0) for layer in range(3)])
    with gated(albert, gates_without(albert, [HeadId("encoder", layer, 0) for layer in range(3)])):
        expected = logits(albert)
    torch.testing.assert_close(logits(smaller), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("deberta-v2", "bypasses transformers' attention interface"),
        ("olmo2", "q_norm.weight of decoder/1 in Olmo2Model belongs to all heads together"),
        ("gpt_oss", "sinks of decoder/1 in GptOssModel belongs to all heads together"),
        ("phi3", "the projections of decoder/1 in Phi3Model are not known by name"),
    ],
)
def test_architectures_that_cannot_be_pruned_are_refused(name: str, message: str) -> None:
    network = build(name)
    model = Model(name, network, cast("Any", None), *find_sites(network))
    with pytest.raises(ModelError, match=message):
        prune(model, [HeadId(model.sites[0].kind, 0, head) for head in (0, 1)])


def test_pruning_is_refused_if_its_outputs_differ_from_those_with_closed_gates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from headscope.models import projections

    monkeypatch.setattr(projections.Pieces, "places", lambda self: torch.arange(len(self.kept) * self.width))
    with pytest.raises(ModelError, match="gives something else when heads are cut out than when they are switched off"):
        prune(loaded(tmp_path, "bert"), [HeadId.parse("1-1")])


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ("{", "does not say which heads were cut out"),
        ("[]", "does not say which heads were cut out"),
        ('{"version": 1, "layers": {"encoder/1": {"kept": [1]}}, "tensors": {}}', "does not say which heads were cut out"),
        ('{"version": 2}', "has version 2, but only version 1 is known"),
        (
            '{"version": 1, "layers": {"encoder/1": {"heads": 9, "kept": [1]}}, "tensors": {}}',
            "9 heads in encoder/1, which has 4",
        ),
        ('{"version": 1, "layers": {"encoder/1": {"heads": 4, "kept": [5]}}, "tensors": {}}', "describes 4 heads in encoder/1"),
    ],
)
def test_an_invalid_file_of_pruned_heads_is_refused(tmp_path: Path, said: str, message: str) -> None:
    folder = save(loaded(tmp_path, "bert"), tmp_path / "model")
    assert not (folder / FILE).exists()
    (folder / FILE).write_text(said)
    with pytest.raises(ModelError, match=message):
        hs.load(folder, device="cpu")
