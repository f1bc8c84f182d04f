"""Means with intervals against loops over replicates."""

from __future__ import annotations

import numpy as np
import pytest

from headscope.stats.bootstrap import poisson_weights
from headscope.stats.inference import Support, interval
from headscope.stats.resampled import difference, mean


def test_a_mean_and_its_interval_equal_a_loop_over_replicates() -> None:
    rng = np.random.default_rng(0)
    values, documents = rng.normal(size=(14, 2)), list("aaabbbbcccddef")
    values[3, 1] = np.nan
    found = mean(values, documents, 200, 5)
    assert found.value == pytest.approx(np.nanmean(values, 0))
    assert found.n.tolist() == [14, 13]
    assert found.documents.tolist() == [6, 6]
    weights = poisson_weights(list("abcdef"), 200, 5)[:, 1:]
    of = ["abcdef".index(name) for name in documents]
    replicates = []
    for column in range(200):
        drawn = np.repeat(values, weights[of, column].astype(int), axis=0)
        replicates.append(np.nanmean(drawn, 0) if len(drawn) else np.full(2, np.nan))
    support = Support.of(np.array([[3, 3], [4, 3], [3, 3], [2, 2], [1, 1], [1, 1]]))
    low, high = interval(found.value, np.array(replicates), support)
    assert found.low == pytest.approx(low)
    assert found.high == pytest.approx(high)


def test_a_difference_resamples_a_document_on_both_sides_together() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(9, 1)), rng.normal(size=(8, 1))
    left, right = list("aabbccefg"), list("abbbdefg")
    found = difference(x, left, y, right, 100, 3)
    assert found.value == pytest.approx(x.mean(0) - y.mean(0))
    assert found.n.tolist() == [17]
    assert found.documents.tolist() == [7]
    weights = dict(zip("abcefgd", poisson_weights(list("abcefgd"), 100, 3)[:, 1:], strict=True))
    replicates = []
    for column in range(100):
        one, other = (np.array([weights[name][column] for name in side]) for side in (left, right))
        if one.sum() and other.sum():
            replicates.append(one @ x[:, 0] / one.sum() - other @ y[:, 0] / other.sum())
    support = Support.of(np.array([2, 2, 2, 1, 1, 1])).both(Support.of(np.array([1, 3, 1, 1, 1, 1])))
    assert (found.low[0], found.high[0]) == pytest.approx(interval(found.value[0], np.array(replicates), support))


def test_the_mean_of_one_document_has_no_interval() -> None:
    found = mean(np.arange(4.0)[:, None], ["a"] * 4)
    assert found.value == pytest.approx(1.5)
    assert np.isnan(found.low).all()
    assert np.isnan(mean(np.zeros((0, 2)), []).value).all()


def test_bounds_do_not_exceed_the_limits_of_the_mean() -> None:
    values = np.array([0.0, 0, 0, 0, 0, 0, 0, 1])
    documents = [str(number) for number in range(8)]
    assert mean(values, documents, 200).low < 0
    assert mean(values, documents, 200, within=(0, 1)).low == 0
