"""A text that makes the model raise is named, the rest is done, in every engine alike; what concerns all texts ends
a run at once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import headscope as hs
from headscope.core.tally import Tally
from headscope.corpora import Corpus, read
from headscope.encoding.batches import shards
from headscope.encoding.texts import Encoded, Encoder
from headscope.engine import engines, failures
from headscope.engine.checkpoint import merge
from headscope.engine.failures import TextError
from headscope.engine.spec import make_spec
from headscope.errors import RunError
from headscope.models.model import Model
from headscope.results.folder import read_states

SETTINGS: dict[str, Any] = {"shard_tokens": 200, "replicates": 10}


@pytest.fixture(scope="module")
def few() -> Corpus:
    return Corpus.of(list(read("sampler"))[:4])


def poisoned(model: Model, monkeypatch: pytest.MonkeyPatch, bad: Sequence[str], says: Exception | None = None) -> list[int]:
    """Let the model raise on these texts, as a network does: from within, without saying on which. Returns the sizes
    of its batches.
    """
    inputs, sizes = Model.inputs, []

    def raising(self: Model, texts: Sequence[Encoded]) -> Any:
        sizes.append(len(texts))
        if any(text.id in bad for text in texts):
            raise says or RuntimeError("the matrix is singular\nand more lines")
        return inputs(self, texts)

    monkeypatch.setattr(Model, "inputs", raising)
    return sizes


def ids(model: Model, corpus: Corpus) -> list[str]:
    return [f"{document.id}/{number}" for document in corpus for number in range(1, len(document.sentences) + 1)]


def states(folder: Path) -> dict[str, np.ndarray[Any, Any]]:
    found, _ = read_states(folder / "states.safetensors")
    return {f"{name}/{key}": array for name, state in found.items() for key, array in state.arrays.items()}


def test_texts_that_fail_are_left_out_and_named(small_model: Model, few: Corpus, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The sums are those of the same shards without the two texts."""
    names = ids(small_model, few)
    bad = [names[3], names[20]]
    with monkeypatch.context() as patch:
        poisoned(small_model, patch, bad)
        run = hs.run(small_model, few, out=tmp_path / "run", on_error="skip", **SETTINGS)
    manifest = run.results.manifest
    assert [one["text"] for one in manifest["failed"]] == bad
    assert manifest["failed"][0]["error"] == "RuntimeError: the matrix is singular"
    line = manifest["dropped"][-1]
    assert line.startswith("2 texts skipped, on which small failed: ")
    assert all(name in line for name in bad)
    gallery = run.results.gallery
    assert gallery is not None
    assert gallery.texts
    assert not {text["id"] for text in gallery.texts} & set(bad)
    runner = engines.runner_for(make_spec({"measures": list(run.measures), **SETTINGS}).resolved(False, "cpu"), small_model)
    merged = None
    for shard in shards(Encoder(small_model.tokenizer).texts(few, Tally()), SETTINGS["shard_tokens"]):
        found = runner([text for text in shard if text.id not in bad])
        merged = found if merged is None else merge(merged, found)
    assert merged is not None
    for name, array in states(tmp_path / "run").items():
        measure, _, key = name.partition("/")
        np.testing.assert_array_equal(array, merged[measure][key], err_msg=name)


