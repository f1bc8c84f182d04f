"""Induction, duplicate-token and previous-token scores: worked out by hand, of a hand-made model, of the embedded
decoder.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose
from transformers import GPT2Config, GPT2Model

import headscope as hs
from headscope.core.batch import WORD, stack
from headscope.core.document import Document, Sentence, Word
from headscope.core.tally import Tally
from headscope.encoding.texts import Encoder
from headscope.engine.spec import make_spec
from headscope.errors import MeasureError, RunError
from headscope.figures import draw
from headscope.gallery.examples import window
from headscope.measures import make
from headscope.measures.sequences import earlier_copies, shuffled_places
from headscope.models.load import load
from headscope.models.model import Model
from headscope.report.summary import sentences
from headscope.results.results import Results
from headscope.runs.execute import execute
from helpers.architectures import build
from helpers.families import FAMILIES, OTHERS, tokenizer

CARD = {"induction": {"5-3": 0.60, "5-4": 0.60, "7-3": 0.43, "7-4": 0.24}, "previous_token": {"4-3": 0.82}, "duplicate": {"3-6": 0.17}}
SINKS = (0.58, 0.68, 0.77, 0.46, 0.67, 0.61, 0.47, 0.44)


def by_head(results: Results, quantity: str, column: str = "value") -> dict[str, float]:
    rows = results["sequences"].where(quantity=quantity)
    return {f"{layer}-{head}": value for layer, head, value in zip(rows["layer"], rows["head"], rows[column], strict=True)}


def test_scores_equal_those_worked_out_by_hand() -> None:
    """`a b a b`, counted from 0: token 2 is a copy of token 0, which token 1 follows. Token 3 is a copy of token 1,
    which token 2 follows.
    """
    rng = np.random.default_rng(0)
    maps = np.tril(rng.random((4, 4)))
    maps /= maps.sum(1, keepdims=True)
    table = hs.measure(maps[None, None], ["a", "b", "a", "b"], ["sequences"], causal=True)["sequences"].table
    values = dict(zip(table["quantity"], zip(table["value"], table["baseline"], strict=True), strict=True))
    assert_allclose(values["induction"], ((maps[2, 1] + maps[3, 2]) / 2, (1 / 3 + 1 / 4) / 2), rtol=1e-6)
    assert_allclose(values["duplicate"], ((maps[2, 0] + maps[3, 1]) / 2, (1 / 3 + 1 / 4) / 2), rtol=1e-6)
    assert_allclose(values["previous_token"], ((maps[2, 1] + maps[3, 2]) / 2, (1 / 3 + 1 / 4) / 2), rtol=1e-6)


def test_weights_on_all_earlier_copies_of_a_token_are_summed() -> None:
    maps = np.tril(np.ones((3, 3))) / np.arange(1, 4)[:, None]
    table = hs.measure(maps[None, None], ["a", "a", "a"], ["sequences"], causal=True)["sequences"].table
    assert_allclose(table.where(quantity="duplicate")["value"], (1 / 2 + 2 / 3) / 2, rtol=1e-6)
    assert_allclose(table.where(quantity="duplicate_shuffled")["value"], (1 / 2 + 2 / 3) / 2, rtol=1e-6)


def test_scores_of_rare_names_equal_those_worked_out_by_hand() -> None:
    """`Anna` (token 9) is a copy of token 2, which token 3 follows; token 8 comes before it. `The` is not a name,
    because `the` occurs too. `He` is not one, because it occurs three times and a name at most twice.
    """
    rng = np.random.default_rng(1)
    tokens = ["The", "the", "Anna", "met", "He", "The", "He", ".", "He", "Anna"]
    maps = np.tril(rng.random((10, 10)))
    maps /= maps.sum(1, keepdims=True)
    table = hs.measure(maps[None, None], tokens, {"sequences": {"rare": 2}}, causal=True)["sequences"].table
    values = dict(zip(table["quantity"], zip(table["value"], table["baseline"], strict=True), strict=True))
    assert_allclose(values["name_induction"], (maps[9, 3], 1 / 10), rtol=1e-6)
    assert_allclose(values["name_copy"], (maps[8, 2], 1 / 9), rtol=1e-6)
    with pytest.raises(MeasureError, match="rare is 1"):
        make("sequences", {"rare": 1})


def test_shuffled_places_are_permutations_that_depend_on_document_and_seed_only() -> None:
    words = np.ones((2, 40), dtype=bool)
    words[:, 0] = False
    first = shuffled_places(words, ["a", "b"], 0)
    assert (first[:, 0] == 0).all()
    assert (np.sort(first, 1) == np.arange(40)).all()
    assert (first != np.arange(40))[:, 1:].mean() > 0.8
    assert (shuffled_places(words[1:], ["b"], 0) == first[1:]).all()
    assert (shuffled_places(words, ["a", "b"], 1) != first).any()
    assert (first[0] != first[1]).any()


def test_copies_are_found_within_one_text_only() -> None:
    pairs = earlier_copies(np.array([[5, 6, 5, 5], [6, 6, 5, -1]]), np.array([[True] * 4, [True, True, True, False]]))
    assert set(zip(pairs.text.tolist(), pairs.row.tolist(), pairs.column.tolist(), strict=True)) == {
        (0, 2, 0), (0, 3, 0), (0, 3, 2), (1, 1, 0)
    }  # fmt: skip
    assert pairs.rows.tolist() == [2, 1]


@pytest.fixture(scope="module")
def circuit(tmp_path_factory: pytest.TempPathFactory) -> Model:
    """Two layers of one head, with weights set by hand; except for layer norms, all other weights are 0. A hidden state
    has three parts: the token, the position, and the previous token. The first head attends one position back and
    writes that token to the third part. The second head attends to positions whose previous token is the current token.
    """
    tokens = OTHERS["gpt2 bos eos"]()
    size, places = len(tokens), 24
    hidden = 2 * size + places
    token, place, before = (slice(0, size), slice(size, size + places), slice(size + places, hidden))
    options: dict[str, Any] = {"n_embd": hidden, "n_layer": 2, "n_head": 1, "n_positions": places, "n_inner": 4}
    network = GPT2Model(GPT2Config(vocab_size=size, bos_token_id=None, eos_token_id=None, **options)).requires_grad_(False)
    for name, parameter in network.named_parameters():
        parameter.fill_(1.0 if name.endswith("weight") and "ln_" in name else 0.0)
    network.wte.weight[:, token] = torch.eye(size)
    network.wpe.weight[:, place] = torch.eye(places)
    query, key, value = (slice(part * hidden, (part + 1) * hidden) for part in range(3))
    strength = 3.0
    first, second = (layer.attn for layer in network.h)
    first.c_attn.weight[place, query][1:, :places] = strength * torch.eye(places)[:-1]
    first.c_attn.weight[place, key][:, :places] = strength * torch.eye(places)
    first.c_attn.weight[token, value][:, before] = torch.eye(size)
    first.c_proj.weight[:] = torch.eye(hidden)
    second.c_attn.weight[token, query][:, :size] = strength * torch.eye(size)
    second.c_attn.weight[before, key][:, :size] = strength * torch.eye(size)
    folder = tmp_path_factory.mktemp("circuit")
    network.save_pretrained(folder)
    tokens.save_pretrained(folder)
    return load(folder)


def test_a_hand_made_circuit_has_an_induction_score_of_1(circuit: Model) -> None:
    spec = make_spec({"corpus": "repeats:10x8", "measures": {"sequences": {}}, "max_length": 24, "replicates": 50})
    results = execute(spec, model=circuit, gallery=0)
    assert_allclose(by_head(results, "induction")["2-1"], 1, atol=1e-4)
    assert_allclose(by_head(results, "previous_token")["1-1"], 1, atol=1e-4)
    assert by_head(results, "induction")["1-1"] < 1e-3
    assert by_head(results, "duplicate")["2-1"] < 1e-3
    assert results["sequences"]["n"][0] == results["sequences"]["documents"][0] == 8


@pytest.mark.parametrize("name", ["mistral", "gpt2"])
def test_runs_without_maps_give_the_same_numbers_as_runs_with_maps(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = FAMILIES["gpt2"]()
    build(name, vocabulary=len(tokens)).save_pretrained(tmp_path / name)
    tokens.save_pretrained(tmp_path / name)
    model = load(tmp_path / name)
    assert model.needs_maps is None
    for corpus in ("repeats:12x5", "sampler"):
        spec = make_spec({"corpus": corpus, "measures": {"sequences": {}}, "limit": 12, "max_length": 40, "replicates": 10})
        with monkeypatch.context() as patch:
            fused = execute(spec, model=model, gallery=0)
            patch.setitem(vars(model), "needs_maps", "to compare")
            mapped = execute(spec, model=model, gallery=0)
        for table in ("sequences", "sequences_layers"):
            for column in ("value", "baseline", "n"):
                assert_allclose(fused[table][column], mapped[table][column], rtol=2e-5, atol=1e-6, err_msg=f"{table} {column}")


@pytest.fixture(scope="module")
def decoder() -> Results:
    return execute(make_spec({"model": "mini-decoder", "corpus": "repeats:50", "measures": ["sequences", "sinks"]}), gallery=0)


def test_the_scores_of_the_embedded_decoder_are_reproduced(decoder: Results) -> None:
    for quantity, heads in CARD.items():
        values, ranked = by_head(decoder, quantity), sorted(by_head(decoder, quantity).items(), key=lambda item: -item[1])
        for head, value in heads.items():
            assert abs(values[head] - value) < 0.025, (quantity, head, values[head])
        assert {head for head, _ in ranked[: len(heads)]} == set(heads)
    layers = decoder["sinks_layers"].where(quantity="to_first")["value"]
    assert_allclose(layers, SINKS, atol=0.02)


def test_findings_name_the_heads_with_intervals_and_baselines(decoder: Results) -> None:
    lines = [line for line in sentences(decoder) if "induction" in line.lower()]
    assert len(lines) == 1
    for part in ("5-3 (0.6", "5-4 (0.6", "7-3 (0.4", "even attention: 0.01", "shuffled"):
        assert part in lines[0], lines[0]


def test_random_weights_give_the_baseline() -> None:
    settings = {"model": "mini-decoder", "corpus": "repeats:50x8", "measures": ["sequences"], "weights": "random"}
    results = execute(make_spec(settings), gallery=0)
    for row in results["sequences"]:
        assert abs(row["value"] - row["baseline"]) < 0.005, row


def test_transformer_lens_gives_the_same_scores_on_the_same_maps() -> None:
    """TransformerLens divides by all rows, headscope by the rows whose token occurred before."""
    detector = pytest.importorskip("transformer_lens.head_detector", reason="transformer-lens is not installed")
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 5, 14)
    maps = np.tril(rng.random((14, 14)))
    maps /= maps.sum(1, keepdims=True)
    table = hs.measure(maps[None, None], [f"t{number}" for number in ids], ["sequences"], causal=True)["sequences"].table
    rows = int(earlier_copies(ids[None], np.ones((1, 14), dtype=bool)).rows[0])
    patterns = {"induction": rows, "duplicate": rows, "previous_token": 12}
    names = {"induction": "induction_head", "duplicate": "duplicate_token_head", "previous_token": "previous_token_head"}
    for quantity, counted in patterns.items():
        pattern = getattr(detector, f"get_{names[quantity]}_detection_pattern")(torch.tensor(ids)[None]).clone()
        if quantity == "previous_token":
            pattern[:2] = 0  # headscope counts from the third token on
        score = detector.compute_head_attention_similarity_score(
            torch.tensor(maps), pattern, exclude_bos=False, exclude_current_token=False, error_measure="mul"
        )
        assert_allclose(table.where(quantity=quantity)["value"][0], score * 14 / counted, rtol=1e-6, err_msg=quantity)


def test_figures_show_the_strongest_heads_on_a_repeated_text(circuit: Model, decoder: Results) -> None:
    spec = make_spec({"corpus": "repeats:10x4", "measures": ["sequences"], "max_length": 24, "replicates": 10})
    results = execute(spec, model=circuit)
    figure = draw("stripes", results)
    titles = [axes.get_title(loc="left") for axes in figure.axes]
    assert titles[0].endswith("2-1: induction 1.00")
    shown = np.asarray(figure.axes[0].images[0].get_array())
    assert_allclose([shown[p, p - 9] for p in range(11, 21)], 1, atol=1e-3)
    assert draw("sequences", results).axes
    with pytest.raises(RunError, match="no text that shows induction") as caught:
        draw("stripes", decoder)
    assert "repeats:20" in (caught.value.remedy or "")


def test_the_window_of_a_long_text_contains_a_repeated_token() -> None:
    encoder = Encoder(tokenizer("gpt2"), unit="document", max_length=400)
    words = [*"abcdefghijklmnopqrstuvwxyz", *"ABCDEFGHIJKLMNOPQRSTUVWXYZ", "a", "b"]
    text = next(encoder.texts([Document("d", (Sentence(tuple(map(Word, [*words[:54], *words[26:54]]))),))], Tally()))
    start, end = window(text, make("sequences"), "induction", 40)
    copies = earlier_copies(text.ids[None, start:end], np.array([text.roles[start:end]]) == WORD)
    assert len(copies.row) > 0


def test_special_tokens_are_not_copies() -> None:
    side = stack([["<s>", "a", "<s>"]], [[1, WORD, 1]])
    assert len(earlier_copies(side.positions, side.chosen("word", lambda form, role: role == WORD)).row) == 0
