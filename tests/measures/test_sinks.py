"""Sinks worked out by hand, with and without maps, and attention to the first token in `tokens`."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose

import headscope as hs
from headscope.core.batch import WORD, PlaceTest, stack
from headscope.core.tally import Tally
from headscope.corpora import read
from headscope.encoding.texts import Encoder
from headscope.engine.spec import make_spec
from headscope.errors import MeasureError
from headscope.measures import make
from headscope.models import capture
from headscope.models.load import load
from headscope.models.model import Model
from headscope.report.summary import sentences
from headscope.runs.execute import execute
from helpers.architectures import build
from helpers.families import FAMILIES

CAUSAL = np.array([[1, 0, 0, 0], [0.75, 0.25, 0, 0], [0.5, 0.5, 0, 0], [0.25, 0.25, 0.125, 0.375]])


def values(run: hs.Run, measure: str) -> dict[str, Any]:
    table = run[measure].table
    return dict(zip(table["quantity"], zip(table["value"], table["n"], strict=True), strict=True))


def test_sinks_of_a_causal_map_equal_those_worked_out_by_hand() -> None:
    """Alphas are 2.5/4, 1/3, .125/2 and .375/1. The last is above .3, but only one row of four sees it, so it is not a
    sink.
    """
    measured = values(hs.measure(CAUSAL[None, None], ["a", "b", "c", "."], {"sinks": {"tokens": 4}}, causal=True), "sinks")
    rest = math.log(0.75) - (0.25 * math.log(0.25) + 0.125 * math.log(0.125) + 0.375 * math.log(0.375)) / 0.75
    expected = {"to_first": 0.5, "sink_first": 1, "alpha": 0.625, "at_first": 1, "at_punct": 0, "at_other": 0}
    for name, value in {**expected, "entropy_without_first": rest / 3}.items():
        assert_allclose(measured[name], (value, 1), rtol=1e-6, err_msg=name)
    assert measured["at_sep"][1] == 0, "a text without [SEP] does not count for at_sep"
    assert "sink_mass" not in measured


@pytest.mark.parametrize(("seen", "at", "alpha"), [(0.0, "at_punct", 0.9), (0.5, "at_first", 1.85 / 4)])
def test_the_last_token_can_be_a_sink_only_if_few_rows_suffice(seen: float, at: str, alpha: float) -> None:
    """Alphas are 1.85/4, 1/3, .25/2 and .9/1."""
    maps = np.array([[1, 0, 0, 0], [0.5, 0.5, 0, 0], [0.25, 0.5, 0.25, 0], [0.1, 0, 0, 0.9]])
    measured = values(hs.measure(maps[None, None], ["a", "b", "c", "."], {"sinks": {"seen": seen}}, causal=True), "sinks")
    assert_allclose(measured["alpha"][0], alpha, rtol=1e-6)
    assert measured[at][0] == 1
    assert measured["sink_first"][1] == 0, "no text has 64 tokens"


def test_sinks_of_an_encoder_are_classified_by_token() -> None:
    tokens = ["[CLS]", "a", ".", "b", "[SEP]"]
    maps = np.stack([np.tile(np.eye(5)[place], (5, 1)) for place in (0, 4, 2, 3)])
    table = hs.measure(maps[None], tokens, ["sinks"], causal=False)["sinks"].table
    for head, name in enumerate(("at_first", "at_sep", "at_punct", "at_other"), 1):
        for quantity in ("at_first", "at_sep", "at_punct", "at_other"):
            assert table.where(head=head, quantity=quantity)["value"] == [float(quantity == name)]
    assert table.where(quantity="alpha")["value"] == [1.0] * 4
    assert_allclose(table.where(quantity="alpha")["baseline"], 0.2, rtol=1e-6)


def test_to_first_is_defined_for_texts_without_special_tokens() -> None:
    measured = values(hs.measure(CAUSAL[None, None], ["a", "b", "c", "."], ["tokens"], causal=True), "tokens")
    assert_allclose(measured["to_first"], ((0.75 + 0.5 + 0.25) / 3, 1))
    assert measured["to_cls"][1] == 0
    run = hs.measure(np.eye(1)[None, None], ["a"], ["tokens"], causal=True)
    assert values(run, "tokens")["to_first"][1] == 0, "no token follows the only one"


def test_positions_are_counted_from_the_start_of_the_whole_text() -> None:
    side = stack([["a", "b", "c"], ["a"]], [[WORD] * 3, [WORD]])
    assert side.chosen("first", PlaceTest(stop=1)).tolist() == [[True, False, False], [True, False, False]]
    assert side.chosen("rest", PlaceTest(start=1)).tolist() == [[False, True, True], [False, False, False]]
    assert side.part(1, 3).chosen("first", PlaceTest(stop=2)).tolist() == [[True, False], [False, False]]


@pytest.mark.parametrize("name", ["llama", "mistral", "gpt2"])
def test_runs_without_maps_give_the_same_numbers_as_runs_with_maps(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = FAMILIES["gpt2"]()
    build(name, vocabulary=len(tokens)).save_pretrained(tmp_path / name)
    tokens.save_pretrained(tmp_path / name)
    model = load(tmp_path / name)
    assert model.needs_maps is None
    spec = make_spec({"measures": {"sinks": {"tokens": 16}, "tokens": {}}, "limit": 12, "max_length": 40, "replicates": 10})
    fused = execute(spec, model=model, gallery=0)
    monkeypatch.setitem(vars(model), "needs_maps", "to compare")
    mapped = execute(spec, model=model, gallery=0)
    for table in ("sinks", "sinks_layers", "sinks_model", "tokens"):
        for column in ("value", "low", "high", "baseline", "n"):
            assert_allclose(fused[table][column], mapped[table][column], rtol=2e-5, atol=1e-6, err_msg=f"{table} {column}")
    assert max(fused["sinks"].where(quantity="sink_first")["n"]) > 0
    lengths = [
        len(text) for text in Encoder(model.tokenizer, unit="document", overlong="window", max_length=40).texts(read("sampler"), Tally())
    ]
    window = model.network.config.sliding_window if name == "mistral" else 40
    able = [1 < length <= 2 * window for length in lengths[:12]]
    assert sum(able) < 12 if name == "mistral" else all(able)
    assert set(fused["sinks"].where(quantity="alpha")["n"]) == {sum(able)}, "half of the rows must see a sink"


def test_value_norm_equals_a_loop_over_texts_and_heads(mini_decoder: Model) -> None:
    """The loop uses the maps of eager attention and the outputs of the value projections."""
    texts = list(Encoder(mini_decoder.tokenizer, max_length=40).texts(read("repeats:6x3"), Tally()))
    heads, kept = 8, list[torch.Tensor]()
    layers = [module for name, module in mini_decoder.network.named_modules() if name.endswith("v_proj")]
    hooks = [module.register_forward_hook(lambda module, args, output: kept.append(output)) for module in layers]
    expected = np.zeros((len(layers), heads))
    for text in texts:
        kept.clear()
        maps = capture.from_outputs(mini_decoder.network, mini_decoder.inputs([text]))[0]["attentions"]
        for layer, (weights, values) in enumerate(zip(maps, kept, strict=True)):
            norms = values[0].reshape(len(text), 4, -1).norm(dim=-1).numpy()  # [key, kv head]
            for head in range(heads):
                seen = [float(weights[0, head, k:, k].mean()) for k in range(len(text)) if 2 * (len(text) - k) >= len(text)]
                own = norms[:, head // 2]
                expected[layer, head] += own[int(np.argmax(seen))] / own.mean() / len(texts)
    for hook in hooks:
        hook.remove()
    table = hs.run(mini_decoder, "repeats:6x3", ["sinks"], max_length=40, replicates=0, gallery=0)["sinks"].table.where(
        quantity="value_norm"
    )
    assert_allclose(table["value"], expected.ravel(), rtol=1e-4)
    assert (set(table["baseline"]), set(table["n"])) == ({1.0}, {3})


def test_findings_name_the_sink_with_its_interval_and_baseline() -> None:
    maps = np.tile(CAUSAL, (1, 2, 1, 1))
    names = [f"d{number}" for number in range(8)]
    run = hs.measure([maps] * 8, [["<s>", "b", "c", "."]] * 8, {"sinks": {"tokens": 4}}, documents=names, causal=True)
    lines = [line for line in sentences(run.results) if "first" in line]
    assert any("the first token in 100% [63% 100%] of heads and texts" in line for line in lines)
    assert any("receives 0.50 [0.50 0.50] of the attention of the tokens after it (even attention: 0.36)" in line for line in lines)


@pytest.mark.parametrize("options", [{"tokens": 1}, {"threshold": 0}, {"threshold": 1.5}, {"seen": -0.1}])
def test_invalid_options_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(MeasureError, match="sinks: "):
        make("sinks", options)


def test_a_sink_in_all_texts_has_the_exact_binomial_bound(mini_decoder: Model) -> None:
    """For eight texts from eight documents, the exact binomial bound of 8 of 8 is .025 ** (1 / 8)."""
    table = hs.run(mini_decoder, "repeats:40x8", ["sinks"], replicates=50, gallery=0)["sinks"].table
    rows = [row for row in table.where(quantity="sink_first") if row["value"] == 1]
    assert rows
    assert {round(row["low"], 6) for row in rows} == {round(0.025**0.125, 6)}
    assert {row["high"] for row in rows} == {1.0}
