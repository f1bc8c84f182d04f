"""Scores against scikit-learn's and sacrebleu's, and against counts made by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sacrebleu.metrics.base import Metric
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sklearn import metrics

from headscope.errors import MeasureError
from headscope.stats.classification import F1, Accuracy, KeyphraseF1, Matthews
from headscope.stats.scores import Function, Mean, Perplexity, Score, make_score
from headscope.stats.translation import Bleu, Chrf

Array = NDArray[np.float64]
WORDS = ["a", "dog", "runs", "two", "men", "on", "the", "grass", ",", "don't", "Stop", "."]


def guesses(seed: int, n: int, classes: int, systems: int = 3) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(classes, size=n)
    return np.where(rng.random((systems, n)) < 0.5, truth, rng.integers(classes, size=(systems, n))), truth


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 25), classes=st.integers(2, 4))
@settings(max_examples=40, deadline=None)
def test_scores_of_classes_equal_those_of_scikit_learn(seed: int, n: int, classes: int) -> None:
    predicted, truth = guesses(seed, n, classes)
    accuracy, macro, micro, matthews = Accuracy(), F1("macro", classes), F1("micro", classes), Matthews(classes)
    found = [score.of(score.statistics(predicted, truth)) for score in (accuracy, macro, micro, matthews)]
    for system, guess in enumerate(predicted):
        assert found[0][system] == pytest.approx(metrics.accuracy_score(truth, guess))
        assert found[1][system] == pytest.approx(metrics.f1_score(truth, guess, average="macro"))
        assert found[2][system] == pytest.approx(metrics.accuracy_score(truth, guess))
        known = metrics.matthews_corrcoef(truth, guess) if len({*truth}) > 1 and len({*guess}) > 1 else 0
        assert found[3][system] == pytest.approx(known)
    if classes == 2:
        for positive in (0, 1):
            binary = F1("binary", positive=positive)
            for system, guess in enumerate(predicted):
                if positive in truth or positive in guess:
                    known = metrics.f1_score(truth, guess, pos_label=positive)
                    assert binary.of(binary.statistics(predicted, truth))[system] == pytest.approx(known)


def test_scores_of_classes_equal_those_worked_out_by_hand() -> None:
    """Truth 1 1 1 0 0, predicted 1 1 0 1 0: 2 found, 1 wrong, 1 missed, so F1 is 2/3. F1 of class 0 is 1/2, Matthews
    correlation (2*1-1*1)/6.
    """
    truth, predicted = np.array([1, 1, 1, 0, 0]), np.array([1, 1, 0, 1, 0])
    assert F1().of(F1().statistics(predicted, truth)) == pytest.approx(2 / 3)
    assert F1("macro").of(F1("macro").statistics(predicted, truth)) == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert Matthews().of(Matthews().statistics(predicted, truth)) == pytest.approx(1 / 6)
    assert F1().statistics(predicted, truth).tolist() == [[1, 0, 0], [1, 0, 0], [0, 0, 1], [0, 1, 0], [0, 0, 0]]
    assert math.isnan(F1().of(F1().statistics(np.zeros(3, int), np.zeros(3, int))))
    assert math.isnan(Accuracy().of(np.zeros((0, 2))))
    assert math.isnan(Matthews().of(np.zeros((0, 6))))


def test_means_weight_items_and_not_examples() -> None:
    """Two texts of 1 and 3 pieces have total losses of 4 and 2: the mean is 6 / 4, not (4 + 2/3) / 2."""
    loss = make_score("loss")
    assert isinstance(loss, Mean)
    statistics = loss.statistics(np.array([4.0, 2]), np.array([1.0, 3]))
    assert loss.of(statistics) == pytest.approx(1.5)
    assert loss.each(statistics) == pytest.approx([4, 2 / 3])
    assert Perplexity().of(statistics) == pytest.approx(math.exp(1.5))
    assert Perplexity().of(loss.statistics(np.array([1e4]))) == math.inf
    assert (loss.better, Perplexity().better, Accuracy().better, make_score("masked_accuracy").better) == (
        *("lower", "lower"),
        *("higher", "higher"),
    )


def sentences(seed: int, n: int, shortest: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(shortest, 9))) for _ in range(n)]


@given(seed=st.integers(0, 2**32 - 1), n=st.integers(1, 6), tokenize=st.sampled_from(["13a", "none"]), lowercase=st.booleans())
@settings(max_examples=60, deadline=None)
def test_bleu_and_chrf_equal_those_of_sacrebleu(seed: int, n: int, tokenize: str, lowercase: bool) -> None:
    systems = [sentences(seed + number, n) for number in range(3)]
    first, second = sentences(seed + 7, n, 1), sentences(seed + 8, n, 1)
    references = [[one, other] if number % 2 else [one] for number, (one, other) in enumerate(zip(first, second, strict=True))]
    streams = [first, [other if number % 2 else None for number, other in enumerate(second)]]
    pairs: list[tuple[Bleu | Chrf, Metric]] = [
        (Bleu(references, tokenize, lowercase), BLEU(tokenize=tokenize, lowercase=lowercase, force=True)),
        (Chrf(references, lowercase=lowercase), CHRF(lowercase=lowercase)),
        (Chrf(references, words=2), CHRF(word_order=2)),
    ]
    for score, theirs in pairs:
        found = score.of(np.stack([score.statistics(system) for system in systems]))
        for system, value in zip(systems, found, strict=True):
            assert value == pytest.approx(theirs.corpus_score(system, streams).score)  # type: ignore[arg-type]
            assert score.signature.partition("|")[2] == str(theirs.get_signature())


def test_bleu_equals_a_value_worked_out_by_hand() -> None:
    """6 of 7 words, 4 of 6 bigrams, 2 of 5 trigrams and 1 of 4 4-grams match. The sentence is one word shorter than its
    reference.
    """
    score = make_score("bleu", references=["the cat sat on the red mat today"])
    assert isinstance(score, Bleu)
    value = score.of(score.statistics(["the cat sat on a red mat"]))
    assert value == pytest.approx(100 * math.exp(1 - 8 / 7) * (6 / 7 * 4 / 6 * 2 / 5 * 1 / 4) ** 0.25)
    assert score.signature.startswith("BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:")
    assert score.of(score.statistics([""])) == 0
    assert math.isnan(score.of(np.zeros((0, 10))))
    assert make_score("bleu_tokenized", references=["a"]).signature.split("|")[4] == "tok:none"
    assert Chrf(["a"]).signature.startswith("chrF2|nrefs:1")


def spans(tags: list[str]) -> set[tuple[int, int]]:
    """Return the start and end of each phrase, found in one pass over the words."""
    found, start = set(), None
    for place, tag in enumerate([*tags, "O"]):
        if start is not None and tag != "I":
            found.add((start, place))
            start = None
        if start is None and tag != "O":
            start = place
    return found


def test_keyphrase_scores_equal_those_worked_out_by_hand() -> None:
    truth = [["B", "I", "O", "O", "B"], ["O", "O"]]
    predicted = [["B", "I", "I", "O", "O"], ["O", "B"]]
    token, span = make_score("keyphrase_tokens"), make_score("keyphrase_spans")
    assert isinstance(token, KeyphraseF1)
    assert isinstance(span, KeyphraseF1)
    assert token.statistics(predicted, truth).tolist() == [[2, 1, 1], [0, 1, 0]]
    assert token.of(token.statistics(predicted, truth)) == pytest.approx(4 / 7)
    assert span.statistics(predicted, truth).tolist() == [[0, 1, 2], [0, 1, 0]]
    assert span.of(span.statistics(truth, truth)) == 1
    assert span.statistics([[1, 1, 0, 1]], [["B", "I", "O", "B"]]).tolist() == [[2, 0, 0]]
    assert span.statistics([[], []], [[], []]).tolist() == [[0, 0, 0]] * 2
    with pytest.raises(MeasureError, match="the tag 'X' is unknown"):
        span.statistics([["X"]], [["O"]])


def test_keyphrase_scores_equal_those_of_sets_of_spans() -> None:
    """Texts of 0 to 9 words have random tags. A phrase is found if both sides have a phrase with the same start and
    end.
    """
    rng = np.random.default_rng(0)
    sides = [[[str(rng.choice(["B", "I", "O"])) for _ in range(size)] for size in range(10) for _ in range(40)] for _ in range(2)]
    for score, size in ((KeyphraseF1("span"), None), (KeyphraseF1("token"), 1)):
        expected = []
        for guess, true in zip(*sides, strict=True):
            found, known = (spans(tags) if size is None else {(k, 0) for k, tag in enumerate(tags) if tag != "O"} for tags in (guess, true))
            expected.append([len(found & known), len(found - known), len(known - found)])
        assert score.statistics(*sides).tolist() == expected


def test_a_custom_function_is_applied_to_the_drawn_examples() -> None:
    """A median cannot be computed from sums."""
    median = Function(lambda rows: float(np.median(rows[:, 0])), ("value",), "median")
    values = np.array([[[1.0], [2], [9]], [[3], [4], [5]]])
    assert median.of(values).tolist() == [2, 4]
    assert median.of(values[0]) == 2
    # Examples 0 and 1 are of one document, example 2 of another. The first replicate draws the second document twice,
    # the second replicate does not draw it, and the third draws nothing.
    found = median.resampled(values, np.array([0, 0, 1]), np.array([[1.0, 1, 0], [2, 0, 0]]))
    assert found[:2].tolist() == [[5.5, 4.5], [1.5, 3.5]]
    assert np.isnan(found[2]).all()


@pytest.mark.parametrize("score", [Accuracy(), F1("macro", 3), Matthews(3)])
def test_resampled_scores_equal_the_scores_of_the_drawn_examples(score: Accuracy | F1 | Matthews) -> None:
    predicted, truth = guesses(5, 12, 3)
    units = np.repeat([0, 1, 2], 4)
    weights = np.array([[1.0, 2], [0, 1], [3, 0]])
    statistics = score.statistics(predicted, truth)
    found = score.resampled(statistics, units, weights)
    for replicate in range(2):
        drawn = np.repeat(np.arange(12), weights[units, replicate].astype(int))
        assert found[replicate] == pytest.approx(score.of(score.statistics(predicted[:, drawn], truth[drawn])))


def test_invalid_scores_and_inputs_are_refused() -> None:
    with pytest.raises(MeasureError, match=r"no score 'blue'.*bleu, bleu_tokenized"):
        make_score("blue")
    with pytest.raises(MeasureError, match="f1_macro"):
        make_score("f1", classes=3)
    with pytest.raises(MeasureError, match="average 'weighted' is unknown"):
        F1("weighted")  # type: ignore[arg-type]
    with pytest.raises(MeasureError, match="for 3 examples and true classes for 2"):
        Accuracy().statistics(np.zeros(3, int), np.zeros(2, int))
    with pytest.raises(MeasureError, match="classes from 2 to 2"):
        Matthews().statistics(np.array([2]), np.array([0]))
    with pytest.raises(MeasureError, match="found 1, wrong 1, missed 1"):
        F1().of(np.zeros((4, 2)))
    with pytest.raises(MeasureError, match="paired bootstrap"):
        F1().each(np.zeros((4, 3)))
    with pytest.raises(MeasureError, match="no reference"):
        Bleu([])
    with pytest.raises(MeasureError, match="there are 2 sentences and 1 references"):
        Bleu(["a"]).statistics(["a", "b"])
    with pytest.raises(MeasureError, match="no tokenizer 'moses'"):
        Bleu(["a"], "moses").statistics(["a"])
    with pytest.raises(MeasureError, match="1 tags and 2 true tags"):
        KeyphraseF1().statistics([["B"]], [["B", "I"]])
    with pytest.raises(MeasureError, match="tags for 1 texts and true tags for"):
        KeyphraseF1().statistics([["B"]], [])
    median: Score = Function(lambda rows: 0.0, ("value",))
    with pytest.raises(MeasureError, match="does not follow from sums"):
        median.total(np.zeros(1))