def test_an_error_comes_after_the_rest_is_done_and_nothing_is_computed_twice(
    small_model: Model, few: Corpus, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bad = ids(small_model, few)[5]
    with monkeypatch.context() as patch:
        poisoned(small_model, patch, [bad])
        with pytest.raises(
            RunError, match=rf"failed on a text: {bad} \(RuntimeError: the matrix is singular\); the other texts are finished and kept"
        ) as error:
            hs.run(small_model, few, out=tmp_path / "strict", **SETTINGS)
        assert "--resume --on-error skip continues without them" in str(error.value)
        assert json.loads((tmp_path / "strict" / "run.json").read_text())["status"] == "running"
        with pytest.raises(RunError, match="failed on a text"):  # asked again, it says so again
            hs.run(small_model, few, out=tmp_path / "strict", resume=True, **SETTINGS)
        hs.run(small_model, few, out=tmp_path / "lenient", on_error="skip", gallery=0, **SETTINGS)
        sizes = poisoned(small_model, patch, [bad])
        other = {**SETTINGS, "shard_tokens": 90, "batch_tokens": 60}  # neither changes a number, and shards stay as they were
        run = hs.run(small_model, few, out=tmp_path / "strict", on_error="skip", resume=True, gallery=0, **other)
    assert not sizes, "what was done was computed again"
    assert run.results.manifest["failed"] == [{"text": bad, "error": "RuntimeError: the matrix is singular"}]
    ours, theirs = states(tmp_path / "strict"), states(tmp_path / "lenient")
    assert ours.keys() == theirs.keys()
    assert not any(name.startswith(failures.NAME) for name in ours)
    for name, array in theirs.items():
        np.testing.assert_array_equal(ours[name], array, err_msg=name)
    assert run.signature == hs.open_run(tmp_path / "lenient").signature
    with pytest.raises(RunError, match="on_error was 'skip' and is 'raise'"):
        hs.run(small_model, few, out=tmp_path / "lenient", resume=True, gallery=0, **SETTINGS)


def test_few_batches_are_run_to_find_a_text(small_model: Model, few: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """One text of n: the shard, an ordinary text, its batch, halves down to the text, and the shard without it."""
    names = ids(small_model, few)
    sizes = poisoned(small_model, monkeypatch, [names[10]])
    hs.run(small_model, few, ["entropy"], on_error="skip", shard_tokens=100_000, batch_tokens=100_000, replicates=0, gallery=0)
    assert sizes[:3] == [len(names), 1, len(names)]
    assert sizes[-1] == len(names) - 1
    assert len(sizes) <= 4 + 2 * np.ceil(np.log2(len(names)))


@pytest.mark.parametrize(
    ("says", "expected"),
    [
        (RuntimeError("CUDA out of memory. Tried to allocate"), "not enough memory for a batch of .* smaller --batch-tokens"),
        (MemoryError(), "not enough memory for a batch of"),
        (RuntimeError("CUDA error: device-side assert triggered"), "the device failed on a batch of"),
    ],
)
def test_what_is_not_the_texts_fault_ends_a_run_at_once(
    small_model: Model, few: Corpus, monkeypatch: pytest.MonkeyPatch, says: Exception, expected: str
) -> None:
    sizes = poisoned(small_model, monkeypatch, ids(small_model, few)[:1], says)
    with pytest.raises(RunError, match=expected) as error:
        hs.run(small_model, few, ["entropy"], on_error="skip", shard_tokens=100_000, replicates=0, gallery=0)
    assert not isinstance(error.value, TextError)
    assert len(sizes) <= 8, "it was looked for in texts"


def test_a_model_that_fails_on_everything_ends_a_run_at_once(small_model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.nn.Embedding, "forward", lambda *_: 1 / 0)
    with pytest.raises(RunError, match=r"small failed on a batch of .*ZeroDivisionError.*fails on any text"):
        hs.run(small_model, "sampler", ["entropy"], on_error="skip", replicates=0, gallery=0)


def test_texts_that_fail_only_together_are_no_failing_texts(small_model: Model, few: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = Model.inputs

    def raising(self: Model, texts: Sequence[Encoded]) -> Any:
        if len(texts) > 1:
            raise ValueError("one at a time")
        return inputs(self, texts)

    monkeypatch.setattr(Model, "inputs", raising)
    with pytest.raises(RunError, match=r"failed on a batch of .*one at a time.*Use another --batch-tokens"):
        hs.run(small_model, few, ["entropy"], on_error="skip", replicates=0, gallery=0)


def test_a_corpus_of_nothing_but_bad_texts_is_not_run_to_its_end(small_model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = read("sampler")
    poisoned(small_model, monkeypatch, ids(small_model, corpus))
    with pytest.raises(RunError, match=r"small failed on all of the first \d+ texts .*matrix is singular"):
        hs.run(small_model, corpus, ["entropy"], on_error="skip", shard_tokens=400, replicates=0, gallery=0)
