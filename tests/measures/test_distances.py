"""Distances between heads through the whole pipeline: rows in memory or recomputed, sampled rows, the word level, given
maps.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from numpy.typing import NDArray
from scipy.special import rel_entr

import headscope as hs
from headscope.core.document import Document, Sentence, Word
from headscope.corpora import Corpus
from headscope.errors import HeadscopeWarning, MeasureError, RunError
from headscope.measures import make
from headscope.measures.distances import groups
from headscope.measures.weights import gathered
from headscope.runs.given_maps import measure_maps, read_maps
from helpers.small_models import load_mini

Maps = NDArray[np.float64]
SENTENCES = [
    "The cat sat on the mat , and the unbelievably small dog barked at it .",
    "Nobody knows why .",
    "She gave him a book that he had wanted to read for years .",
    "It rained .",
]
TAGS = {"cat": "NOUN", "mat": "NOUN", "dog": "NOUN", "sat": "VERB", "book": "NOUN", "small": "ADJ", "rained": "VERB", "She": "PRON"}
CORPUS = Corpus.of(
    [
        Document(f"d{n}", (Sentence(tuple(Word(form, upos=TAGS.get(form, "X")) for form in text.split())),))
        for n, text in enumerate(SENTENCES)
    ]
)


def run(corpus: Corpus = CORPUS, **settings: Any) -> hs.Run:
    options = {
        name: settings.pop(name) for name in list(settings) if name in ("rows", "level", "smoothing", "sample", "normalise", "epsilons")
    }
    settings = {"replicates": 20, "gallery": 0, **settings}
    return hs.run(load_mini(), corpus, {"distances": options}, **settings)


def pairs(found: hs.Run) -> Maps:
    return np.array(found.results["distances_pairs"]["value"])


def plain(maps: list[Maps]) -> Maps:
    """Return the distance of each pair of heads: the mean over all rows of the maps [head, row, key], in float64."""
    total: Any = 0.0
    rows = 0
    for text in maps:
        means = (text[:, None] + text[None]) / 2
        total = total + (rel_entr(text[:, None], means) + rel_entr(text[None], means)).sum((-1, -2)) / 2
        rows += text.shape[1]
    return np.asarray((total / rows)[np.triu_indices(len(maps[0]), 1)])


def test_recomputed_rows_give_the_same_distances(monkeypatch: pytest.MonkeyPatch) -> None:
    held = {level: run(level=level, smoothing=0.01) for level in ("token", "word")}
    monkeypatch.setitem(gathered.MOST, "cpu", 144 * 4 * 30)  # about one row at a time
    for level, expected in held.items():
        again = run(level=level, smoothing=0.01)
        assert_allclose(pairs(again), pairs(expected), rtol=1e-5, atol=1e-6)
        assert again.results["distances_pairs"]["n"] == expected.results["distances_pairs"]["n"]


@pytest.mark.parametrize("word_rows", ["mean", "first", "max"])
def test_recomputed_rows_give_the_same_distances_for_every_kind_of_word_row(word_rows: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = pairs(run(level="word", word_rows=word_rows))
    monkeypatch.setitem(gathered.MOST, "cpu", 144 * 4 * 60)
    assert_allclose(pairs(run(level="word", word_rows=word_rows)), expected, rtol=1e-5, atol=1e-6)


def test_the_sizes_of_batches_and_shards_do_not_change_distances() -> None:
    expected = run()
    cuts: list[dict[str, Any]] = [{"batch_tokens": 20}, {"batch_tokens": 60, "shard_tokens": 30}]
    for settings in cuts:
        assert_allclose(pairs(run(**settings)), pairs(expected), rtol=1e-5, atol=1e-6)


def test_a_sample_of_rows_is_unbiased_and_its_error_is_estimated() -> None:
    some: dict[str, Any] = {"layers": [2, 8], "replicates": 0}
    whole = pairs(run(**some))
    samples = [run(sample=4, seed=seed, **some) for seed in range(24)]
    values = np.stack([pairs(one) for one in samples])
    errors = np.stack([np.array(one.results["distances_pairs"]["error"]) for one in samples])
    assert samples[0].results["distances_pairs"]["n"][0] == 4 * len(SENTENCES)
    spread = values.std(0, ddof=1)
    # The standard error of the mean of 24 estimates is spread / sqrt(24). In these units, the root mean square of the
    # errors of 276 pairs is about 1.
    assert np.sqrt(np.mean(((values.mean(0) - whole) / (spread / np.sqrt(24))) ** 2)) < 1.4
    assert np.sqrt(np.mean(errors**2) / np.mean(spread**2)) == pytest.approx(1, abs=0.2)
    assert_array_equal(pairs(run(sample=4, seed=3, **some)), values[3])
    every = run(sample=1000, **some)
    assert_allclose(pairs(every), whole, rtol=1e-12)
    assert (np.array(every.results["distances_pairs"]["error"]) == 0).all()
    assert np.isnan(run(**some).results["distances_pairs"]["error"]).all()


def test_rows_can_be_limited_to_words_or_content_words() -> None:
    words = sum(len(text.split()) for text in SENTENCES)
    assert run(level="word", rows="word").results["distances_pairs"]["n"][0] == words
    assert run(level="word").results["distances_pairs"]["n"][0] == words + 2 * len(SENTENCES)
    content = sum(TAGS.get(form) in ("NOUN", "VERB", "ADJ") for text in SENTENCES for form in text.split())
    assert run(level="word", rows="content").results["distances_pairs"]["n"][0] == content
    untagged = Corpus.of([Document("d", (Sentence((Word("Hello"), Word("there"))),))])
    with pytest.raises(RunError, match="distances needs parts of speech"):
        run(untagged, level="word", rows="content")


def test_distances_of_given_maps_equal_those_worked_out_by_hand() -> None:
    """Two layers of two heads, one text: even attention, all on the first token, all on the second, even attention."""
    even, first, second = np.full((2, 2), 0.5), np.array([[1.0, 0], [1, 0]]), np.array([[0, 1.0], [0, 1]])
    maps = np.stack([np.stack([even, first]), np.stack([second, even])])
    found = hs.measure(maps, ["a", "b"], ["distances"], replicates=0)
    ln2 = np.log(2)
    half = -0.75 * np.log(0.75) - 0.25 * np.log(0.25) - ln2 / 2  # even attention against all weight on one of two tokens
    assert_allclose(pairs(found), [half, half, 0, ln2, half, half], atol=1e-6)  # 1-1 with 1-2, 2-1, 2-2; 1-2 with 2-1, 2-2; 2-1 with 2-2
    heads = found.results["distances"]
    assert heads.where(quantity="nearest")["neighbour"] == ["2-2", "1-1", "1-1", "1-1"]
    assert_allclose(heads.where(quantity="own_layer")["value"], half, atol=1e-6)
    assert_allclose(heads.where(quantity="other_layers")["value"], np.array([half, ln2 + half, half + ln2, half]) / 2, atol=1e-6)
    structure = {row["quantity"]: row["value"] for row in found.results["distances_structure"]}
    assert structure["within_layers"] == pytest.approx(half, abs=1e-6)
    assert structure["between_layers"] == pytest.approx((2 * half + ln2) / 4, abs=1e-6)
    assert structure["redundant_0.02"] == 2
    assert {row["p"] for row in found.results["distances_structure"] if row["quantity"] == "difference"} != {None}
    summed = hs.measure(maps, ["a", "b"], {"distances": {}}, preset="reference", replicates=0)
    smoothed = [0.999 * maps.reshape(4, 2, 2) + 0.0005]
    assert_allclose(pairs(summed), plain(smoothed) * 2, atol=1e-6)


def test_distances_of_saved_maps_of_bert_base_equal_scipys(data: Path) -> None:
    """The distances equal scipy's for all pairs of the 144 heads."""
    texts = [read_maps(path) for path in sorted((data / "maps").glob("*uncased*.npz"))]
    assert len(texts) > 1
    found = measure_maps(texts, {"distances": {}}, replicates=0, gallery=0)
    expected = plain([text.attention.astype(np.float64).reshape(-1, *text.attention.shape[2:]) for text in texts])
    assert_allclose(found["distances_pairs"]["value"], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": "content"}, "known per word"),
        ({"rows": "verbs"}, "token group 'verbs' is unknown"),
        ({"smoothing": 1.0}, "smoothing is 1.0"),
        ({"sample": 1}, "a sample of 1 rows"),
        ({"epsilons": (0.0,)}, "epsilons are"),
    ],
)
def test_invalid_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(MeasureError, match=message):
        make("distances", options)


def test_models_with_very_many_heads_use_fewer_groups() -> None:
    assert (groups(2), groups(144), groups(1024), groups(4096)) == (32, 32, 8, 8)


def test_a_single_head_has_no_distances() -> None:
    with pytest.warns(HeadscopeWarning, match="distances counted nothing"):
        found = hs.measure(np.full((1, 1, 2, 2), 0.5), ["a", "b"], ["distances"], replicates=5)
    assert all(len(found.results[name]) == 0 for name in ("distances", "distances_layers", "distances_pairs", "distances_structure"))
