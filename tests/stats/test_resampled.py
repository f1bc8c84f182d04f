"""Means with intervals against loops over replicates."""

from __future__ import annotations

import numpy as np
import pytest

from headscope.stats.bootstrap import poisson_weights
from headscope.stats.resampled import difference, mean


def test_a_mean_and_its_replicates_one_by_one() -> None:
    rng = np.random.default_rng(0)
    values, documents = rng.normal(size=(12, 2)), list("aaabbbbcccdd")
    values[3, 1] = np.nan
    found = mean(values, documents, 200, 5)
    assert found.value == pytest.approx(np.nanmean(values, 0))
    assert found.n.tolist() == [12, 11]
    assert found.documents.tolist() == [4, 4]
    weights = poisson_weights(["a", "b", "c", "d"], 200, 5)[:, 1:]
    of = ["abcd".index(name) for name in documents]
    replicates = []
    for column in range(200):
        drawn = np.repeat(values, weights[of, column].astype(int), axis=0)
        replicates.append(np.nanmean(drawn, 0) if len(drawn) else np.full(2, np.nan))
    assert found.low == pytest.approx(np.nanpercentile(replicates, 2.5, axis=0))
    assert found.high == pytest.approx(np.nanpercentile(replicates, 97.5, axis=0))


def test_a_difference_counts_a_document_on_both_sides() -> None:
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(6, 1)), rng.normal(size=(5, 1))
    left, right = list("aabbcc"), list("abbbd")
    found = difference(x, left, y, right, 100, 3)
    assert found.value == pytest.approx(x.mean(0) - y.mean(0))
    assert found.n.tolist() == [11]
    assert found.documents.tolist() == [4]
    weights = dict(zip("abcd", poisson_weights(list("abcd"), 100, 3)[:, 1:], strict=True))
    replicates = []
    for column in range(100):
        one, other = (np.array([weights[name][column] for name in side]) for side in (left, right))
        if one.sum() and other.sum():
            replicates.append(one @ x[:, 0] / one.sum() - other @ y[:, 0] / other.sum())
    assert found.low[0] == pytest.approx(np.percentile(replicates, 2.5))
    assert found.high[0] == pytest.approx(np.percentile(replicates, 97.5))


def test_one_document_cannot_be_resampled() -> None:
    found = mean(np.arange(4.0)[:, None], ["a"] * 4)
    assert found.value == pytest.approx(1.5)
    assert np.isnan(found.low).all()
    assert np.isnan(mean(np.zeros((0, 2)), []).value).all()
