"""Values worked out by hand: planted heads, uniform heads, smoothed one-hot rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import headscope as hs
from headscope.errors import MeasureError
from headscope.measures import make

N = 128
TOKENS = ["[CLS]", *["w"] * 60, ".", "[SEP]", *["w"] * 63, ",", "[SEP]"]


def planted(*heads: NDArray[Any]) -> NDArray[Any]:
    """Return one layer with the given maps as heads."""
    return np.stack(heads)[None]


def previous_head(n: int) -> NDArray[Any]:
    maps = np.eye(n, k=-1)
    maps[0, 0] = 1
    return maps


def value(run: hs.Run, quantity: str, head: int = 1) -> float:
    for measure in run.measures:
        rows = run[measure].table.where(quantity=quantity, head=head)
        if len(rows):
            return float(rows["value"][0])
    raise KeyError(quantity)


def test_scores_of_a_previous_token_head_and_of_a_uniform_head() -> None:
    run = hs.measure(planted(previous_head(N), np.full((N, N), 1 / N)), TOKENS, ["positions"])
    assert value(run, "previous") == pytest.approx(127 / 128, abs=1e-7)
    assert value(run, "next") == 0
    assert value(run, "self") == pytest.approx(1 / 128, abs=1e-7)
    assert value(run, "previous", head=2) == pytest.approx(127 / 128 / 128, abs=1e-7)
    valid = hs.measure(planted(previous_head(N)), TOKENS, {"positions": {"denominator": "valid"}})
    assert value(valid, "previous") == pytest.approx(1, abs=1e-7)


def test_a_uniform_head_gives_k_of_n_to_a_group_and_has_entropy_log_n() -> None:
    run = hs.measure(planted(np.full((N, N), 1 / N)), TOKENS)
    assert value(run, "to_sep") == pytest.approx(2 / 128, abs=1e-6)
    assert value(run, "to_cls") == pytest.approx(1 / 128, abs=1e-6)
    assert value(run, "to_punct") == pytest.approx(2 / 128, abs=1e-6)
    assert value(run, "sep_to_sep") == pytest.approx(2 / 128, abs=1e-6)
    assert value(run, "other_to_sep") == pytest.approx(2 / 128, abs=1e-6)
    assert value(run, "entropy") == pytest.approx(4.852030, abs=2e-6)
    assert value(run, "entropy_cls") == pytest.approx(4.852030, abs=2e-6)
    assert value(run, "max_weight") == pytest.approx(1 / 128, abs=1e-7)
    table = run["tokens"].table.where(quantity="to_sep")
    assert table["baseline"][0] == pytest.approx(1 / 64, abs=1e-7), "uniform attention to [SEP] is 1/64, as in the paper"


def test_one_hot_rows_have_entropy_0_and_slightly_more_if_smoothed() -> None:
    one_hot = planted(np.eye(N))
    assert value(hs.measure(one_hot, TOKENS, ["entropy"]), "entropy") == 0
    smoothed = hs.measure(one_hot, TOKENS, ["entropy"], preset="reference")
    assert value(smoothed, "entropy") == pytest.approx(0.00149446, abs=2e-6)


def test_the_entropy_of_a_causal_uniform_head_follows_from_what_each_row_sees() -> None:
    n = 16
    seen = np.tri(n)
    run = hs.measure(planted(seen / seen.sum(1, keepdims=True)), ["w"] * n, ["entropy", "positions"])
    expected = sum(math.log(i + 1) for i in range(n)) / n
    row = next(iter(run["entropy"].table.where(quantity="entropy")))
    assert row["kind"] == "decoder"
    assert row["value"] == pytest.approx(expected, abs=1e-6)
    assert row["baseline"] == pytest.approx(expected, abs=1e-6)
    assert "next" not in run["positions"].table["quantity"], "a causal head cannot attend to later tokens"


def test_rows_with_a_sink_are_renormalised_and_the_sink_is_reported() -> None:
    """Half of every row goes to no token; the rest is even over 4 tokens."""
    run = hs.measure(planted(np.full((4, 4), 0.125)), ["w"] * 4, ["entropy"])
    assert value(run, "entropy") == pytest.approx(math.log(4), abs=1e-6)
    assert value(run, "sink_mass") == pytest.approx(0.5, abs=1e-6)
    assert "less than 1" in run.results.manifest["read"][0]
    without = hs.measure(planted(np.full((4, 4), 0.25)), ["w"] * 4, ["entropy"])
    assert "sink_mass" not in without["entropy"].table["quantity"]


def test_the_preset_reference_always_divides_by_two_separators() -> None:
    """The only [SEP] attends to itself with weight 1. Its row gives 1; the released code gives 1/2."""
    maps = planted(np.eye(4))
    tokens = ["[CLS]", "a", "b", "[SEP]"]
    assert value(hs.measure(maps, tokens, ["tokens"]), "sep_to_sep") == 1
    assert value(hs.measure(maps, tokens, ["tokens"], preset="reference"), "sep_to_sep") == 0.5


def test_texts_without_special_tokens_do_not_count_for_them() -> None:
    maps = [planted(np.full((3, 3), 1 / 3)), planted(np.full((2, 2), 1 / 2))]
    run = hs.measure(maps, [["[CLS]", "a", "[SEP]"], ["a", "b"]], ["tokens"])
    rows = {row["quantity"]: row for row in run["tokens"].table}
    assert rows["to_sep"]["n"] == 1
    assert rows["to_sep"]["value"] == pytest.approx(1 / 3)
    assert rows["to_punct"]["n"] == 2, "a text without punctuation counts with 0"
    assert rows["to_punct"]["value"] == 0
    bare = hs.measure(maps[1], ["a", "b"], ["tokens"])["tokens"].table.where(quantity="to_cls")
    assert bare["n"] == [0]
    assert math.isnan(bare["value"][0])


def test_a_single_value_is_accepted_for_an_option_of_several() -> None:
    assert make("tokens", {"groups": "sep", "flows": []}).options()["groups"] == ("sep",)


def test_example_and_token_averages_differ_by_length() -> None:
    """Texts of 2 and 6 tokens with self weights of 1 and 0: the mean over texts is 1/2, the mean over rows 2/8."""
    maps = [planted(np.eye(2)), planted(np.roll(np.eye(6), 1, axis=1))]
    tokens = [["a"] * 2, ["a"] * 6]
    assert value(hs.measure(maps, tokens, ["positions"]), "self") == 0.5
    assert value(hs.measure(maps, tokens, {"positions": {"average": "token"}}), "self") == 0.25


@pytest.mark.parametrize(
    ("name", "options", "says"),
    [
        ("entropie", {}, "measure 'entropie' is unknown. Did you mean entropy? Use one of positions, tokens, entropy"),
        ("entropy", {"smoothness": 1}, "entropy has no option 'smoothness'"),
        ("entropy", {"base": "bans"}, "option base is 'bans'. Input should be 'nats' or 'bits'"),
        ("entropy", {"smoothing": 2.0}, "smoothing is 2.0"),
        ("tokens", {"groups": ["comma"]}, "token group 'comma' is unknown"),
        ("tokens", {"groups": [], "flows": []}, "neither groups nor flows"),
        ("positions", {"offsets": [1.5]}, "valid integer"),
        ("positions", {"offsets": []}, "Give whole numbers"),
        ("positions", {"level": "sentence"}, "option level is 'sentence'"),
    ],
)
def test_the_error_names_the_invalid_measure_or_option(name: str, options: dict[str, Any], says: str) -> None:
    with pytest.raises(MeasureError) as error:
        make(name, options)
    assert says in str(error.value)
