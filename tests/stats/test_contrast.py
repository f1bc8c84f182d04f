"""Differences between systems: tests against scipy's and exact binomial ones, intervals against resampling by loops."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import stats

from headscope.errors import MeasureError
from headscope.stats.bootstrap import poisson_weights
from headscope.stats.classification import F1, Accuracy, Matthews
from headscope.stats.contrast import contrast, mcnemar
from headscope.stats.inference import Support, interval, p_value
from headscope.stats.scores import Function, Mean, Perplexity
from headscope.stats.significance import benjamini_hochberg, holm
from headscope.stats.translation import Bleu

Array = NDArray[np.float64]


def answers(seed: int, n: int = 40, systems: tuple[int, ...] = (2, 3)) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    rng = np.random.default_rng(seed)
    truth = rng.integers(3, size=n)
    base = np.where(rng.random(n) < 0.8, truth, rng.integers(3, size=n))
    return truth, base, np.where(rng.random((*systems, n)) < 0.8, base, rng.integers(3, size=(*systems, n)))


@given(lost=st.integers(0, 12), won=st.integers(0, 12))
@settings(max_examples=40, deadline=None)
def test_mcnemar_is_the_exact_binomial_test(lost: int, won: int) -> None:
    base = np.array([True] * lost + [False] * won + [True, False])
    system = np.array([False] * lost + [True] * won + [True, False])
    rarer, n = min(lost, won), lost + won
    by_hand = min(1.0, 2 * sum(comb(n, k) for k in range(rarer + 1)) / 2**n)
    assert mcnemar(base, np.stack([system, base])) == pytest.approx([by_hand, 1])
    if n:
        assert stats.binomtest(lost, n).pvalue == pytest.approx(by_hand)


def test_mcnemar_is_exact_for_many_examples() -> None:
    base, system = np.zeros(9000, dtype=bool), np.zeros(9000, dtype=bool)
    base[:2500], system[2500:4700] = True, True
    assert mcnemar(base, system) == pytest.approx(stats.binomtest(2200, 4700).pvalue)


@pytest.mark.parametrize("score", [Accuracy(), F1("macro", 3), Matthews(3)])
def test_the_paired_bootstrap_equals_a_loop_over_replicates(score: Accuracy | F1 | Matthews) -> None:
    truth, base, systems = answers(3)
    documents = [f"d{number // 4}" for number in range(40)]
    found = contrast(score, score.statistics(base, truth), score.statistics(systems, truth), documents, "bootstrap", replicates=60, seed=4)
    weights = poisson_weights([f"d{number}" for number in range(10)], 60, 4)
    assert (found.n, found.units, found.test) == (40, 10, "bootstrap")
    assert found.base == pytest.approx(score.of(score.statistics(base, truth)))
    for place in np.ndindex(2, 3):
        differences = []
        for replicate in range(1, 61):
            drawn = [example for example in range(40) for _ in range(int(weights[example // 4, replicate]))]
            pair = (score.of(score.statistics(side[drawn], truth[drawn])) for side in (systems[place], base))
            differences.append(float(next(pair) - next(pair)))
        assert found.difference[place] == pytest.approx(score.of(score.statistics(systems[place], truth)) - found.base)
        again, alike = np.array(differences), Support.alike(10)  # documents have 4 examples each
        assert [found.low[place], found.high[place]] == pytest.approx(interval(found.difference[place], again, alike))
        assert found.p[place] == pytest.approx(p_value(found.difference[place], again, alike))


def test_the_t_tests_equal_scipys() -> None:
    rng = np.random.default_rng(1)
    losses, counts = rng.exponential(3, (4, 30)), rng.integers(1, 9, 30).astype(float)
    for score in (Mean("loss", "lower"), Perplexity()):
        rows = score.statistics(losses, counts)
        pair = contrast(score, rows[0], rows[1:], test="paired_t", replicates=10)
        unpaired = contrast(score, rows[0], rows[1:], test="unpaired_t", replicates=10)
        for place in range(3):
            x, y = losses[place + 1] / counts, losses[0] / counts
            assert pair.p[place] == pytest.approx(stats.ttest_rel(x, y).pvalue)
            assert unpaired.p[place] == pytest.approx(stats.ttest_ind(x, y, equal_var=False).pvalue)
    assert np.isnan(contrast(Accuracy(), np.ones((5, 2)), np.ones((5, 2)), test="paired_t").p)


def test_accuracy_is_tested_by_mcnemar_and_p_values_are_corrected() -> None:
    truth, base, systems = answers(8, 200)
    score = Accuracy()
    found = contrast(score, score.statistics(base, truth), score.statistics(systems, truth), replicates=20)
    assert found.test == "mcnemar"
    assert found.p == pytest.approx(mcnemar(base == truth, systems == truth))
    assert found.p.shape == (2, 3)
    assert found.holm.ravel() == pytest.approx(holm(found.p.ravel()))
    assert found.benjamini_hochberg.ravel() == pytest.approx(benjamini_hochberg(found.p.ravel()))
    assert (found.low <= found.difference).all()
    assert (found.difference <= found.high).all()


def test_the_default_test_treats_documents_and_not_examples_as_independent() -> None:
    """McNemar's test over examples is the default only if each example is a separate document. Two documents give no p
    at all.
    """
    truth, base, systems = answers(8, 40)
    score = Accuracy()
    rows = score.statistics(base, truth), score.statistics(systems, truth)
    assert contrast(score, *rows, replicates=20).test == "mcnemar"
    assert contrast(score, *rows, [str(number // 4) for number in range(40)], replicates=20).test == "bootstrap"
    for test in ("mcnemar", "bootstrap", "paired_t", "unpaired_t"):
        two = contrast(score, *rows, [str(number // 20) for number in range(40)], test, replicates=20)
        assert two.units == 2
        assert np.isnan([two.p, two.low, two.high]).all()


def test_long_examples_lower_the_effective_number_of_documents() -> None:
    """In a mean loss, the weight of an example is its number of items. One example of 50 items and nine of 1 are 59^2 /
    2509 = 1.39 effective documents, which is too few.
    """
    score, rng = Mean("loss", "lower"), np.random.default_rng(2)
    counts = np.array([50.0] + [1] * 9)
    rows = score.statistics(rng.exponential(3, (3, 10)) * counts, counts)
    assert np.isnan(contrast(score, rows[0], rows[1:], replicates=50).p).all()
    assert np.isfinite(contrast(score, rows[0] / counts[:, None], rows[1:] / counts[:, None], replicates=50).p).all()


def test_a_copy_of_the_base_differs_by_0_and_a_worse_system_significantly() -> None:
    """A system equal to the base differs by 0, with p = 1. A system that breaks one sentence per document is
    significantly worse.
    """
    score = Bleu(["a dog runs on the green grass", "two men sit on the bench today"] * 10)
    good = score.statistics(["a dog runs on the green grass", "two men sit on the bench"] * 10)
    bad = score.statistics(["a dog runs on the green grass", "two dogs walk by"] * 10)
    documents = [str(number // 2) for number in range(20)]
    found = contrast(score, good, np.stack([good, bad]), documents, replicates=200)
    assert found.difference[0] == found.low[0] == found.high[0] == 0
    assert found.p[0] == 1
    assert found.p[1] == 2.0**-9  # all ten documents lose equally: the sign test
    assert found.high[1] < 0
    single = contrast(score, good, bad, documents, replicates=200)
    assert single.difference.shape == ()
    assert single.difference == found.difference[1]


def test_rounding_does_not_make_equal_systems_differ() -> None:
    rng = np.random.default_rng(0)
    score = Mean("loss", "lower")
    rows = score.statistics(rng.exponential(3, 333) / 3, rng.integers(1, 9, 333).astype(float))
    found = contrast(score, rows, np.stack([rows] * 7 + [rows * [1.001, 1]]), replicates=100)
    assert (found.difference[:7] == 0).all()
    assert found.p[:7].tolist() == [1] * 7
    assert found.p[7] < 1e-6


def test_custom_functions_are_resampled() -> None:
    median = Function(lambda rows: float(np.median(rows[:, 0])), ("value",), "median")
    values = np.arange(30.0)[:, None]
    found = contrast(median, values, np.stack([values + 1, values]), replicates=50)
    assert found.difference.tolist() == [1, 0]
    assert (found.low[0], found.high[0]) == (1, 1)
    assert found.p.tolist() == [2.0**-29, 1]  # all 30 agree: the sign test


def test_one_document_gives_neither_interval_nor_p() -> None:
    found = contrast(Accuracy(), np.ones((4, 2)), np.ones((3, 4, 2)), ["d"] * 4, "bootstrap")
    assert np.isnan(found.p).all()
    assert np.isnan(found.low).all()


def test_invalid_comparisons_are_refused() -> None:
    rows = np.ones((4, 2))
    with pytest.raises(MeasureError, match="no test 'z'"):
        contrast(Accuracy(), rows, rows, test="z")  # type: ignore[arg-type]
    with pytest.raises(MeasureError, match="all examples of both"):
        contrast(Accuracy(), rows, rows[:3])
    with pytest.raises(MeasureError, match="for 3 examples of 4"):
        contrast(Accuracy(), rows, rows, ["d"] * 3)
    with pytest.raises(MeasureError, match="as McNemar's test requires"):
        contrast(Mean(), rows * [0.3, 1], rows, test="mcnemar")
    with pytest.raises(MeasureError, match="not a mean over examples"):
        contrast(F1(), np.ones((4, 3)), np.ones((4, 3)), test="paired_t")
