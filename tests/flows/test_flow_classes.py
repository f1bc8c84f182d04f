"""Contributions of classes of words against loops and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy import stats

from headscope.core.document import Document, Sentence, Word
from headscope.errors import MeasureError
from headscope.studies.flow.classes import CLOSED, CLOSED_RELEASED, OPEN, PartsOfSpeech
from helpers.plain_texts import encoded, sentence

SENTENCES = [
    "DET NOUN VERB PRON",
    "NOUN VERB ADP DET ADJ NOUN",
    "DET NOUN AUX VERB",
    "INTJ",
    "PRON VERB DET NOUN PUNCT",
    "DET ADJ NOUN VERB NUM",
]
Values = NDArray[np.float64]


def world() -> tuple[PartsOfSpeech, dict[str, Values]]:
    """A study of six sentences with two layers, and the mean of each sentence over the pieces of a class, by loops."""
    rng = np.random.default_rng(0)
    study = PartsOfSpeech(replicates=50)
    kinds = {"open": OPEN, "closed": CLOSED, "closed (released)": CLOSED_RELEASED, "NOUN": {"NOUN"}, "DET": {"DET"}, "PRON": {"PRON"}}
    expected: dict[str, list[list[float]]] = {name: [] for name in kinds}
    for number, tags in enumerate(SENTENCES):
        pieces = [int(size) for size in rng.integers(1, 4, len(tags.split()))]
        text = encoded(sentence(tags, id=f"d{number % 3}"), pieces, name=f"s{number}")
        matrix = rng.random((2, len(text), len(text)))
        study.observe(text, {"G": matrix})
        tag_of = [None, *(tag for tag, size in zip(tags.split(), pieces, strict=True) for _ in range(size)), None]
        for name, members in kinds.items():
            rows = [place for place, tag in enumerate(tag_of) if tag in members]
            expected[name].append([float(np.mean([sum(matrix[layer, i]) for i in rows])) if rows else np.nan for layer in (0, 1)])
    return study, {name: np.array(values) for name, values in expected.items()}


def test_t_by_layer_can_be_recomputed_from_the_exported_values() -> None:
    tables = world()[0].tables()
    rows = list(tables["class_values"])
    assert {row["document"] for row in rows} == {"d0", "d1", "d2"}
    for contrast in tables["class_contrasts"].where(first="open", second="closed"):
        of = [
            {row["sentence"]: row["value"] for row in rows if (row["class"], row["layer"]) == (contrast[side], contrast["layer"])}
            for side in ("first", "second")
        ]
        both = [name for name in of[0] if name in of[1]]
        by_scipy = (
            stats.ttest_rel([of[0][name] for name in both], [of[1][name] for name in both])
            if contrast["test"] == "paired"
            else stats.ttest_ind(list(of[0].values()), list(of[1].values()), equal_var=False)
        )
        assert contrast["t"] == pytest.approx(by_scipy.statistic)


def test_means_of_classes_equal_those_of_loops() -> None:
    study, expected = world()
    rows = study.tables()["classes"]
    for name, values in expected.items():
        for layer, row in enumerate(rows.where(**{"class": name})):
            assert row["layer"] == layer + 1
            assert row["value"] == pytest.approx(np.nanmean(values[:, layer]), rel=1e-6)
            assert row["n"] == np.isfinite(values[:, layer]).sum()
    assert rows.where(**{"class": "SYM"})["n"] == [0, 0]
    assert np.isnan(rows.where(**{"class": "SYM"})["value"]).all()


@pytest.mark.parametrize(("first", "second"), [("open", "closed"), ("open", "closed (released)"), ("NOUN", "DET"), ("NOUN", "PRON")])
def test_contrasts_equal_scipy_over_the_sentences_that_have_their_classes(first: str, second: str) -> None:
    study, expected = world()
    tables = study.tables()
    x, y = expected[first], expected[second]
    has_first, has_second = ~np.isnan(x[:, 0]), ~np.isnan(y[:, 0])
    both = has_first & has_second
    rows = tables["class_contrasts"].where(first=first, second=second)
    welch, paired = rows.where(test="welch"), rows.where(test="paired")
    assert welch["t"] == pytest.approx(stats.ttest_ind(x[has_first], y[has_second], equal_var=False).statistic.tolist(), rel=1e-4)
    assert paired["t"] == pytest.approx(stats.ttest_rel(x[both], y[both]).statistic.tolist(), rel=1e-4)
    assert (welch["n_first"], welch["n_second"]) == ([has_first.sum()] * 2, [has_second.sum()] * 2)
    assert paired["n_first"] == [both.sum()] * 2
    headlines = {(row["preset"], row["test"]): row for row in tables["class_headlines"].where(first=first, second=second)}
    means = stats.ttest_ind(x[has_first].mean(1), y[has_second].mean(1), equal_var=False)
    assert headlines["recommended", "welch"]["t"] == pytest.approx(means.statistic, rel=1e-4)
    pooled = stats.ttest_ind(x[has_first].ravel(), y[has_second].ravel(), equal_var=False)
    assert headlines["reference", "welch"]["t"] == pytest.approx(pooled.statistic, rel=1e-4)
    assert headlines["reference", "welch"]["n_first"] == 2 * has_first.sum()
    assert headlines["recommended", "paired"]["n_first"] == both.sum()


def test_listwise_deletion_omits_a_sentence_from_all_tests_by_layer() -> None:
    study = PartsOfSpeech([("NOUN", "DET"), ("NOUN", "PRON")], "listwise", replicates=0)
    for tags in SENTENCES:
        text = encoded(sentence(tags))
        study.observe(text, {"A": np.random.default_rng(0).random((1, len(text), len(text)))})
    assert set(study.tables()["class_contrasts"]["n_first"]) == {2}  # the first and fifth have NOUN, DET and PRON
    assert set(study.tables()["class_headlines"].where(second="DET", test="welch")["n_first"]) == {5}, "as released: all five with a NOUN"
    assert study.tables()["classes"].where(**{"class": "NOUN"})["n"] == [5]


def test_unknown_classes_or_deletions_and_sentences_without_tags_are_refused() -> None:
    with pytest.raises(MeasureError, match="unknown class of words 'noun'"):
        PartsOfSpeech([("noun", "VERB")])
    with pytest.raises(MeasureError, match="Use one of comparison, listwise"):
        PartsOfSpeech(deletion="pairwise")  # type: ignore[arg-type]
    bare = encoded(Document("d", (Sentence((Word("a"), Word("b"))),)))
    with pytest.raises(MeasureError, match="no parts of speech"):
        PartsOfSpeech().observe(bare, {"A": np.zeros((1, 4, 4))})
    assert not OPEN & CLOSED
    assert CLOSED_RELEASED < CLOSED
