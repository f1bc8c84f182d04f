"""Heads of two models side by side: against a slow computation in float64, and for models with known twins."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from numpy.testing import assert_allclose, assert_array_equal

import headscope as hs
from headscope.core.document import Document, Sentence, Word
from headscope.core.heads import Kind
from headscope.core.tally import Tally
from headscope.corpora import Corpus
from headscope.encoding.texts import Encoded, Encoder
from headscope.errors import HeadscopeError
from headscope.models.model import Model
from headscope.studies.twins import sums as twin_sums
from headscope.studies.twins.heads import TABLES
from helpers.architectures import build
from helpers.families import FAMILIES

TEXTS = ["The cats sat on a mat .", "A dog , the cats playing .", "The dog sat .", "On a mat the cat and a dog sat , the cat played ."]


def corpus(texts: list[str]) -> Corpus:
    return Corpus.of([Document(f"d{n}", (Sentence(tuple(map(Word, text.split()))),)) for n, text in enumerate(texts)])


CORPUS = corpus(TEXTS)
SEVERAL = corpus([*TEXTS, *TEXTS[:2]])  # enough for intervals


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Model]:
    folder = tmp_path_factory.mktemp("twins")
    loaded = {}
    named = {"bert": "wordpiece", "gpt2": "gpt2", "llama": "llama-3", "t5": "t5", "bart": "gpt2"}
    for name, tokenizer in named.items():
        tokens = FAMILIES[tokenizer]()
        build(name, vocabulary=len(tokens)).save_pretrained(folder / name)
        tokens.save_pretrained(folder / name)
        loaded[name] = hs.load(folder / name)
    return loaded


def js(p: np.ndarray, q: np.ndarray) -> float:
    """The Jensen-Shannon divergence in nats, from its definition."""
    middle = (p + q) / 2
    return float(sum(0.5 * a * np.log(a / m) for row in (p, q) for a, m in zip(row, middle, strict=True) if a > 0))


def naive(model: Model, kind: Kind, given: Corpus = CORPUS) -> Iterator[tuple[Encoded, np.ndarray]]:
    """For each text alone, from the eager attention of transformers: the side whose tokens are the rows, and the maps
    [head, row, column] in float64.
    """
    network = copy.deepcopy(model.network)
    network.set_attn_implementation("eager")
    for text in Encoder(model.tokenizer, max_length=60, decoder_start=model.decoder_start).texts(given, Tally()):
        inputs = {"input_ids": torch.tensor(text.ids)[None]}
        name = "attentions"
        if text.target is not None:
            inputs["decoder_input_ids"] = torch.tensor(text.target.ids)[None]
            name = f"{kind}_attentions"
        maps = getattr(network(**inputs, output_attentions=True), name)
        side = text.target if text.target is not None and kind == "decoder" else text
        yield side, np.concatenate([layer[0].double().numpy() for layer in maps])


def words_of(side: Encoded, maps: np.ndarray) -> dict[int, dict[int, np.ndarray]]:
    """The weights of each head by word of the document, row and column: the sum over the tokens attended to, the mean
    over the attending tokens.
    """
    tokens: dict[int, list[int]] = {}
    for token, word in enumerate(side.word_of):
        if word >= 0:
            tokens.setdefault(side.annotation.positions[word], []).append(token)
    return {row: {column: maps[:, own][:, :, to].sum(2).mean(1) for column, to in tokens.items()} for row, own in tokens.items()}


def slow_distances(first: Model, second: Model, kinds: tuple[Kind, Kind]) -> tuple[np.ndarray, np.ndarray, int]:
    """The distances between all heads, the share of attention to words, and the number of rows, word by word."""
    total: np.ndarray | None = None
    mass: np.ndarray | None = None
    n = 0
    for (a, maps_a), (b, maps_b) in zip(naive(first, kinds[0]), naive(second, kinds[1]), strict=True):
        one, other = words_of(a, maps_a), words_of(b, maps_b)
        common = sorted(one.keys() & other.keys())
        for row in common:
            rows = np.concatenate([np.stack([given[row][column] for column in common], 1) for given in (one, other)])
            mass = rows.sum(1) + (0 if mass is None else mass)
            rows = rows / rows.sum(1, keepdims=True)
            found = np.array([[js(p, q) for q in rows] for p in rows])
            total = found + (0 if total is None else total)
            n += 1
    assert total is not None
    assert mass is not None
    return total / n, mass / n, n


@pytest.mark.parametrize(
    ("first", "second", "kinds", "rows"),
    [
        ("bert", "gpt2", ("encoder", "decoder"), 32),
        ("gpt2", "llama", ("decoder", "decoder"), 32),
        ("bert", "t5", ("encoder", "encoder"), 32),
        ("bert", "bart", ("encoder", "decoder"), 28),  # without a closing token its decoder never reads the last word of a text
    ],
)
def test_distances_and_twins_equal_a_slow_computation(
    models: dict[str, Model], first: str, second: str, kinds: tuple[Kind, Kind], rows: int
) -> None:
    found = hs.twins(models[first], models[second], CORPUS, kind=kinds, max_length=60, replicates=0)
    distances, words, n = slow_distances(models[first], models[second], kinds)
    assert found.n == n == rows
    assert_allclose(found.distances, distances, atol=2e-6)
    table = found.table()
    assert_allclose(table["words"], words, atol=1e-6)
    between = distances[: len(found.a.ids), len(found.a.ids) :]
    assert_allclose(table["distance"], [*between.min(1), *between.min(0)], atol=2e-6)
    assert table.where(side="a")["twin"] == [str(found.b.ids[at]) for at in between.argmin(1)]
    assert table.where(side="b")["twin"] == [str(found.a.ids[at]) for at in between.argmin(0)]
    own = distances + np.where(np.eye(len(distances), dtype=bool), 9, 0)
    own[: len(found.a.ids), len(found.a.ids) :] = own[len(found.a.ids) :, : len(found.a.ids)] = 9
    assert_allclose(table["own_distance"], own.min(1), atol=2e-6)
    assert table["own_neighbour"] == [str((*found.a.ids, *found.b.ids)[at]) for at in own.argmin(1)]


def test_distances_at_token_level_include_special_tokens(models: dict[str, Model]) -> None:
    """Special tokens are rows and columns, too. Both models are bert, with different weights, so their tokens are the
    same.
    """
    other = hs.load(models["bert"].name, random=1)
    found = hs.twins(models["bert"], other, CORPUS, level="token", max_length=60, replicates=0)
    total, n = np.zeros((16, 16)), 0
    mass = np.zeros(16)
    for (text, first), (_, second) in zip(naive(models["bert"], "encoder"), naive(other, "encoder"), strict=True):
        for row in range(len(text)):
            rows = np.concatenate([first, second])[:, row]
            mass += rows[:, 1:-1].sum(1)
            total += np.array([[js(p, q) for q in rows] for p in rows])
            n += 1
    assert found.n == n
    assert_allclose(found.distances, total / n, atol=2e-6)
    assert_allclose(found.table()["words"], mass / n, atol=1e-6)


def test_distances_of_words_of_one_token_equal_those_without_special_tokens(models: dict[str, Model]) -> None:
    short = corpus(["the cat play", "a dog , the cat .", "the dog play ."])
    other = hs.load(models["bert"].name, random=1)
    found = hs.twins(models["bert"], other, short, max_length=60, replicates=0)
    total, n = np.zeros((16, 16)), 0
    for (text, first), (_, second) in zip(naive(models["bert"], "encoder", short), naive(other, "encoder", short), strict=True):
        assert len(text) == len(text.words) + 2
        maps = np.concatenate([first, second])[:, 1:-1, 1:-1]
        maps /= maps.sum(-1, keepdims=True)
        for row in range(maps.shape[1]):
            total += np.array([[js(p, q) for q in maps[:, row]] for p in maps[:, row]])
            n += 1
    assert_allclose(found.distances, total / n, atol=2e-6)


@pytest.mark.parametrize("level", ["word", "token"])
def test_every_head_is_its_own_twin_if_a_model_is_compared_with_itself(models: dict[str, Model], level: str) -> None:
    found = hs.twins(models["bert"], models["bert"], CORPUS, level=level, max_length=60, replicates=20, epsilons=(1e-6,))
    names = [str(head) for head in found.a.ids]
    table = found.table()
    assert table["twin"] == names * 2
    assert table["distance"] == [0.0] * 16, "distances are exactly 0"
    assert all(table["mutual"])
    assert set(table["support"]) == {1.0}
    summary = {(row["side"], row["quantity"]): row for row in found.table("twins_summary")}
    for side in "ab":
        assert summary[side, "twin_1e-06"]["value"] == summary[side, "mutual"]["value"] == 1
        assert summary[side, "depth"]["value"] == pytest.approx(1)
        assert summary[side, "beyond_own"]["value"] == -summary[side, "own"]["value"] < 0
    assert [(a, b) for a, b, _ in found.mutual()] == list(zip(found.a.ids, found.b.ids, strict=True))
    assert (found.a.name, found.b.name) == ("bert (a)", "bert (b)")


def test_intervals_contain_their_values(models: dict[str, Model]) -> None:
    """Also the intervals of differences, which may be negative, and of shares."""
    found = hs.twins(models["bert"], models["bert"], "sampler", max_length=60, replicates=50, epsilons=(1e-6,))
    summary = {row["quantity"]: row for row in found.table("twins_summary") if row["side"] == "a"}
    assert summary["beyond_own"]["high"] < 0
    for row in [*found.table("twins_summary"), *found.table("twins_layers")]:
        assert row["low"] <= row["value"] <= row["high"]
        assert row["high"] <= 1 or row["quantity"] not in ("mutual", "words", "faint", "twin_1e-06", "twin_depth")


def test_permuted_heads_are_found_as_twins(models: dict[str, Model]) -> None:
    """The heads of each layer are permuted, together with their output, so that the model computes the same."""
    network = copy.deepcopy(models["bert"].network)
    orders = [[2, 0, 3, 1], [1, 3, 2, 0]]
    for layer, order in zip(network.encoder.layer, orders, strict=True):
        rows = torch.tensor([4 * head + unit for head in order for unit in range(4)])
        for part in (layer.attention.self.query, layer.attention.self.key, layer.attention.self.value):
            part.weight.copy_(part.weight[rows])
            part.bias.copy_(part.bias[rows])
        layer.attention.output.dense.weight.copy_(layer.attention.output.dense.weight[:, rows])
    found = hs.twins(models["bert"], replace(models["bert"], network=network), CORPUS, max_length=60, replicates=0)
    table = found.table().where(side="b")
    assert table["twin"] == [f"{layer + 1}-{head + 1}" for layer, order in enumerate(orders) for head in order]
    assert max(table["distance"]) < 1e-6
    assert min(table["own_distance"]) > 1e-3
    assert all(table["mutual"])
    depths = found.table("twins_layers").where(side="b", quantity="twin_depth")
    assert depths["value"] == depths["depth"] == [0, 1]


def test_batches_blocks_and_the_order_of_documents_change_nothing(models: dict[str, Model], monkeypatch: pytest.MonkeyPatch) -> None:
    settings: dict[str, Any] = {"max_length": 60, "replicates": 10}
    whole = hs.twins(models["bert"], models["gpt2"], CORPUS, **settings)
    single_texts = hs.twins(models["bert"], models["gpt2"], CORPUS, batch_tokens=1, **settings)
    reversed_order = hs.twins(models["bert"], models["gpt2"], Corpus.of([*CORPUS][::-1]), **settings)
    monkeypatch.setattr(twin_sums, "MOST", {"cpu": 4 * 16 * 14 * 3})  # three rows of the longest text
    blocks = hs.twins(models["bert"], models["gpt2"], CORPUS, **settings)
    for other in (single_texts, reversed_order, blocks):
        assert_allclose(other.distances, whole.distances, atol=1e-6)
        assert_array_equal(other.sums.rows, whole.sums.rows)
        for name in TABLES:
            for column in ("value", "distance", "low", "high", "words"):
                if column in whole.table(name).columns:
                    assert_allclose(other.table(name)[column], whole.table(name)[column], atol=1e-5)


def test_untrained_copies_equal_models_loaded_with_random_weights(models: dict[str, Model]) -> None:
    first, second = models["bert"], models["gpt2"]
    found = hs.twins(first, second, SEVERAL, control=True, max_length=60, replicates=5, seed=3)
    to_b = hs.twins(first, hs.load(second.name, random=3), SEVERAL, max_length=60, replicates=5, seed=3)
    to_a = hs.twins(hs.load(first.name, random=3), second, SEVERAL, max_length=60, replicates=5, seed=3)
    table = found.table()
    assert_allclose(table.where(side="a")["untrained"], to_b.table().where(side="a")["distance"], atol=1e-6)
    assert_allclose(table.where(side="b")["untrained"], to_a.table().where(side="b")["distance"], atol=1e-6)
    assert_allclose(found.distances, hs.twins(first, second, SEVERAL, max_length=60, replicates=0).distances, atol=1e-6)
    row = next(row for row in found.table("twins_summary") if (row["side"], row["quantity"]) == ("a", "untrained"))
    beside = next(row for row in to_b.table("twins_summary") if (row["side"], row["quantity"]) == ("a", "twin"))
    assert [row[name] for name in ("value", "low", "high")] == pytest.approx([beside[name] for name in ("value", "low", "high")], abs=1e-6)
    nearer = next(row["value"] for row in found.table("twins_summary") if row["quantity"] == "nearer_than_untrained")
    assert nearer == np.mean(np.array(table["distance"][:8]) < table["untrained"][:8])
    assert not np.isfinite(to_b.table()["untrained"]).any()


def test_texts_that_one_model_drops_are_dropped_for_both(models: dict[str, Model]) -> None:
    """The second sentence is too long for bert only, so the third sentence has different numbers in the two models."""
    long = "Dogs and cats play in the garden , playing all day ."
    sentences = [Sentence(tuple(map(Word, text.split()))) for text in (TEXTS[0], long, TEXTS[1])]
    lengths = [len(models[name].tokenizer.tokens(sentences[1].words)[0]) for name in ("bert", "llama")]
    assert lengths[0] + 2 > 20 >= lengths[1] + 1
    limit = 20
    found = hs.twins(models["bert"], models["llama"], Corpus.of([Document("d", tuple(sentences))]), max_length=limit, replicates=0)
    without = hs.twins(
        models["bert"], models["llama"], Corpus.of([Document("d", (sentences[0], sentences[2]))]), max_length=limit, replicates=0
    )
    assert (found.texts, found.documents) == (2, 1)
    assert_allclose(found.distances, without.distances, atol=1e-6)
    assert found.dropped == ("1 overlong texts dropped by bert (first: d)", "1 texts skipped that only llama reads so (first: d)")
    assert without.dropped == ()


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"level": "piece"}, "level = 'piece': Input should be 'word' or 'token'"),
        ({"level": "token"}, r"token 1 of d0/1 is '\[CLS\]' in bert and 'T.*Compare words"),
        ({"kind": "decoder"}, "bert has no decoder self-attention. It has encoder"),
        ({"kind": ("encoder", "cross")}, "gpt2 has no cross self-attention. It has decoder"),
        ({"kind": ("encoder", "decoder", "decoder")}, "3 kinds for two models"),
        ({"epsilons": (0.1, 0)}, "epsilon is 0"),
        ({"least": 1.5}, "from 0 to 1"),
        ({"max_length": 100}, "Use --max-length 64"),
        ({"unit": "page"}, "unit = 'page'"),
        ({"limit": -1}, "limit = -1"),
        ({"max_length": 5}, "nothing to compare: no text of memory is left that both models read. 4 overlong texts dropped by bert"),
        ({"epsilon": 0.1}, r"there is no setting 'epsilon'\. Did you mean epsilons\? Use model, .* level, kind"),
    ],
)
def test_invalid_settings_are_refused_with_an_explanation(models: dict[str, Model], settings: dict[str, Any], says: str) -> None:
    with pytest.raises(HeadscopeError, match=says):
        hs.twins(models["bert"], models["gpt2"], CORPUS, **{"max_length": 60, "replicates": 0, **settings})


def test_a_model_with_too_few_embeddings_is_refused(models: dict[str, Model]) -> None:
    small = replace(models["bert"], network=build("bert", vocabulary=12), name="small")
    with pytest.raises(HeadscopeError, match=r"the tokenizer of small contains .*, for which the model has no embedding"):
        hs.twins(models["bert"], small, CORPUS, max_length=60)


def test_progress_and_signature_include_the_limit(models: dict[str, Model]) -> None:
    calls: list[tuple[float | None, int, int]] = []
    found = hs.twins(
        models["bert"],
        models["gpt2"],
        CORPUS,
        limit=2,
        max_length=60,
        replicates=0,
        batch_tokens=1,
        progress=lambda *call: calls.append(call),
    )
    assert found.texts == 2
    assert calls[-1][:2] == (1.0, 2)
    assert "limit:2" in found.signature
    assert "a:bert@" in found.signature
    assert found.signature != hs.twins(models["bert"], models["gpt2"], CORPUS, limit=2, max_length=60, replicates=0, least=0.3).signature
