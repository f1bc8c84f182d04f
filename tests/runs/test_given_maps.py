"""Runs over given maps, from arrays and from files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from safetensors.numpy import save_file

import headscope as hs
from headscope.core.document import Word
from headscope.errors import MeasureError
from headscope.runs.given_maps import GivenMaps, measure_maps, read_maps

TOKENS = ["[CLS]", "play", "##ing", "now", "[SEP]"]
ROWS = [
    [0.2, 0.1, 0.3, 0.2, 0.2],
    [0.1, 0.4, 0.2, 0.2, 0.1],
    [0.3, 0.1, 0.1, 0.4, 0.1],
    [0.25, 0.25, 0.25, 0.15, 0.1],
    [0.5, 0.1, 0.1, 0.1, 0.2],
]
MAPS = np.array(ROWS)[None, None]


def first(run: hs.Run, measure: str, quantity: str) -> float:
    return float(run[measure].table.where(quantity=quantity)["value"][0])


def test_word_level_measures_equal_hand_computed_values() -> None:
    """The word map of this example has the diagonal .2 .4 .15 .2 and the [SEP] column .2 .1 .1 .2."""
    measures = {"positions": {"level": "word"}, "tokens": {"level": "word"}, "entropy": {"level": "word"}}
    run = hs.measure(MAPS, TOKENS, measures, words=[None, 0, 0, 1, None])
    assert first(run, "positions", "self") == pytest.approx((0.2 + 0.4 + 0.15 + 0.2) / 4)
    assert first(run, "tokens", "to_sep") == pytest.approx((0.2 + 0.1 + 0.1 + 0.2) / 4)
    assert first(run, "entropy", "max_weight") == pytest.approx((0.4 + 0.4 + 0.5 + 0.5) / 4)
    rows = hs.measure(MAPS, TOKENS, {"positions": {"level": "word"}}, words=[None, 0, 0, 1, None], rows="first")
    assert first(rows, "positions", "self") == pytest.approx((0.2 + 0.6 + 0.15 + 0.2) / 4)
    most = hs.measure(MAPS, TOKENS, {"positions": {"level": "word"}}, words=[None, 0, 0, 1, None], rows="max")
    assert first(most, "positions", "self") == pytest.approx((0.2 + 0.4285714 + 0.15 + 0.2) / 4)


def test_roles_and_words_can_be_given() -> None:
    run = hs.measure(MAPS, ["<x>", "a", "b", "c", "<y>"], ["tokens"], roles=["cls", "word", "word", "word", "sep"])
    assert first(run, "tokens", "to_cls") == pytest.approx(np.array(ROWS)[:, 0].mean())
    annotated = hs.measure(
        MAPS,
        TOKENS,
        {"tokens": {"level": "word", "groups": ["=jouer"]}},
        words=[None, 7, 7, 9, None],
        annotation=[Word("jouer"), Word("now")],
    )
    assert first(annotated, "tokens", "to_=jouer") == pytest.approx((0.4 + 0.4 + 0.5 + 0.2) / 4)


def test_attentions_from_transformers_are_accepted_unchanged() -> None:
    """A tuple of layers, each [1, heads, T, T], as tensors that require gradients."""
    layers = tuple(torch.tensor(MAPS, requires_grad=True) for _ in range(2))
    run = hs.measure(layers, TOKENS, ["positions"])
    assert run["positions"].table.where(quantity="self")["value"] == pytest.approx([0.21, 0.21])


def test_a_previous_token_head_alone_does_not_make_a_model_causal() -> None:
    planted = np.eye(5, k=-1)[None, None].copy()
    planted[0, 0, 0, 0] = 1
    assert set(hs.measure(planted, TOKENS, ["positions"])["positions"].table["kind"]) == {"encoder"}
    causal = hs.measure(planted, TOKENS, ["positions"], causal=True)
    assert set(causal["positions"].table["kind"]) == {"decoder"}
    assert "causal:True" in causal.signature
    seen = np.tri(5) / np.tri(5).sum(1, keepdims=True)
    assert set(hs.measure(seen[None, None], TOKENS, ["positions"])["positions"].table["kind"]) == {"decoder"}


def test_intervals_resample_documents() -> None:
    maps = [MAPS, MAPS[..., ::-1, ::-1].copy(), MAPS] * 2
    tokens = [TOKENS, TOKENS[::-1], TOKENS] * 2
    few = hs.measure(maps, tokens, ["positions"], documents=[*"aabcde"])
    assert np.isnan(few["positions"].table["low"]).all()
    assert set(few["positions"].table["documents"]) == {5}
    several = hs.measure(maps, tokens, ["positions"], documents=[*"abcdef"])
    assert np.isfinite(several["positions"].table["low"]).all()
    assert set(several["positions"].table["documents"]) == {6}
    unnamed = measure_maps([GivenMaps(own, tuple(text)) for own, text in zip(maps, tokens, strict=True)], {"positions": {}})
    assert set(unnamed["positions"]["documents"]) == {6}, "without documents, each text counts as one, even if texts share a name"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"attention": MAPS[0]}, r"attention is float64 of shape \(1, 5, 5\)"),
        ({"attention": MAPS[..., :4]}, r"of shape \(1, 1, 5, 4\)"),
        ({"attention": MAPS * 3}, "a row sums to 3.000"),
        ({"attention": np.log(MAPS)}, "negative or undefined"),
        ({"attention": MAPS * np.nan}, "negative or undefined"),
        ({"attention": np.full((1, 1, 5, 5), "x")}, "attention is <U1"),
        ({"attention": MAPS[:0]}, r"shape \(0, 1, 5, 5\)"),
        ({"attention": MAPS * np.array([1, 1, 1, 1, 0])[:, None]}, "a row has no weight"),
        ({"attention": [], "tokens": [TOKENS]}, "1 tokens for 0 texts"),
        ({"tokens": None}, "maps were given without tokens"),
        ({"words": [None, 0, 1, 0, None], "measures": {"entropy": {"level": "word"}}}, "word 0 continues after another word"),
        ({"words": [None, 0.5, 1, 2, None]}, "word number 0.5"),
        ({"annotation": [Word("one")]}, "annotation of 1 words for 3 words"),
        ({"rows": "median"}, "rows is 'median'"),
        ({"tokens": TOKENS[:3]}, "3 tokens for maps of 5 positions"),
        ({"roles": ["word"] * 4}, "4 roles for maps"),
        ({"roles": ["verb"] * 5}, "role 'verb' is unknown"),
        ({"measures": {"entropy": {"level": "word"}}}, "need the tokens of each word"),
        ({"attention": [MAPS, np.concatenate([MAPS, MAPS], 1)], "tokens": [TOKENS, TOKENS]}, "different models"),
    ],
)
def test_invalid_attention_and_annotation_are_refused(change: dict[str, Any], says: str) -> None:
    given: dict[str, Any] = {"attention": MAPS, "tokens": TOKENS, **change}
    with pytest.raises(MeasureError, match=says):
        hs.measure(**given)


def test_maps_are_read_from_npz_and_safetensors_files(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", attention=MAPS, tokens=np.array(TOKENS), words=np.array([-1, 0, 0, 1, -1]))
    save_file(
        {"attn": MAPS}, tmp_path / "b.safetensors", metadata={"tokens": json.dumps(TOKENS), "words": json.dumps([None, 0, 0, 1, None])}
    )
    a, b = read_maps(tmp_path / "a.npz"), read_maps(tmp_path / "b.safetensors")
    assert a.tokens == b.tokens == tuple(TOKENS)
    assert a.encoded().word_of == b.encoded().word_of == (-1, 0, 0, 1, -1)
    assert_allclose(a.attention, b.attention)
    both = hs.measure([tmp_path / "a.npz", tmp_path / "b.safetensors"], measures=["positions"], out=tmp_path / "run")
    assert both["positions"].table["n"][0] == 2
    assert hs.open_run(tmp_path / "run").signature == both.signature
    np.savez(tmp_path / "evil.npz", attention=MAPS, tokens=np.array(TOKENS, dtype=object))
    np.savez(tmp_path / "empty.npz", other=MAPS)
    (tmp_path / "torn.npz").write_bytes((tmp_path / "a.npz").read_bytes()[:100])
    for name, says in [
        ("evil.npz", "cannot be read"),
        ("empty.npz", "has no maps"),
        ("torn.npz", "cannot be read"),
        ("none.npz", "there is no such file"),
    ]:
        with pytest.raises(MeasureError, match=says):
            read_maps(tmp_path / name)
    (tmp_path / "x.txt").write_text("x")
    with pytest.raises(MeasureError, match=r"\.npz or \.safetensors"):
        read_maps(tmp_path / "x.txt")


def test_maps_of_bert_show_its_known_heads(data: Path) -> None:
    """bert-base-uncased on three short texts: facts from the README of the data, and attention to the next token
    against plain NumPy.
    """
    maps = [read_maps(path) for path in sorted((data / "maps").glob("bert-base-uncased*.npz"))]
    assert len(maps) == 3
    for text in maps:
        assert_allclose(text.attention.sum(-1), 1, atol=1e-5)
    run = hs.measure(
        [text.attention for text in maps], [text.tokens for text in maps], {"positions": {"denominator": "valid"}, "tokens": {}}
    )
    following = run["positions"].table.where(quantity="next")
    expected = np.mean([np.diagonal(text.attention, 1, -2, -1).mean(-1) for text in maps], axis=0).ravel()
    assert_allclose(following["value"], expected, atol=1e-6)
    named = {f"{row['layer']}-{row['head']}": row["value"] for row in following}
    assert min(named[head] for head in ("1-11", "3-1", "3-10")) > 0.5
    assert named["6-10"] == pytest.approx(0.5, abs=0.03), "over half on the texts of the README, about half on these three"
    before = {f"{row['layer']}-{row['head']}": row["value"] for row in run["positions"].table.where(quantity="previous")}
    assert before["4-6"] > 0.5
    assert before["8-5"] == pytest.approx(0.5, abs=0.06)
    sep = run["tokens"].layers.where(quantity="to_sep")["value"]
    assert_allclose(sep[4:10], [0.59, 0.65, 0.65, 0.63, 0.66, 0.59], atol=0.06)
