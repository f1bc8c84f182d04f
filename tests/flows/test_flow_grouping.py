"""Grouping of tokens into words: by hand, and against loops."""

from __future__ import annotations

import numpy as np
import pytest

from headscope.errors import MeasureError
from headscope.studies.flow.grouping import checked, contributions, group_means, to_words


def test_flow_between_words_is_as_worked_out_by_hand() -> None:
    """[CLS] a b b [SEP]: word 0 has one token, word 1 two."""
    matrix = np.arange(25.0).reshape(1, 5, 5)
    found = to_words(matrix, [-1, 0, 1, 1, -1], 2)
    # From word 0 (row 1: 5 6 7 8 9): to itself 6, to word 1 the mean of 7 and 8. From word 1: means of rows 2 and 3.
    assert found.tolist() == [[[6, 7.5], [13.5, 15]]]
    assert to_words(matrix, [-1, 0, 1, 1, -1], 2, "sum").tolist() == [[[6, 15], [27, 60]]]


def test_flow_between_words_equals_that_of_loops() -> None:
    rng = np.random.default_rng(0)
    word_of = [-1, 0, 0, 0, 1, 2, 2, -1]
    matrix = rng.normal(size=(3, 8, 8))
    found = to_words(matrix, word_of, 4)
    for source in range(3):
        for target in range(3):
            rows = [i for i, word in enumerate(word_of) if word == source]
            columns = [j for j, word in enumerate(word_of) if word == target]
            means = [np.mean([matrix[:, i, j] for i in rows], 0) for j in columns]
            assert found[:, source, target] == pytest.approx(np.mean(means, 0))
    assert np.isnan(found[:, 3]).all()  # a word without a token
    assert np.isnan(found[:, :, 3]).all()


def test_contributions_count_all_targets_and_group_means_are_over_pieces() -> None:
    """A contribution is the sum of a row: the token itself and special tokens are targets, too. The mean of a group is
    over its pieces, not over its words.
    """
    matrix = np.array([[[1.0, 2, 3, 4], [5, 6, 7, 8], [0, 0, 1, 0], [9, 9, 9, 9]]])
    given = contributions(matrix)
    assert given.tolist() == [[10, 26, 1, 36]]
    means = group_means(given, [-1, 0, 0, 1], 3)
    assert means[0, :2].tolist() == [13.5, 36]
    assert np.isnan(means[0, 2])


def test_unknown_groupings_and_matrices_of_wrong_shapes_are_refused() -> None:
    with pytest.raises(MeasureError, match="Use one of mean, sum"):
        to_words(np.zeros((1, 2, 2)), [0, 1], 2, "max")  # type: ignore[arg-type]
    with pytest.raises(MeasureError, match="does not fit 3 tokens"):
        to_words(np.zeros((1, 2, 2)), [0, 1, 2], 3)
    with pytest.raises(MeasureError, match="matrix G has the shape"):
        checked({"A": np.zeros((2, 3, 3)), "G": np.zeros((2, 3, 4))}, 3)
    with pytest.raises(MeasureError, match="numbers of layers: 1 and 2"):
        checked({"A": np.zeros((2, 3, 3)), "G": np.zeros((1, 3, 3))}, 3)
    with pytest.raises(MeasureError, match="no matrix"):
        checked({}, 3)
    assert checked({"A": np.zeros((2, 3, 3))}, 3) == 2
