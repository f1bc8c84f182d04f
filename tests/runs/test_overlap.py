"""Threads that work ahead: items and results are the same, errors are raised at the items that cause them, and no
thread is left.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import headscope as hs
from headscope.corpora import read
from headscope.engine import engines
from headscope.engine.overlap import ahead
from headscope.errors import HeadscopeError, RunError
from headscope.models.model import Model

SETTINGS: dict[str, Any] = {"shard_tokens": 100, "batch_tokens": 60, "replicates": 5, "device": "cpu"}


@pytest.fixture
def overlapping(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make runs on a CPU use the threads that they use with a GPU."""
    monkeypatch.setattr(engines, "_overlaps", lambda device: True)


@pytest.mark.parametrize("most", [1, 2, 9])
def test_another_thread_makes_items_in_order_and_at_most_a_limit_ahead(most: int) -> None:
    made: list[tuple[int, int]] = []

    def items() -> Iterator[int]:
        for number in range(6):
            made.append((number, threading.get_ident()))
            yield number

    for taken, number in enumerate(ahead(items(), most)):
        assert number == taken
        assert len(made) <= taken + 1 + most
    assert [number for number, _ in made] == list(range(6))
    assert threading.get_ident() not in {thread for _, thread in made}


def test_an_exception_is_raised_in_place_of_its_item() -> None:
    def items() -> Iterator[int]:
        yield 1
        yield 2
        raise RunError("the third")

    numbers = ahead(items(), 3)
    assert [next(numbers), next(numbers)] == [1, 2]
    with pytest.raises(RunError, match="the third"):
        next(numbers)


def test_results_equal_those_of_one_thread(small_model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    progress_of: dict[str, list[tuple[float | None, int, int]]] = {}
    bytes_of = {}
    for name in ("one", "threads"):
        monkeypatch.setattr(engines, "_overlaps", lambda device, name=name: name == "threads")
        calls = progress_of[name] = []
        run = hs.run(
            small_model,
            "sampler",
            ["positions", "relations"],
            tmp_path / name,
            progress=lambda *done, calls=calls: calls.append(done),
            **SETTINGS,
        )
        assert run.results.path is not None
        files = [path for path in run.results.path.rglob("*") if path.suffix in (".safetensors", ".parquet", ".arrow")]
        bytes_of[name] = {path.relative_to(tmp_path / name): path.read_bytes() for path in files}
        assert len(bytes_of[name]) > 2
    assert bytes_of["threads"] == bytes_of["one"]
    assert [done[1:] for done in progress_of["threads"]] == [done[1:] for done in progress_of["one"]], (
        "progress counts finished shards only"
    )
    assert len(progress_of["one"]) > 5


@pytest.mark.usefixtures("overlapping")
def test_errors_of_every_thread_end_the_run(small_model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors of the corpus, the pass and writing: none is replaced by an error of closing, no thread is left, and
    threads switch as often as before.
    """
    before = threading.active_count(), sys.getswitchinterval()
    corpus = tmp_path / "texts.jsonl"
    corpus.write_text("".join(f'{{"id": "{n}", "text": "A cat sat on a mat and slept ."}}\n' for n in range(60)) + "{\n", encoding="utf-8")
    with pytest.raises(HeadscopeError, match=r"line 61 of .*texts\.jsonl"):
        hs.run(small_model, read(corpus), ["entropy"], **SETTINGS)
    with monkeypatch.context() as patch:
        patch.setattr("headscope.engine.compute.ShardRunner._states", _fails)
        with pytest.raises(RunError, match="the pass failed"):
            hs.run(small_model, "sampler", ["entropy"], **SETTINGS)
    with monkeypatch.context() as patch:
        patch.setattr("headscope.engine.checkpoint.Ledger.add", _fails)
        with pytest.raises(RunError, match="the pass failed"):
            hs.run(small_model, "sampler", ["entropy"], **SETTINGS)
    assert (threading.active_count(), sys.getswitchinterval()) == before


def _fails(*_: object) -> None:
    raise RunError("the pass failed")
