"""A plan has the same counts as the run, without running it, in memory that does not grow with the corpus."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

import headscope as hs
from headscope.core.hashing import DocumentNames
from headscope.engine.spec import make_spec
from headscope.models.model import Model
from headscope.results.counts import Counts
from headscope.runs.estimate import RunEstimate, TimedShards, plan_run


def test_a_plan_has_the_same_counts_as_the_run(small_model: Model) -> None:
    """Also if the corpus is read in two ways."""
    settings = {"measures": ["positions", "coreference"], "shard_tokens": 500, "batch_tokens": 300, "max_length": 48, "replicates": 5}
    planned = plan_run(make_spec(settings), model=small_model, tried=2)
    run = hs.run(small_model, "sampler", gallery=0, **settings).results.manifest  # type: ignore[arg-type]
    assert [counts.numbers() for counts in planned.counts] == [{name: way[name] for name in Counts().numbers()} for way in run["readings"]]
    assert planned.ways == ("sentence", "document")
    assert planned.shards == run["counts"]["shards"]
    assert list(planned.notes) == [("read", line) for line in run["read"]] + [("left out", line) for line in run["dropped"]]
    assert planned.batches > planned.shards
    assert planned.longest == 48
    assert planned.trial is not None
    assert planned.trial.shards == 2
    assert 1000 < planned.trial.tokens < 1100
    assert planned.tokens == sum(way["tokens"] for way in run["readings"])


def test_without_trial_shards_the_model_is_not_run(small_model: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Model, "stream", lambda *_: pytest.fail("the model was run"))
    planned = plan_run(make_spec({"measures": ["entropy"]}), model=small_model, tried=0)
    assert planned.trial is None
    assert planned.seconds() is None
    assert planned.lines()[-1] == "computing time was not measured"


def test_the_expected_time_follows_from_reading_computing_and_storing() -> None:
    """1,000,000 tokens in 100 shards are read in 50 s; 10,000 tokens per second are computed; storing a shard takes
    half a second.
    """
    counts = Counts(documents=10, texts=1000, tokens=1_000_000, words=800_000)
    planned = RunEstimate((counts,), ("sentence",), 100, 400, 96, (), (), 50.0, 4_000_000, 900, 2_500, TimedShards(4, 40_000, 4.0, 2.0))
    assert planned.seconds() == 50 + 100 + 50
    assert planned.seconds(1) == 100
    assert planned.seconds(4) == 100, "reading and storing take longer than computing with four workers"
    lines = planned.lines(4)
    assert lines[0] == "by sentence: 10 documents, 1,000 texts, 1,000,000 tokens, 800,000 words (0 of them of several tokens)"
    assert lines[1] == "100 shards, batches: 400; the longest text has 96 tokens"
    assert "4.0 MB of weights and up to 900 bytes of attention maps at a time for each worker, and 2.5 KB" in lines[2]
    assert lines[-2] == "computing: 10,000 tokens/s per worker, tried on 4 shards"
    assert lines[-1] == "expected: 100 s with 4 workers, bound by reading"
    assert planned.lines()[-1] == "expected: 3 min in this process"


def peak(model: Model, path: Path, sentences: int) -> int:
    """The peak memory of Python in bytes while a corpus with one document per sentence is planned."""
    with path.open("w", encoding="utf-8") as file:
        for number in range(sentences):
            file.write(json.dumps({"id": f"document {number}", "text": f"Cat {number % 10} sat."}) + "\n")
    spec = make_spec({"corpus": str(path), "measures": ["positions"], "shard_tokens": 1000})
    tracemalloc.start()
    planned = plan_run(spec, model=model, tried=0)
    found = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert planned.counts[0].documents == sentences
    return found


def test_memory_does_not_grow_with_the_corpus(small_model: Model, tmp_path: Path) -> None:
    """Except for the hash of each document's name, about 70 bytes, because names must be unique. A document itself
    would take more than a thousand bytes.

    Both corpora have more documents than are read ahead of the pass.
    """
    few, many = (peak(small_model, tmp_path / f"{count}.jsonl", count) for count in (2500, 5000))
    assert many < few + 2500 * 150, f"{few:,} bytes for 2,500 sentences, {many:,} for 5,000"


def test_each_document_name_is_added_once() -> None:
    names = DocumentNames()
    assert all(names.add(f"document {number}") for number in range(20_000))
    assert not any(names.add(f"document {number}") for number in range(20_000))
    assert names.add("")
    assert names.add("\ud800")
    assert len(names) == 20_002
