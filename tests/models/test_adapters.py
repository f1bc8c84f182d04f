"""PEFT adapters in folders and in memory: headscope merges them, and the maps equal those of PEFT's model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModel, AutoModelForMaskedLM, AutoModelForSequenceClassification, BertConfig, BertForPreTraining

import headscope as hs
from headscope.errors import ModelError
from helpers.families import wordpiece
from helpers.in_memory import eager_maps, maps_of, state_of

peft = pytest.importorskip("peft", reason="peft is not installed")

SHAPE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24, "max_position_embeddings": 64}
FEW: dict[str, Any] = {"limit": 3, "replicates": 0, "gallery": 0, "max_length": 48, "allow_unknown": True}


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models") / "small-base"
    torch.manual_seed(0)
    BertForPreTraining(BertConfig(vocab_size=len(wordpiece()), initializer_range=0.5, **SHAPE)).save_pretrained(folder)
    wordpiece().save_pretrained(folder)
    return folder


def adapted(base: Path, kind: Any = AutoModelForMaskedLM, **settings: Any) -> Any:
    """A model with a LoRA adapter whose random weights change the maps."""
    network = kind.from_pretrained(base, attn_implementation="eager")
    config = peft.LoraConfig(r=3, lora_alpha=6, target_modules=["query", "value", "dense"], **settings)
    model = peft.get_peft_model(network, config)
    torch.manual_seed(1)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            if "lora_" in name or "modules_to_save" in name:
                tensor.normal_(std=0.3)
    return model.eval()


def test_a_folder_a_peft_model_and_a_merged_model_give_the_same_maps(base: Path, tmp_path: Path) -> None:
    model = adapted(base)
    model.save_pretrained(tmp_path / "lora")
    before = state_of(model)
    maps = {"folder": maps_of(hs.load(tmp_path / "lora")), "unmerged": maps_of(hs.load(model, wordpiece()))}
    assert state_of(model) == before
    expected = eager_maps(model)  # computed by PEFT, which adds the adapter to each layer's output
    assert np.abs(expected - maps_of(hs.load(base))).max() > 0.01
    maps["merged"] = maps_of(hs.load(model.merge_and_unload(), wordpiece()))
    for way, values in maps.items():
        assert np.abs(values - expected).max() < 1e-5, way


def test_the_signature_names_base_and_adapter(base: Path, tmp_path: Path) -> None:
    model = adapted(base)
    model.save_pretrained(tmp_path / "my-lora")
    by_name = hs.run(tmp_path / "my-lora", "sampler", ["saliency"], **FEW)
    assert "|base:small-base|adapter:my-lora|" in by_name.signature
    in_memory = hs.run((model, wordpiece()), "sampler", ["saliency"], **FEW)
    assert "|object:PeftModel|base:small-base|adapter:default|" in in_memory.signature
    first, second = (np.array(run["saliency"].table["value"]) for run in (by_name, in_memory))
    assert np.allclose(first, second, atol=1e-6)


def test_an_adapter_loaded_by_transformers_counts_only_while_it_is_enabled(base: Path, tmp_path: Path) -> None:
    model = adapted(base)
    model.save_pretrained(tmp_path / "lora")
    network = AutoModelForMaskedLM.from_pretrained(base)
    network.load_adapter(str(tmp_path / "lora"))
    before = state_of(network)
    assert np.abs(maps_of(hs.load(network)) - eager_maps(model)).max() < 1e-5
    assert state_of(network) == before
    network.disable_adapters()
    assert np.array_equal(maps_of(hs.load(network)), maps_of(hs.load(base)))


@pytest.mark.parametrize("head", [False, True])
def test_an_adapter_of_the_body_is_merged_with_and_without_a_prediction_head(base: Path, tmp_path: Path, head: bool) -> None:
    model = adapted(base, AutoModel, exclude_modules=["pooler.dense"])
    model.save_pretrained(tmp_path / "lora")
    loaded = hs.load(tmp_path / "lora", head=head)
    assert np.abs(maps_of(loaded) - eager_maps(model)).max() < 1e-5
    assert loaded.objective == ("masked" if head else None)


def test_a_classification_head_saved_in_the_adapter_is_loaded(base: Path, tmp_path: Path) -> None:
    model = _classifier(base)
    model.save_pretrained(tmp_path / "lora")
    loaded = hs.load(tmp_path / "lora", head=True)
    ids = torch.arange(5, 20)[None]
    with torch.no_grad():
        assert loaded.whole is not None
        assert torch.allclose(loaded.whole(ids).logits, model(ids).logits, atol=1e-5)
    assert (loaded.objective, loaded.answers) == ("classes", 3)
    assert np.abs(maps_of(hs.load(tmp_path / "lora")) - eager_maps(model)).max() < 1e-5


def _classifier(base: Path) -> Any:
    class Three:
        @staticmethod
        def from_pretrained(folder: Path, **how: Any) -> Any:
            return AutoModelForSequenceClassification.from_pretrained(folder, num_labels=3, **how)

    return adapted(base, Three, task_type="SEQ_CLS")


def test_adapters_that_cannot_be_read_are_refused_in_one_line(base: Path, tmp_path: Path) -> None:
    folder = tmp_path / "lora"
    adapted(base).save_pretrained(folder)
    config = json.loads((folder / "adapter_config.json").read_text())

    def refused(says: str, **changes: Any) -> None:
        (folder / "adapter_config.json").write_text(json.dumps({**config, **changes}))
        with pytest.raises(ModelError, match=says) as caught:
            hs.load(folder)
        assert caught.value.remedy
        assert "\n" not in str(caught.value)

    refused(
        "contains an adapter of nobody/nothing, which is neither a folder here nor in the local", base_model_name_or_path="nobody/nothing"
    )
    refused("contains an adapter of /nowhere/at/all", base_model_name_or_path="/nowhere/at/all")
    refused("does not name a base model", base_model_name_or_path=None)
    refused("could not be loaded .*size mismatch", base_model_name_or_path="mini")
    refused("lacks 4 weights .first: .*attention.self.key.lora_A.weight", target_modules=["query", "key", "value", "dense"])
    refused("sets a rank of more than 10,000", r=10**9)
    refused("needs custom code", megatron_config={"a": 1}, megatron_core="evil")
    (folder / "adapter_model.safetensors").rename(folder / "adapter_model.bin")
    refused("without adapter_model.safetensors")
    shape = {"num_virtual_tokens": 2, "token_dim": 16, "num_attention_heads": 2, "num_layers": 2}
    prompts = peft.get_peft_model(AutoModel.from_pretrained(base), peft.PromptTuningConfig(task_type="FEATURE_EXTRACTION", **shape))
    with pytest.raises(ModelError, match="is of the kind PROMPT_TUNING, which cannot be merged"):
        hs.load(prompts, wordpiece())
