from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.corpora.stats import Distribution, Offsets


def offsets(*values: int) -> Offsets:
    result = Offsets()
    for value in values:
        result.add(value)
    return result


@given(st.lists(st.integers(-30, 30), min_size=1), st.sampled_from([0, 0.1, 0.25, 0.5, 0.75, 0.9, 1]))
def test_summaries_match_those_of_the_plain_values(values: list[int], q: float) -> None:
    result = offsets(*values)
    assert (result.n, result.total) == (len(values), sum(values))
    assert result.mean == pytest.approx(np.mean(values))
    assert result.quantile(q) == pytest.approx(np.quantile(values, q))
    assert result.share([values[0]]) == values.count(values[0]) / len(values)
    assert result.distances.mean == pytest.approx(np.abs(values).mean())


def test_offsets_match_values_by_hand() -> None:
    result = Offsets.merged([offsets(1, 1, -2), offsets(-2, 3)])
    assert result.right == 3 / 5
    assert result.distances.counts == {1: 2, 2: 2, 3: 1}
    assert result.usual == 1, "1 and -2 are equally frequent, and 1 is nearer"
    assert offsets(-1, 1).usual == 1


def test_summaries_of_an_empty_distribution_are_0_or_nan() -> None:
    empty = Distribution()
    assert (empty.n, empty.total) == (0, 0)
    assert all(map(math.isnan, (empty.mean, empty.quantile(0.5), empty.share([1]), Offsets().right)))
    assert Offsets().usual == 0
