"""Coreference flow against scipy, on random pairs."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from headscope.core.document import Document, Mention, Sentence, Word
from headscope.core.tally import Tally
from headscope.encoding.texts import Encoded, Encoder
from headscope.results.table import Table
from headscope.stats.regression import matched
from headscope.stats.significance import holm
from headscope.studies.flow.coreference import CoreferenceFlow
from headscope.studies.flow.items import Pair, Passage, draw
from helpers.families import tokenizer
from helpers.plain_texts import encoded


def passage(name: str, size: int, pairs: list[Pair]) -> Passage:
    return Passage(Document(name, (Sentence(tuple(Word(f"w{place}") for place in range(size))),)), tuple(pairs))


def world(
    texts: int = 12, effect: float = 1.0
) -> tuple[list[tuple[Passage, Encoded, NDArray[np.float64]]], NDArray[np.float64], list[Pair]]:
    """Random texts of two pairs each, with a flow between tokens; the flow of each pair in two layers; and the pairs.
    Every second word has two pieces.
    """
    rng = np.random.default_rng(0)
    seen, values, pairs = [], [], []
    for number in range(texts):
        size = int(rng.integers(12, 30))
        selected = [Pair(int(rng.integers(0, 3)), int(rng.integers(5, size)), bool(same)) for same in (0, 1)]
        pieces = [1 + place % 2 for place in range(size)]
        given = passage(f"d{number % 6}", size, selected)
        text = encoded(given.document, pieces, name=f"t{number}")
        matrix = rng.random((2, len(text), len(text)))
        starts = np.cumsum([1, *pieces])
        for pair in selected:
            block = (slice(None), slice(starts[pair.noun], starts[pair.noun + 1]), slice(starts[pair.pronoun], starts[pair.pronoun + 1]))
            matrix[block] += effect * pair.same
            values.append(matrix[block].mean((1, 2)))
        seen.append((given, text, matrix))
        pairs += selected
    return seen, np.array(values, dtype=np.float32).astype(np.float64), pairs


def studied(replicates: int = 50) -> tuple[dict[str, Table], NDArray[np.float64], list[Pair]]:
    seen, values, pairs = world()
    study = CoreferenceFlow(replicates=replicates)
    for given, text, matrix in seen:
        study.observe(text, {"A": matrix, "G": 2 * matrix}, given)
    return study.tables(), values, pairs


def test_welch_tests_of_every_layer_equal_scipy() -> None:
    tables, values, pairs = studied()
    same = np.array([pair.same for pair in pairs])
    by_scipy = stats.ttest_ind(values[same], values[~same], equal_var=False)
    rows = list(tables["coreference"].where(measure="A", test="welch"))
    assert [row["layer"] for row in rows] == [1, 2]
    for layer, row in enumerate(rows):
        assert row["t"] == pytest.approx(by_scipy.statistic[layer])
        assert row["p"] == pytest.approx(by_scipy.pvalue[layer])
        assert row["mean_same"] == pytest.approx(values[same, layer].mean())
        assert row["low"] < row["difference"] < row["high"]
        assert (row["n_same"], row["n_different"], row["documents"], row["reason"]) == (12, 12, 6, "")
        pooled = (values[same, layer].var(ddof=1) + values[~same, layer].var(ddof=1)) / 2
        assert row["d"] == pytest.approx(row["difference"] / pooled**0.5)
    assert [row["p_holm"] for row in rows] == pytest.approx(holm(by_scipy.pvalue))
    assert tables["coreference"].where(measure="G", test="welch")["t"] == pytest.approx(by_scipy.statistic, rel=1e-5)


def test_headlines_use_one_mean_per_pair_or_pool_the_layers() -> None:
    tables, values, pairs = studied()
    same = np.array([pair.same for pair in pairs])
    rows = {row["preset"]: row for row in tables["coreference_headline"].where(measure="A", test="welch")}
    means = values.mean(1)
    assert rows["recommended"]["t"] == pytest.approx(stats.ttest_ind(means[same], means[~same], equal_var=False).statistic)
    assert rows["recommended"]["n_same"] == 12
    assert rows["reference"]["t"] == pytest.approx(stats.ttest_ind(values[same].ravel(), values[~same].ravel(), equal_var=False).statistic)
    assert rows["reference"]["n_same"] == 24


def test_matched_pairs_and_regression_control_for_distance() -> None:
    tables, values, pairs = studied()
    one, two = ([number for number, pair in enumerate(pairs) if pair.same == same] for same in (True, False))
    partners = matched([pairs[number].distance for number in one], [pairs[number].distance for number in two])
    assert 2 < len(partners) < 12
    x, y = values[[one[a] for a, _ in partners]], values[[two[b] for _, b in partners]]
    rows = list(tables["coreference"].where(measure="A", test="matched"))
    assert [row["t"] for row in rows] == pytest.approx(stats.ttest_ind(x, y, equal_var=False).statistic.tolist())
    assert rows[0]["n_same"] == rows[0]["n_different"] == len(partners)
    design = np.array([[1, pair.same, np.log(pair.distance)] for pair in pairs], dtype=np.float64)
    for layer, row in enumerate(tables["coreference"].where(measure="A", test="regression")):
        inverse = np.linalg.inv(design.T @ design)
        beta = inverse @ design.T @ values[:, layer]
        error = (inverse[1, 1] * ((values[:, layer] - design @ beta) ** 2).sum() / 21) ** 0.5
        assert row["difference"] == pytest.approx(beta[1])
        assert row["t"] == pytest.approx(beta[1] / error)
        assert row["d"] == pytest.approx(beta[1] / (error / inverse[1, 1] ** 0.5))  # with the residual SD of the fit
        assert row["low"] < row["difference"] < row["high"]
    distance_rows = {(row["test"], row["same"]): row for row in tables["coreference_distances"]}
    assert distance_rows["welch", True]["mean"] == pytest.approx(np.mean([pairs[number].distance for number in one]))
    assert distance_rows["matched", False]["n"] == len(partners)


def test_t_by_layer_can_be_recomputed_from_the_exported_values() -> None:
    tables, _, pairs = studied()
    rows = list(tables["coreference_values"])
    assert len(rows) == 2 * len(pairs) * 2  # measures, layers
    for name, keep in (("welch", {True, False}), ("matched", {True})):
        for row in tables["coreference"].where(test=name):
            selected = [one for one in rows if (one["measure"], one["layer"]) == (row["measure"], row["layer"]) and one["matched"] in keep]
            x, y = ([one["value"] for one in selected if one["same"] == same] for same in (True, False))
            assert row["t"] == pytest.approx(stats.ttest_ind(x, y, equal_var=False).statistic)
    for row in tables["coreference"].where(test="regression"):
        selected = [one for one in rows if (one["measure"], one["layer"]) == (row["measure"], row["layer"])]
        design = np.array([[1, one["same"], np.log(one["distance"])] for one in selected], dtype=np.float64)
        assert row["difference"] == pytest.approx(np.linalg.lstsq(design, [one["value"] for one in selected], rcond=None)[0][1])
    first = tables["coreference_items"].where(measure="A").head(1)
    assert first["value"][0] == pytest.approx(np.mean([row["value"] for row in rows if (row["measure"], row["pair"]) == ("A", 1)]))


def test_items_are_listed_and_pairs_with_cut_off_words_are_counted() -> None:
    tables, values, pairs = studied(0)
    items = tables["coreference_items"].where(measure="A")
    assert items["distance"] == [pair.distance for pair in pairs]
    assert items["value"] == pytest.approx(values.mean(1).tolist())
    study = CoreferenceFlow(replicates=0)
    given = passage("d", 4, [Pair(0, 3, True), Pair(0, 2, False)])
    text = encoded(given.document, [1, 1, 1, 0])
    study.observe(text, {"A": np.ones((1, 5, 5))}, given)
    assert study.left_out.counts.total() == 1
    assert len(study.tables()["coreference_items"]) == 1
    assert set(study.tables()["coreference"]["reason"]) == {"fewer than 2 observations", "too few observations"}


def test_pairs_of_an_encoded_passage_have_the_mean_flow_between_their_pieces() -> None:
    """In a passage with [CLS] and [SEP], the value of a pair is the mean flow between the pieces of its words."""
    sentences = [[Word(form, xpos=tag) for form, tag in one] for one in ([("cat", "NN"), ("ran", "VBD")], [("so", "RB"), ("it", "PRP")])]
    story = Document("s", tuple(Sentence(tuple(one)) for one in sentences), (Mention("c", 0, 1), Mention("c", 3, 4)))
    tree = Document("t", story.sentences, (Mention("c", 0, 1), Mention("d", 3, 4)))
    encoder = Encoder(tokenizer("letters"), "document")
    study = CoreferenceFlow(replicates=0)
    passages = draw([story, tree], 2, strata=())
    for given in passages:
        (text,) = encoder.texts([given.document], Tally())
        matrix = np.zeros((1, len(text), len(text)))
        matrix[0, 1:4, 9:11] = np.arange(6).reshape(3, 2)  # [CLS] c ##a ##t r ##a ##n s ##o i ##t [SEP]
        study.observe(text, {"A": matrix}, given)
    items = study.tables()["coreference_items"]
    assert items["value"] == [2.5, 2.5]
    assert items["noun"] == ["cat", "cat"]
    assert items["pronoun"] == ["it", "it"]
    assert items["document"] == ["s", "t"]
    assert items["same"] == [True, False]


def test_without_observations_only_the_table_of_distances_has_rows() -> None:
    assert {name: len(table) for name, table in CoreferenceFlow().tables().items()} == {
        "coreference": 0,
        "coreference_headline": 0,
        "coreference_distances": 4,
        "coreference_items": 0,
        "coreference_values": 0,
    }
