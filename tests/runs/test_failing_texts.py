"""A text on which the model raises is named, and the other texts are finished. An error that concerns all texts ends
the run at once.
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


def fail_on(model: Model, monkeypatch: pytest.MonkeyPatch, bad: Sequence[str], says: Exception | None = None) -> list[int]:
    """Make the model raise on batches with these texts, without naming the text, as a network does. Return the sizes of
    its batches.
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
    """The sums equal those of the same shards without the two texts."""
    names = ids(small_model, few)
    bad = [names[3], names[20]]
    with monkeypatch.context() as patch:
        fail_on(small_model, patch, bad)
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


def test_an_error_is_raised_after_all_other_texts_and_resuming_computes_nothing_twice(
    small_model: Model, few: Corpus, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bad = ids(small_model, few)[5]
    with monkeypatch.context() as patch:
        fail_on(small_model, patch, [bad])
        with pytest.raises(
            RunError, match=rf"failed on a text: {bad} \(RuntimeError: the matrix is singular\); the other texts are finished and kept"
        ) as error:
            hs.run(small_model, few, out=tmp_path / "strict", **SETTINGS)
        assert "--resume --on-error skip continues without them" in str(error.value)
        assert json.loads((tmp_path / "strict" / "run.json").read_text())["status"] == "running"
        with pytest.raises(RunError, match="failed on a text"):  # the same settings fail again
            hs.run(small_model, few, out=tmp_path / "strict", resume=True, **SETTINGS)
        hs.run(small_model, few, out=tmp_path / "lenient", on_error="skip", gallery=0, **SETTINGS)
        sizes = fail_on(small_model, patch, [bad])
        other = {**SETTINGS, "shard_tokens": 90, "batch_tokens": 60}  # neither changes a number; the shards of the stopped run are kept
        run = hs.run(small_model, few, out=tmp_path / "strict", on_error="skip", resume=True, gallery=0, **other)
    assert not sizes, "finished shards were computed again"
    assert run.results.manifest["failed"] == [{"text": bad, "error": "RuntimeError: the matrix is singular"}]
    ours, theirs = states(tmp_path / "strict"), states(tmp_path / "lenient")
    assert ours.keys() == theirs.keys()
    assert not any(name.startswith(failures.NAME) for name in ours)
    for name, array in theirs.items():
        np.testing.assert_array_equal(ours[name], array, err_msg=name)
    assert run.signature == hs.open_run(tmp_path / "lenient").signature
    with pytest.raises(RunError, match="on_error was 'skip' and is 'raise'"):
        hs.run(small_model, few, out=tmp_path / "lenient", resume=True, gallery=0, **SETTINGS)


def test_a_failing_text_is_found_in_few_batches(small_model: Model, few: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches for one failing text of n: the shard, an ordinary text, the batch again, halves down to the text, and the
    shard without it.
    """
    names = ids(small_model, few)
    sizes = fail_on(small_model, monkeypatch, [names[10]])
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
def test_memory_and_device_errors_end_a_run_at_once(
    small_model: Model, few: Corpus, monkeypatch: pytest.MonkeyPatch, says: Exception, expected: str
) -> None:
    sizes = fail_on(small_model, monkeypatch, ids(small_model, few)[:1], says)
    with pytest.raises(RunError, match=expected) as error:
        hs.run(small_model, few, ["entropy"], on_error="skip", shard_tokens=100_000, replicates=0, gallery=0)
    assert not isinstance(error.value, TextError)
    assert len(sizes) <= 8, "the run searched for a failing text"


def test_a_model_that_fails_on_any_text_ends_a_run_at_once(small_model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.nn.Embedding, "forward", lambda *_: 1 / 0)
    with pytest.raises(RunError, match=r"small failed on a batch of .*ZeroDivisionError.*fails on any text"):
        hs.run(small_model, "sampler", ["entropy"], on_error="skip", replicates=0, gallery=0)


def test_texts_that_fail_only_together_end_the_run(small_model: Model, few: Corpus, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = Model.inputs

    def raising(self: Model, texts: Sequence[Encoded]) -> Any:
        if len(texts) > 1:
            raise ValueError("one at a time")
        return inputs(self, texts)

    monkeypatch.setattr(Model, "inputs", raising)
    with pytest.raises(RunError, match=r"failed on a batch of .*one at a time.*Use another --batch-tokens"):
        hs.run(small_model, few, ["entropy"], on_error="skip", replicates=0, gallery=0)


def test_a_run_ends_early_if_all_its_first_texts_fail(small_model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = read("sampler")
    fail_on(small_model, monkeypatch, ids(small_model, corpus))
    with pytest.raises(RunError, match=r"small failed on all of the first \d+ texts .*matrix is singular"):
        hs.run(small_model, corpus, ["entropy"], on_error="skip", shard_tokens=400, replicates=0, gallery=0)
