"""Expected layers and divergences: Tenney et al.'s rows give the paper's numbers; the rest is worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headscope.errors import MeasureError
from headscope.stats.layers import (
    centre_of_gravity,
    differential_divergence,
    differentials,
    divergence_from_even,
    expected_layer,
    shares_of_gain,
    trouble,
)

# Dev F1 of BERT-base by layer, from the authors' notebook; then expected layer and K, as in docs/edge-probing.md.
BASE = {
    "pos": ("88.3952 93.4826 94.9644 95.4243 95.9719 96.4355 96.3890 96.4161 96.5560 96.4781 96.5859 96.4020 96.4782", 1.76, 1.72),
    "constituents": ("75.1997 80.5569 83.0987 84.8947 86.0373 86.4235 86.7595 86.7625 87.2055 87.0436 86.9797 87.2785 87.2441", 2.38, 1.26),
    "deps": ("85.1990 90.2369 91.2977 92.5571 93.6569 94.0952 94.6465 94.8954 95.1667 95.2115 95.0951 95.3245 95.2172", 2.52, 1.18),
    "entities": ("89.8686 93.3274 94.2983 94.4166 95.1909 95.4043 95.5909 95.6814 95.8536 95.9136 95.9984 95.9326 96.0298", 2.42, 1.42),
    "srl": ("79.4559 85.2654 86.5578 87.7683 89.1407 90.3564 90.3386 91.0484 90.9998 90.7155 90.4659 90.8396 91.0886", 2.59, 1.21),
    "coref": ("80.0073 82.5248 84.2960 85.1926 86.9400 87.5822 88.2827 88.8928 90.2742 90.3805 90.5657 90.2825 90.1648", 3.62, 0.63),
    "spr": ("77.8073 78.7641 79.6591 80.3152 80.9008 81.7424 82.0834 82.8600 83.0438 83.5019 83.4576 83.6118 83.5242", 4.29, 0.45),
    "relations": ("58.9330 66.0471 68.6298 70.8558 73.9742 74.6635 77.2542 78.2458 80.2260 81.1677 81.6441 83.2685 82.8699", 4.16, 0.50),
    "dpr": ("56.1118 59.2018 56.6392 57.2738 54.5226 54.7192 56.9444 55.7178 58.5143 57.7197 57.4822 59.1484 55.2180", 23.92, 1.32),
}
LARGE_COREF = (
    "80.4676 81.8555 82.3207 82.5202 83.8175 84.1711 84.1341 84.5196 85.2824 85.6027 86.2860 87.3380 87.4892 88.5364 89.2062 90.3020 "
    "90.7447 91.3851 91.9886 91.9993 91.7607 91.9689 92.1066 92.0903 91.9394"
)


def _scores(row: str) -> np.ndarray:
    return np.array([float(value) for value in row.split()])


@pytest.mark.parametrize("task", BASE)
def test_the_rows_of_the_paper_give_its_numbers(task: str) -> None:
    row, layer, divergence = BASE[task]
    assert round(float(expected_layer(_scores(row))), 2) == layer
    assert round(float(differential_divergence(_scores(row))), 2) == divergence
    assert (trouble(_scores(row)) is None) == (task != "dpr")


def test_several_rows_at_once_give_the_numbers_of_single_rows() -> None:
    rows = np.stack([_scores(row) for row, _, _ in BASE.values()])
    assert expected_layer(rows[:, None, :]).shape == (len(BASE), 1)
    np.testing.assert_array_equal(expected_layer(rows), [expected_layer(row) for row in rows])
    np.testing.assert_allclose(differential_divergence(rows), [differential_divergence(row) for row in rows], rtol=1e-14)


def test_layers_that_lower_the_score_are_handled_in_three_ways() -> None:
    scores = _scores(LARGE_COREF)
    found = [round(float(expected_layer(scores, how)), 2) for how in ("keep", "clip", "running_max")]
    assert found == [9.47, 9.87, 9.65]
    assert round(float(differential_divergence(scores)), 2) == 0.60
    np.testing.assert_allclose(differentials(np.array([1, 3, 2, 4.0])), [2, -1, 2])
    np.testing.assert_allclose(differentials(np.array([1, 3, 2, 4.0]), "clip"), [2, 0, 2])
    np.testing.assert_allclose(differentials(np.array([1, 3, 2, 4.0]), "running_max"), [2, 0, 1])
    with pytest.raises(MeasureError, match="keep, clip, running_max"):
        differentials(scores, "abs")  # type: ignore[arg-type]
    with pytest.raises(MeasureError, match="embeddings"):
        expected_layer(np.array([1.0]))


def test_statistics_of_layers_equal_those_worked_out_by_hand() -> None:
    scores = np.array([0.5, 0.7, 0.7, 0.9])  # gains of .2 by layer 1 and of .2 by layer 3
    assert expected_layer(scores) == pytest.approx(2.0)
    assert differential_divergence(scores) == pytest.approx(math.log2(1.5))
    np.testing.assert_allclose(shares_of_gain(scores), [0.5, 0, 0.5], atol=1e-12)
    np.testing.assert_allclose(shares_of_gain(np.array([0.5, 0.9, 0.7])), [1, -0.5])
    assert centre_of_gravity(np.array([0.25, 0.25, 0.5])) == pytest.approx(1.25)
    assert divergence_from_even(np.array([1.0, 1, 1, 1])) == 0
    assert divergence_from_even(np.array([0, 0, 3.0, 0])) == pytest.approx(2.0)
    assert divergence_from_even(np.array([0.75, 0.25])) == pytest.approx(1 - 0.811278, abs=1e-6)
    with pytest.raises(MeasureError, match="below 0"):
        divergence_from_even(np.array([-0.1, 1.1]))


def test_trouble_names_why_an_expected_layer_is_missing_or_unreliable() -> None:
    flat = np.full(4, 0.3)
    assert math.isnan(expected_layer(flat))
    assert math.isnan(differential_divergence(flat))
    assert np.isnan(shares_of_gain(flat)).all()
    assert "add nothing" in (trouble(flat) or "")
    assert "worse by 0.1" in (trouble(np.array([0.5, 0.6, 0.4])) or "")
    assert "-6.00 lies outside 1 to 2" in (trouble(np.array([0.5, 0.9, 0.55])) or "")
    assert "worse by 0.894" in (trouble(_scores(BASE["dpr"][0])) or "")
    assert "no score" in (trouble(np.array([0.5, math.nan, 0.6])) or "")
    assert trouble(_scores(BASE["dpr"][0]), "clip") is None
