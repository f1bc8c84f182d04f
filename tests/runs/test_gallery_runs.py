"""The gallery of a run does not depend on batches and shards, is stored on disk, and is bounded in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import headscope as hs
from headscope.corpora import Corpus
from headscope.engine import sample
from headscope.engine.spec import make_spec
from headscope.errors import RunError
from headscope.gallery import build
from headscope.models.model import Model
from headscope.results.gallery import Gallery
from headscope.runs import execute
from helpers.galleries import DOCUMENTS, MEASURES, gallery_of
from helpers.stopping import stopped

# --- batches, shards, order and interruptions


def test_batches_and_shards_change_nothing(mini: Model, gallery_run: hs.Run) -> None:
    again = hs.run(mini, Corpus.of(DOCUMENTS), MEASURES, replicates=20, gallery=24, batch_tokens=300, shard_tokens=500)
    assert gallery_of(again).encode() == gallery_of(gallery_run).encode()


def test_document_order_changes_nothing(mini: Model, gallery_run: hs.Run) -> None:
    again = hs.run(mini, Corpus.of(reversed(DOCUMENTS)), MEASURES, replicates=20, gallery=24)
    assert gallery_of(again).encode() == gallery_of(gallery_run).encode()


def test_a_resumed_run_has_the_same_gallery(tmp_path: Path) -> None:
    spec = make_spec({"measures": ["positions"], "limit": 20, "replicates": 0, "shard_tokens": 60, "batch_tokens": 60})
    stopped(spec, tmp_path / "run", 3)
    assert not (tmp_path / "run" / "gallery.safetensors").exists()
    resumed, whole = execute.execute(spec, tmp_path / "run", resume=True), execute.execute(spec)
    assert resumed.gallery is not None
    assert whole.gallery is not None
    assert (tmp_path / "run" / "gallery.safetensors").read_bytes() == whole.gallery.encode()


# --- on disk


def test_a_gallery_is_read_back_unchanged(gallery_run: hs.Run) -> None:
    assert gallery_run.results.path is not None
    again, before = gallery_of(hs.open_run(gallery_run.results.path)), gallery_of(gallery_run)
    assert again.texts == before.texts
    assert again.encode() == before.encode()
    assert again.points is not None
    assert before.points is not None
    assert again.points.neighbours == before.points.neighbours
    for one, other in zip(again.examples, before.examples, strict=True):
        assert_array_equal(one.map, other.map)
        assert (one.head, one.quantity, one.value, one.n, one.text) == (other.head, other.quantity, other.value, other.n, other.text)


def test_a_run_opens_without_a_gallery_and_a_damaged_gallery_is_named(mini: Model, tmp_path: Path) -> None:
    path = tmp_path / "run" / "gallery.safetensors"
    hs.run(mini, "sampler", ["positions"], tmp_path / "run", limit=4, replicates=0)
    path.write_bytes(path.read_bytes()[:-100])
    run = hs.open_run(tmp_path / "run")
    assert len(run["positions"].table) == 144 * 5
    with pytest.raises(RunError, match=r"gallery\.safetensors is damaged"):
        _ = run.results.gallery
    path.unlink()
    assert hs.open_run(tmp_path / "run").results.gallery is None
    again = hs.run(mini, "sampler", ["positions"], tmp_path / "run", limit=4, replicates=0, overwrite=True)
    assert path.exists()
    none = hs.run(mini, "sampler", ["positions"], tmp_path / "run", limit=4, replicates=0, overwrite=True, gallery=0)
    assert not path.exists()
    assert none.results.gallery is None
    assert none.signature == again.signature


def test_a_run_is_complete_if_its_gallery_fails(mini: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: object) -> Gallery:
        raise MemoryError("no room")

    monkeypatch.setattr(build, "build_gallery", fails)
    run = hs.run(mini, "sampler", ["positions"], tmp_path / "run", limit=4, replicates=0)
    assert run.results.gallery is None
    again = hs.open_run(tmp_path / "run")
    assert len(again["positions"].table) == 144 * 5
    assert again.results.manifest["dropped"][-1] == "gallery left out (MemoryError: no room)"
    monkeypatch.undo()
    resumed = hs.run(mini, "sampler", ["positions"], tmp_path / "run", limit=4, replicates=0, resume=True)
    assert resumed.results.gallery is not None
    assert not any("gallery" in line for line in hs.open_run(tmp_path / "run").results.manifest["dropped"])
    assert len(resumed["positions"].table) == 144 * 5


def test_a_run_interrupted_while_making_its_gallery_is_complete(mini: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, Any] = {"limit": 12, "replicates": 4}
    whole = hs.run(mini, "sampler", ["positions", "relations"], tmp_path / "whole", **settings)

    def interrupted(*given: object) -> Gallery:
        raise KeyboardInterrupt

    monkeypatch.setattr(build, "build_gallery", interrupted)
    with pytest.raises(KeyboardInterrupt):
        hs.run(mini, "sampler", ["positions", "relations"], tmp_path / "run", **settings)
    monkeypatch.undo()
    assert hs.open_run(tmp_path / "run").results.gallery is None
    opened = hs.open_run(tmp_path / "run")
    files = [tmp_path / "run" / "states.safetensors", *(tmp_path / "run" / "tables").iterdir()]
    before = {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in files}
    assert len(before) == 1 + len(whole.results)
    resumed = hs.run(mini, "sampler", ["positions", "relations"], tmp_path / "run", resume=True, **settings)
    assert gallery_of(resumed).encode() == gallery_of(whole).encode() == (tmp_path / "run" / "gallery.safetensors").read_bytes()
    assert {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in before} == before
    assert resumed.results.manifest["gallery"] == whole.results.manifest["gallery"]
    with pytest.raises(RunError, match="has changed since it was opened"):
        opened.results.check()


def test_resuming_a_run_without_a_gallery_makes_one(mini: Model, tmp_path: Path) -> None:
    settings: dict[str, Any] = {"limit": 4, "replicates": 0}
    path = tmp_path / "run" / "gallery.safetensors"
    hs.run(mini, "sampler", ["positions"], tmp_path / "run", gallery=0, **settings)
    assert hs.run(mini, "sampler", ["positions"], tmp_path / "run", gallery=0, resume=True, **settings).results.gallery is None
    assert not path.exists()
    gallery_of(hs.run(mini, "sampler", ["positions"], tmp_path / "run", resume=True, **settings))
    made = path.stat().st_mtime_ns
    hs.run(mini, "sampler", ["positions"], tmp_path / "run", resume=True, **settings)
    assert path.stat().st_mtime_ns == made, "an existing gallery is not made again"


# --- in memory

TOO_LONG = "gallery left out: texts are too long to keep their maps"


def test_texts_whose_maps_are_too_large_are_left_out(mini: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """144 maps of 20 x 20 numbers of four bytes are 230,400 bytes."""
    monkeypatch.setattr(sample, "MOST", 144 * 20 * 20 * 4)
    gallery = gallery_of(hs.run(mini, Corpus.of(DOCUMENTS), MEASURES, tmp_path / "some", replicates=4))
    assert max(len(text["source"]["tokens"]) for text in gallery.texts) == 20
    assert gallery.stacks
    assert not [example for example in gallery.examples if example.measure == "coreference"]
    assert hs.open_run(tmp_path / "some").results.manifest["dropped"][-1] == f"{TOO_LONG}, by document"
    monkeypatch.setattr(sample, "MOST", 1000)
    run = hs.run(mini, Corpus.of(DOCUMENTS), ["positions"], tmp_path / "none", replicates=0)
    assert run.results.gallery is None
    assert len(run["positions"].table) == 144 * 5
    assert run.results.manifest["dropped"][-1] == TOO_LONG
    assert hs.open_run(tmp_path / "none").results.manifest["dropped"][-1] == TOO_LONG
    assert hs.run(mini, Corpus.of(DOCUMENTS), ["positions"], tmp_path / "none", replicates=0, resume=True).results.gallery is None
    given = hs.measure([np.full((1, 2, 20, 20), 0.05)], [["a"] * 20], ["positions"], replicates=0)
    assert given.results.gallery is None
    assert given.results.manifest["dropped"][-1] == TOO_LONG


def test_the_bytes_of_all_examples_are_bounded(mini: Model, monkeypatch: pytest.MonkeyPatch) -> None:
    from headscope.gallery import examples

    monkeypatch.setattr(examples, "BYTES", 20_000)
    gallery = gallery_of(hs.run(mini, "sampler", ["positions"], limit=12, replicates=0))
    assert sum(example.map.nbytes for example in gallery.examples) <= 20_000
    assert len({example.head for example in gallery.examples}) == len(gallery.examples), "each head has one example before any has two"
