"""Models in memory: they are measured and left unchanged, or refused in one line if they cannot be read."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    BertForSequenceClassification,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
    pipeline,
)

import headscope as hs
from headscope.errors import HeadscopeError, HeadscopeWarning, ModelError, RunError
from headscope.models.loading.locate import locate
from headscope.replication import study as studying
from headscope.replication.recipe import read_recipe
from helpers import recipe_material
from helpers.families import wordpiece
from helpers.in_memory import eager_maps, maps_of, state_of

SHAPE = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24, "max_position_embeddings": 64}
FEW: dict[str, Any] = {"limit": 3, "replicates": 0, "gallery": 0, "max_length": 48, "allow_unknown": True}


@pytest.fixture
def tokenizer() -> Any:
    return wordpiece()


def bert(kind: Any = BertForMaskedLM, **settings: Any) -> Any:
    torch.manual_seed(0)
    return kind(BertConfig(vocab_size=len(wordpiece()), initializer_range=0.5, **SHAPE, **settings))


@pytest.fixture
def network() -> Any:
    """A model in an unusual state: in training mode, with some frozen weights, with hooks, and with SDPA attention."""
    network = bert(attn_implementation="sdpa").train()
    network.bert.encoder.layer[0].eval()
    network.bert.embeddings.word_embeddings.weight.requires_grad_(False)
    network.bert.encoder.layer[1].register_forward_hook(lambda *_: None)
    network.register_forward_pre_hook(lambda *_: None)
    return network


@pytest.fixture
def folder(network: Any, tokenizer: Any, tmp_path: Path) -> Path:
    network.save_pretrained(tmp_path / "saved")
    tokenizer.save_pretrained(tmp_path / "saved")
    return tmp_path / "saved"


def test_maps_equal_those_of_the_same_weights_in_a_folder(network: Any, tokenizer: Any, folder: Path) -> None:
    given, named = hs.load(network, tokenizer), hs.load(folder)
    assert np.array_equal(maps_of(given), maps_of(named))
    assert given.fingerprint == named.fingerprint
    eager = AutoModelForMaskedLM.from_pretrained(folder, attn_implementation="eager")
    assert np.abs(maps_of(given) - eager_maps(eager)).max() < 1e-6
    runs = [hs.run(model, "sampler", ["entropy", "tokens"], **FEW) for model in ((network, tokenizer), hs.load(network, tokenizer), folder)]
    tables = [run["entropy"].table.to_pandas() for run in runs]
    assert tables[0].equals(tables[2])
    assert tables[1].equals(tables[2])
    assert "|object:BertForMaskedLM|" in runs[0].signature
    assert "object" not in runs[2].signature


@pytest.mark.parametrize("kind", ["t5", "llama"])
def test_runs_of_encoder_decoders_and_decoders_equal_those_of_their_folders(kind: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    tokenizer = wordpiece()
    rows = len(tokenizer)
    if kind == "t5":
        shape = {"d_model": 16, "d_kv": 8, "d_ff": 24, "num_layers": 2, "num_heads": 2, "decoder_start_token_id": 0}
        network: Any = T5ForConditionalGeneration(T5Config(vocab_size=rows, **shape))
    else:
        network = LlamaForCausalLM(LlamaConfig(vocab_size=rows, num_key_value_heads=1, **SHAPE))
    network.save_pretrained(tmp_path / "saved")
    tokenizer.save_pretrained(tmp_path / "saved")
    before = state_of(network)
    given, named = (hs.run(model, "sampler", ["entropy"], **FEW) for model in ((network, tokenizer), tmp_path / "saved"))
    assert given["entropy"].table.to_pandas().equals(named["entropy"].table.to_pandas())
    assert state_of(network) == before


def several_studies(network: Any, tokenizer: Any) -> None:
    model = (network, tokenizer)
    hs.run(model, "sampler", ["saliency", "entropy"], **FEW)
    hs.flow(model, "sampler", measures=["A", "G"], norm="sum", parts=["trees"], limit=2, max_length=32, replicates=0)
    with pytest.warns(HeadscopeWarning, match="no better than an even guess"):
        hs.ablate(model, "sampler", parts=["layers", "importance"], limit=2, max_length=32, replicates=0)
    hs.view(model, "the cat plays").grids()


def interrupted(error: type[BaseException], place: str) -> Callable[[Any, Any], None]:
    def run(network: Any, tokenizer: Any) -> None:
        calls = []

        def fail(*_: Any) -> None:
            calls.append(1)
            if len(calls) > 5:  # a dry run checks the model first
                raise error

        handle = network.bert.encoder.layer[1].attention.self.register_forward_hook(fail)
        try:
            with pytest.raises((error, HeadscopeError)):
                hs.run((network, tokenizer), "sampler", [place], **FEW)
        finally:
            handle.remove()
        assert len(calls) > 5

    return run


WAYS = {
    "run, flow, ablation and view": several_studies,
    "an error in a pass": interrupted(RuntimeError, "entropy"),
    "an error in a backward pass": interrupted(RuntimeError, "saliency"),
    "Ctrl-C in a pass": interrupted(KeyboardInterrupt, "entropy"),
    "Ctrl-C in a backward pass": interrupted(KeyboardInterrupt, "saliency"),
}


@pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
def test_the_model_and_its_tokenizer_are_left_unchanged(network: Any, tokenizer: Any, way: Callable[[Any, Any], None]) -> None:
    tokenizer.backend_tokenizer.enable_truncation(max_length=9)
    before, rules = state_of(network), tokenizer.backend_tokenizer.to_str()
    way(network, tokenizer)
    assert state_of(network) == before
    assert tokenizer.backend_tokenizer.to_str() == rules


def test_weights_are_shared_and_hooks_of_the_user_stay_active(network: Any, tokenizer: Any) -> None:
    model = hs.load(network, tokenizer)
    before = maps_of(model)
    assert {tensor.data_ptr() for tensor in model.network.parameters()} <= {tensor.data_ptr() for tensor in network.parameters()}
    handle = network.bert.embeddings.register_forward_hook(lambda module, args, output: output * 0)
    steered = hs.load(network, tokenizer)
    handle.remove()
    assert np.abs(maps_of(steered) - before).max() > 0.01
    assert np.array_equal(maps_of(hs.load(network, tokenizer)), before)


def test_random_weights_are_drawn_in_a_copy(network: Any, tokenizer: Any, folder: Path) -> None:
    before = state_of(network)
    drawn = hs.load(network, tokenizer, random=3)
    assert np.array_equal(maps_of(drawn), maps_of(hs.load(folder, random=3)))
    assert state_of(network) == before
    run = hs.run((network, tokenizer), "sampler", ["entropy"], weights="random", **FEW)
    assert run.results.manifest["identity"]["model"] == hs.load(folder, random=0).fingerprint


def test_a_missing_tokenizer_is_found_in_the_models_folder_or_refused(network: Any, tokenizer: Any, folder: Path) -> None:
    with pytest.raises(ModelError, match=r"BertForMaskedLM is given without its tokenizer.*hs.load\(model, tokenizer\)"):
        hs.load(network)
    with pytest.raises(ModelError, match="given without its tokenizer"):
        hs.run(network)
    loaded = AutoModel.from_pretrained(folder)
    assert hs.load(loaded).tokenizer.hf.get_vocab() == tokenizer.get_vocab()
    assert np.array_equal(maps_of(hs.load(network, folder)), maps_of(hs.load(loaded)))
    with pytest.raises(ModelError, match="has token ids up to"):
        hs.load(network, AutoTokenizer.from_pretrained(locate("mini").place))


def test_a_pipeline_has_the_maps_of_its_model_and_is_left_unchanged(network: Any, tokenizer: Any) -> None:
    filling = pipeline("fill-mask", model=network, tokenizer=tokenizer)
    before = state_of(network)
    model = hs.load(filling)
    assert np.array_equal(maps_of(model), maps_of(hs.load(network, tokenizer)))
    assert model.origin == {"object": "FillMaskPipeline"}
    assert "|object:FillMaskPipeline|" in hs.run(filling, "sampler", ["saliency"], **FEW).signature
    assert state_of(network) == before


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (3, "int is not a model"),
        (None, "NoneType is not a model"),
        (BertConfig(), "transformers BertConfig is not a model"),
        (torch.nn.Linear(2, 2), "torch Linear is not a model"),
        (BertForMaskedLM, "type is not a model"),
        ((1, 2, 3), "a tuple of 3 elements is not a model"),
        ((wordpiece(), bert()), "transformers BertTokenizer is not a model"),
        ((bert(), 5), "int is not a tokenizer of BertForMaskedLM"),
        ((bert(), "nowhere"), "nowhere is not a folder with a tokenizer"),
        ((bert().double(), wordpiece()), "weights of the type float64"),
        ((bert().to("meta"), wordpiece()), "some weights of BertForMaskedLM are not in the memory of a device"),
    ],
    ids=str,
)
@pytest.mark.parametrize("function", [hs.load, hs.run, hs.flow, hs.plan], ids=lambda function: function.__name__)
def test_objects_that_cannot_be_read_as_a_model_are_refused_in_one_line(function: Any, given: Any, says: str) -> None:
    with pytest.raises(ModelError, match=says) as caught:
        function(given)
    assert caught.value.remedy
    assert "\n" not in str(caught.value)


def test_settings_that_do_not_apply_to_a_model_in_memory_are_refused(network: Any, tokenizer: Any) -> None:
    with pytest.raises(ModelError, match="data type of a model in memory cannot be changed"):
        hs.load(network, tokenizer, dtype="float16")
    with pytest.raises(ModelError, match=r"is in memory on cpu, not on cuda.*model.to\('cuda'\)"):
        hs.load(network, tokenizer, device="cuda")
    with pytest.raises(ModelError, match=r"mini has its own tokenizer, and a second one was given.*device='cpu'"):
        hs.load("mini", "cpu")
    for engine in ("processes", "ray"):
        with pytest.raises(RunError, match=f"the {engine} engine cannot send a loaded model to its workers.*save_pretrained"):
            hs.run((network, tokenizer), engine=engine)
    with pytest.raises(ModelError, match=r"BertForPreTraining predicts several things at once. Load it as BertForMaskedLM"):
        hs.load(bert(BertForPreTraining), tokenizer, head=True)
    with pytest.raises(ModelError, match="is BertModel, which predicts neither words nor classes"):
        hs.load(network.bert, tokenizer, head=True)


def test_a_classifier_equals_its_folder_with_and_without_its_head(tokenizer: Any, tmp_path: Path) -> None:
    network = bert(BertForSequenceClassification, num_labels=3)
    network.save_pretrained(tmp_path / "saved")
    tokenizer.save_pretrained(tmp_path / "saved")
    for head in (False, True):
        given, named = hs.load(network, tokenizer, head=head), hs.load(tmp_path / "saved", head=head)
        assert (given.fingerprint, given.objective, given.answers) == (named.fingerprint, named.objective, named.answers)


def test_twins_and_prune_accept_models_in_memory(network: Any, tokenizer: Any, folder: Path, tmp_path: Path) -> None:
    few: dict[str, Any] = {"limit": 6, "max_length": 48, "replicates": 0}
    twins = hs.twins((network, tokenizer), folder, "sampler", **few, control=False)
    assert max(twins.table("twins")["distance"]) < 1e-12
    pruned = hs.prune((network, tokenizer), 0.5, tmp_path / "smaller", **few)
    named = hs.prune(folder, 0.5, **few)
    assert pruned.smaller.layout.size == 2
    assert pruned.scores.to_pandas().equals(named.scores.to_pandas())
    assert hs.load(tmp_path / "smaller").layout.size == 2


def test_a_replication_with_a_model_in_memory_equals_that_with_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe, digest = read_recipe("hewitt2019")
    monkeypatch.setattr(studying, "read_recipe", lambda name: (recipe_material.quick(recipe), digest))
    folder, corpus = recipe_material.save_small(tmp_path / "small"), recipe_material.save_slice(tmp_path)
    model = AutoModelForMaskedLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    before = state_of(model[0])
    given = hs.replicate("hewitt2019", model, corpus, tmp_path / "given")
    named = hs.replicate("hewitt2019", folder, corpus, tmp_path / "named")
    assert given["claims"].to_pandas().equals(named["claims"].to_pandas())
    assert state_of(model[0]) == before


def test_rerun_repeats_a_run_in_memory_only_if_the_same_model_is_given(network: Any, tokenizer: Any, tmp_path: Path) -> None:
    run = tmp_path / "run"
    hs.run((network, tokenizer), "sampler", ["saliency"], run, **FEW)
    assert hs.rerun(run, model=(network, tokenizer)).identical
    with pytest.raises(RunError, match=r"was made with a model in memory.*headscope.rerun\(.*model=\(model, tokenizer\)\)"):
        hs.rerun(run)
    changed = deepcopy(network)
    with torch.no_grad():
        changed.bert.encoder.layer[0].attention.self.query.bias[0] += 1
    with pytest.raises(RunError, match="its fingerprint was"):
        hs.rerun(run, model=(changed, tokenizer))
