"""Galleries of every kind of model: maps equal those of the model, and the memory of the second pass is bounded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import headscope as hs
from headscope.core.heads import HeadId
from headscope.core.tally import Tally
from headscope.encoding.texts import Encoder
from headscope.engine import compute as shard
from headscope.engine import engines
from headscope.engine.spec import make_spec
from headscope.gallery.texts import look
from helpers.galleries import CORPUS, gallery_of, load_small, weights


@pytest.mark.parametrize(("name", "tokenizer"), [("gpt2", "gpt2"), ("t5", "t5")])
def test_the_memory_of_batches_of_the_second_pass_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, tokenizer: str
) -> None:
    model = load_small(tmp_path, name, tokenizer)
    runner = engines.runner_for(make_spec({"measures": ["positions"]}).resolved(False, "cpu"), model)
    texts = list(Encoder(model.tokenizer, decoder_start=model.decoder_start).texts(CORPUS, Tally()))
    whole = {text.id: maps for text, maps in runner.look(texts)}
    held: list[int] = []
    keep = runner._held

    def recorded(batch):  # type: ignore[no-untyped-def]
        found = keep(batch)
        held.append(sum(maps.numel() * 4 for maps in found.values()))
        return found

    monkeypatch.setattr(runner, "_held", recorded)
    assert len(list(runner.look(texts))) == 4
    (total,) = held
    held.clear()
    monkeypatch.setattr(shard, "MOST", total * 2 // 3)
    for text, maps in runner.look(texts):
        for kind, bounded in maps.items():
            assert bounded.shape == whole[text.id][kind].shape
            assert_allclose(bounded, whole[text.id][kind], atol=5e-5)
    assert len(held) == 2
    assert max(held) <= total * 2 // 3


@pytest.mark.parametrize(
    ("name", "tokenizer"),
    [("gpt2", "gpt2"), ("llama", "llama-3"), ("gpt_oss", "gpt2"), ("mpnet", "wordpiece"), ("t5", "t5"), ("bart", "roberta")],
)
def test_gallery_maps_equal_those_of_every_kind_of_model(tmp_path: Path, name: str, tokenizer: str) -> None:
    """Maps equal those of each text alone, and have the shape of the tokens that are shown with them."""
    model = load_small(tmp_path, name, tokenizer)
    gallery = gallery_of(hs.run(model, CORPUS, max_length=60, replicates=4))
    encoder = Encoder(model.tokenizer, decoder_start=model.decoder_start)
    texts = {text.id: text for text in encoder.texts(CORPUS, Tally())}
    shown = [(number, head, map) for number, maps in gallery.stacks for head, map in maps.items()]
    shown += [(example.text, example.head, example.map) for example in gallery.examples]
    assert {head for _, head, _ in shown} == set(model.layout.ids())
    for number, head, map in shown:
        text = gallery.texts[number]
        expected = look(model, texts[text["id"]], [head])[head]
        assert_allclose(weights(map), expected, atol=5e-5)
        rows, columns = (len(text[side]["tokens"]) for side in sides(head, text))
        assert map.shape == (rows, columns)
    # Only heads of the most frequent kind are compared.
    kinds = [head.kind for head in model.layout.ids()]
    compared = np.array([kind == max(kinds, key=kinds.count) for kind in kinds])
    assert gallery.distances is not None
    assert gallery.points is not None
    assert_array_equal(np.isfinite(gallery.distances), compared[:, None] & compared)
    assert_array_equal(np.isfinite(gallery.points.x), compared)
    assert [bool(near) for near in gallery.points.neighbours] == compared.tolist()


def sides(head: HeadId, text: dict[str, Any]) -> tuple[str, str]:
    if "target" not in text:
        return "source", "source"
    return {"encoder": ("source", "source"), "decoder": ("target", "target"), "cross": ("target", "source")}[head.kind]
