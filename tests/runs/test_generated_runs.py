"""Runs over generated text: numbers equal those of the maps of that text, and do not depend on batches, shards, engines
and interruptions.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import headscope as hs
from headscope.core.tally import Tally
from headscope.corpora import read
from headscope.engine.generating import generated_texts
from headscope.engine.shards import encoder_for
from headscope.engine.spec import make_spec
from headscope.engine.worker import Worker, WorkerSetup, runner_for
from headscope.errors import HeadscopeError, RunError
from headscope.models.generation import greedy
from headscope.models.model import Model
from headscope.report.summary import sentences
from headscope.runs import execute
from helpers.stopping import stopped

pytestmark = pytest.mark.filterwarnings("ignore::headscope.errors.HeadscopeWarning")
SETTINGS: dict[str, Any] = {"generate": 5, "prompt_tokens": 7, "limit": 6, "replicates": 10}


@pytest.fixture(scope="module")
def run(writer: Model, tmp_path_factory: pytest.TempPathFactory) -> hs.Run:
    return hs.run(writer, "sampler", ["entropy", "sequences"], tmp_path_factory.mktemp("generated") / "run", gallery=3, **SETTINGS)


def rows(run: Any) -> list[dict[str, Any]]:
    results = run.results if isinstance(run, hs.Run) else run
    return list(results["generated"])


def test_each_text_is_its_prompt_and_the_greedy_continuation(run: hs.Run, writer: Model) -> None:
    tokenizer = writer.tokenizer
    for row in rows(run):
        prompt = [0, *tokenizer.hf(row["prompt"], add_special_tokens=False)["input_ids"]]
        assert len(prompt) == row["prompt_tokens"] <= 7 + 1, "whole words, and the opening token"
        (written,) = greedy(writer, [prompt], 5)
        assert row["tokens"] == " ".join(map(str, written.ids))
        assert row["generated"] == tokenizer.decode_after(prompt[-1], written.ids)
        assert (row["stopped"], row["generated_tokens"]) == (written.stopped, len(written.ids))
    assert len(rows(run)) == 6


def test_numbers_equal_those_of_the_maps_of_the_generated_text(run: hs.Run) -> None:
    """Maps of eager attention on the token ids of the table, measured as given maps."""
    model = hs.load("mini-decoder", head=True)
    assert model.whole is not None
    model.whole.set_attn_implementation("eager")
    maps, tokens, documents = [], [], []
    for row in rows(run):
        prompt = [0, *model.tokenizer.hf(row["prompt"], add_special_tokens=False)["input_ids"]]
        ids = [*prompt, *map(int, row["tokens"].split())]
        with torch.inference_mode():
            output = model.whole(input_ids=torch.tensor([ids]), output_attentions=True, use_cache=False)
        maps.append(np.stack([layer[0].numpy() for layer in output.attentions]))
        tokens.append([str(token) for token in ids])
        documents.append(row["document"])
    roles = [["cls", *["word"] * (len(text) - 1)] for text in tokens]
    plain = hs.measure(maps, tokens, ["entropy"], roles=roles, documents=documents, causal=True, replicates=10, gallery=0)
    for column in ("value", "low", "high"):
        assert_allclose(run.results["entropy"][column], plain.results["entropy"][column], atol=2e-5)
    assert_array_equal(run.results["entropy"]["n"], plain.results["entropy"]["n"])


def test_all_outputs_report_that_the_text_is_generated(run: hs.Run, headscope: Callable[..., tuple[int, str, str]]) -> None:
    manifest = run.results.manifest
    assert "|generate:5|prompt_tokens:7|" in run.signature
    assert run.results["entropy"].metadata["signature"] == run.signature
    written = sum(row["generated_tokens"] for row in rows(run))
    assert manifest["generated"]["tokens"] == written == 30
    assert manifest["counts"]["tokens"] == written + sum(row["prompt_tokens"] for row in rows(run))
    assert [reading["unit"] for reading in manifest["readings"]] == ["sentence"], "all measures read the same texts"
    notice = "Generated text: the model continued 6 prompts by up to 5 tokens, greedily: each is the most probable one; "
    assert sentences(run.results)[0].startswith(notice)
    code, printed, _ = headscope("show", run.results.path)
    assert code == 0
    assert notice in printed.replace("\n", " ")
    gallery = run.results.gallery
    assert gallery is not None
    assert all(text["source"]["generated"] == len(text["source"]["tokens"]) - 5 for text in gallery.texts)


@pytest.mark.parametrize("sizes", [{"batch_tokens": 16, "shard_tokens": 16}, {"batch_tokens": 40, "shard_tokens": 1}])
def test_batches_and_shards_change_nothing(run: hs.Run, writer: Model, sizes: dict[str, Any]) -> None:
    again = hs.run(writer, "sampler", ["entropy", "sequences"], gallery=0, **SETTINGS, **sizes)
    assert rows(again) == rows(run)
    for column in ("value", "low", "high"):
        assert_allclose(again.results["entropy"][column], run.results["entropy"][column], atol=1e-6)
    assert again.results.manifest["counts"]["tokens"] == run.results.manifest["counts"]["tokens"]


def test_an_interrupted_and_resumed_run_has_the_same_numbers(tmp_path: Path, run: hs.Run) -> None:
    spec = make_spec({"model": "mini-decoder", "measures": ["entropy"], **SETTINGS, "shard_tokens": 8, "batch_tokens": 16})
    stopped(spec, tmp_path / "run", 2)
    resumed = execute.execute(spec, tmp_path / "run", resume=True, gallery=0)
    assert resumed.manifest["counts"]["resumed_shards"] == 2
    assert rows(resumed) == rows(run)
    assert_allclose(resumed["entropy"]["value"], run.results["entropy"]["value"], atol=1e-6)


def test_a_worker_generates_the_same_texts_as_this_process(writer: Model) -> None:
    """The workers of every engine run this code."""
    spec = make_spec({"model": "mini-decoder", "measures": ["entropy"], **SETTINGS}).resolved(pairs=False)
    texts = list(encoder_for(spec, writer.tokenizer).texts(islice(read("sampler"), 1), Tally()))[:3]
    worker = Worker()
    assert worker.begin(WorkerSetup.of(spec, "cpu", 1, writer)) == ("ready", None)
    answer, states = worker.do(texts, frozenset({"entropy"}))
    assert answer == "done"
    here = runner_for(spec, writer)(texts)
    assert list(generated_texts(states)) == list(generated_texts(here))
    assert [len(text.tokens) for text in generated_texts(states)] == [5, 5, 5]
    for name, array in here["entropy"].arrays.items():
        assert_array_equal(states["entropy"].arrays[name], array)


def test_slices_count_generated_tokens(writer: Model) -> None:
    texts = [{"text": "The old man sat down.", "genre": "a"}, {"text": "She saw the sea.", "genre": "b"}]
    run = hs.run(writer, hs.read(texts), ["entropy"], by="genre", generate=3, replicates=0, gallery=0)
    sizes = {name: counted["tokens"] for name, counted in run.results.manifest["slices"]["values"].items()}
    assert sizes == {name: row["prompt_tokens"] + 3 for name, row in zip(("a", "b"), rows(run), strict=True)}


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"measures": ["relations"]}, "relations needs trees, and generated words have no annotation"),
        ({"measures": ["entropy", "coreference"]}, "coreference needs mentions, and generated words"),
        ({"model": "mini"}, "mini guesses masked words: it cannot continue a text"),
        ({"unit": "segment"}, "the model continues one text, and a segment is two"),
        ({"measures": {"entropy": {"unit": "document"}}}, "entropy.unit cuts texts for one measure"),
        ({"generate": None}, "prompt_tokens applies only to generated text"),
        ({"generate": None, "prompt_tokens": None, "temperature": 1.0}, "temperature applies only to generated text"),
        ({"generate": 0}, "generate = 0"),
    ],
)
def test_settings_that_do_not_fit_generated_text_are_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises((RunError, HeadscopeError), match=problem):
        hs.run(**{"model": "mini-decoder", "measures": ["entropy"], **SETTINGS, "gallery": 0, **settings})


def test_a_rerun_of_generated_text_is_identical(run: hs.Run, writer: Model) -> None:
    again = hs.rerun(run, model=writer)
    assert again.identical
    assert again.same.tables == len(run.results)


def test_the_report_states_that_the_text_is_generated(run: hs.Run) -> None:
    page = run.report(run.results.path / "page.html").read_text(encoding="utf-8")  # type: ignore[operator]
    assert "the model continued 6 prompts" in page
