"""Agreement between measures: over the entries of all texts together, and as a mean over texts."""

from __future__ import annotations

import numpy as np
import pytest

from headscope.errors import MeasureError
from headscope.studies.flow.agreement import Agreement
from helpers.plain_texts import encoded, sentence


def test_agreement_is_the_correlation_over_all_entries_or_the_mean_over_texts() -> None:
    rng = np.random.default_rng(0)
    study = Agreement(replicates=100)
    kept = []
    for number, size in enumerate([3, 5, 4, 7, 2, 6, 3, 5, 4, 6, 3]):
        text = encoded(sentence(" ".join(["X"] * size), id=f"d{number // 2}"))
        one = rng.random((2, size + 2, size + 2)) * (number + 1)
        both = {"A": one, "G": one + rng.random(one.shape), "G*": rng.random(one.shape)}
        kept.append(both)
        study.observe(text, both)
    rows = {(row["first"], row["second"], row["over"], row["layer"]): row for row in study.tables()["agreement"]}
    assert len(rows) == 3 * 2 * 3
    for first, second in (("A", "G"), ("A", "G*"), ("G", "G*")):
        for layer in (0, 1, None):
            pick = slice(None) if layer is None else layer
            flat = [(both[first][pick].ravel(), both[second][pick].ravel()) for both in kept]
            x, y = (np.concatenate([pair[side] for pair in flat]) for side in (0, 1))
            name = None if layer is None else layer + 1
            row = rows[first, second, "entries", name]
            assert row["value"] == pytest.approx(np.corrcoef(x, y)[0, 1])
            assert row["n"] == len(x)
            assert row["low"] <= row["high"]
            by_text = rows[first, second, "texts", name]
            assert by_text["value"] == pytest.approx(np.mean([np.corrcoef(*pair)[0, 1] for pair in flat]), abs=1e-6)
            assert (by_text["n"], by_text["documents"]) == (11, 6)


def test_a_single_measure_and_a_change_of_measures_are_refused() -> None:
    study = Agreement()
    text = encoded(sentence("X X"))
    with pytest.raises(MeasureError, match="Give two or more"):
        study.observe(text, {"A": np.zeros((1, 4, 4))})
    study.observe(text, {"A": np.zeros((1, 4, 4)), "G": np.eye(4)[None]})
    with pytest.raises(MeasureError, match="same ones"):
        study.observe(text, {"A": np.zeros((1, 4, 4)), "G*": np.eye(4)[None]})
    assert np.isnan(study.tables()["agreement"]["value"]).all()  # A is constant, so it has no correlation
    assert len(Agreement().tables()["agreement"]) == 0
