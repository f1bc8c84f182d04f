"""Verdicts on claims, compared with verdicts worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.special import ndtri, stdtrit

from headscope.replication import read_recipe
from headscope.replication.numbers import difference, widened, within_layers
from headscope.replication.recipe import Claim
from headscope.replication.study import sentences
from headscope.replication.verdicts import judge, ours, published, row
from headscope.results.results import Results
from headscope.results.table import Table


def results_of(**tables: Any) -> Results:
    sites = [{"kind": "encoder", "layer": layer, "heads": 2} for layer in range(1, 5)]
    return Results({"sites": sites, "settings": {"score": "loss"}}, {name: Table.of(columns) for name, columns in tables.items()})


def claim(expect: str, where: dict[str, Any] | None = None, **fields: Any) -> Claim:
    place = {"step": "s", "table": "t", "column": "value", "interval": ("low", "high"), **(where or {})}
    return Claim.model_validate({"id": "c", "place": "p", "says": "x", "expect": expect, "where": place, **fields})


LAYERS = {
    "layer": [1, 2, 3, 4],
    "value": [1.0, 2.0, 3.0, 5.0],
    "low": [0.5, 1.5, -1.0, 4.0],
    "p": [0.01, 0.06, 0.5, 0.01],
    "high": [1.5, 2.5, 7.0, 6.0],
    "n": [7, 7, 7, 7],
}


@pytest.mark.parametrize(
    ("asked", "verdict"),
    [
        (claim("within", {"rows": {"layer": 1}}, published=1.2), "in our interval"),
        (claim("within", {"rows": {"layer": 1}}, published=1.6), "outside our interval"),
        (claim("within", {"rows": {"layer": 1}, "interval": None}, published=1.2), "not tested"),
        (claim("sign", {"rows": {"layer": 2}}, published=9.0), "same direction"),
        (claim("sign", {"rows": {"layer": 2}}, published=-9.0), "differs"),
        (claim("sign", {"rows": {"layer": 3}}, published=9.0), "unclear"),
        (claim("sign", {"rows": {"layer": 2}, "p": "p"}, published=-9.0), "unclear"),
        (claim("sign", {"rows": {"layer": 4}, "p": "p"}, published=-9.0), "differs"),
        (claim("sign", {"rows": {"layer": 2}}, published=4.0, baseline=4.0), "cannot be compared"),
        (claim("sign", {"rows": {"layer": 2}}, published=0.95, published_error=1), "cannot be compared"),  # not significant: no direction
        (claim("sign", {"rows": {"layer": 2}}, published=-1.97, published_error=1), "differs"),
        (claim("sign", {"rows": {"layer": 2}, "interval": None}, published=9.0), "not tested"),
        (claim("sign", {"rows": {"layer": 4}, "interval": None, "p": "p"}, published=-9.0), "differs"),  # p of .01 alone decides
        (claim("above", {"rows": {"layer": 4}, "interval": None}, threshold=3), "not tested"),
        (claim("above", {"rows": {"layer": 4}}, threshold=3), "same direction"),
        (claim("above", {"rows": {"layer": 4}}, threshold=7), "differs"),
        (claim("above", {"rows": {"layer": 4}}, threshold=4.5), "unclear"),
        (claim("below", {"rows": {"layer": 1}}, threshold=2), "same direction"),
        (claim("above", {"take": "count", "more_than": 4.0, "interval": None}, threshold=0), "not tested"),
        (claim("above", {"take": "count", "more_than": 3.0}, threshold=0), "same direction"),  # one head: its lower bound of 4 becomes 3.7
        (claim("above", {"take": "count", "more_than": 3.9}, threshold=0), "unclear"),
        (claim("above", {"take": "count", "more_than": 9.0}, threshold=0), "differs"),  # the highest upper bound, 7, becomes 8.1
        (claim("above", {"take": "count", "more_than": 8.0}, threshold=0), "unclear"),
        (claim("above", {"depth": (3, 4, 4), "take": "least"}, threshold=0), "unclear"),  # layers 3 and 4: the least value is in layer 3
        (claim("above", {"depth": (7, 12, 12), "take": "most"}, threshold=0), "same direction"),  # the upper half: layers 3 and 4
        (claim("curve", published=(1.0, 2.0, 3.0, 4.0)), "not tested"),  # layers are not independent observations
        (claim("curve", published=(4.0, 3.0, 2.0, 1.0)), "not tested"),
        (claim("within", {"rows": {"layer": 1}}, published=1.2, about="data"), "property of the data"),
        (claim("within", {"rows": {"layer": 1}}, published=1.6, about="data"), "property of the data"),
        (claim("within", {"rows": {"layer": 9}}, published=1.6, about="data"), "cannot be compared"),
        (claim("curve", published=(1.0, 2.0, 3.0)), "cannot be compared"),
        (claim("none", {"rows": {"layer": 1}}, published=1.0), "cannot be compared"),
        (claim("within", {"rows": {"layer": 1}}, published=1.2, comparable_if={"score": "accuracy"}), "cannot be compared"),
        (claim("within", {"rows": {"layer": 1}}, published=1.2, comparable_if={"score": "loss"}), "in our interval"),
        (claim("within", {"rows": {"layer": 9}}, published=1.2), "cannot be compared"),
        (claim("within", published=1.2), "cannot be compared"),  # four rows match
    ],
)
def test_every_kind_of_claim_gets_its_verdict(asked: Claim, verdict: str) -> None:
    assert judge(asked, {"s": results_of(t=LAYERS)}, {}).verdict == verdict
    assert judge(asked, {}, {"s": "no trees"}).verdict == "not done"


def test_baselines_are_subtracted_and_cells_are_written() -> None:
    table = {"value": [0.5], "low": [0.4], "high": [0.6], "up": [-0.3], "down": [-0.1], "base": [0.7], "head": ["3-1"], "n": [10]}
    where = {"difference_interval": ("up", "down"), "baseline": "base", "named": "head", "scale": 100.0}
    asked = claim("sign", where, published=65.0, baseline=69.0, named="5-4", remark="Table", source="by eye")
    outcome = judge(asked, {"s": results_of(t=table)}, {})
    assert outcome.verdict == "same direction"
    assert outcome.ours is not None
    assert outcome.ours.value == pytest.approx(50)
    assert ours(outcome, asked) == "50 [40 60] (3-1), baseline 70"
    assert published(asked) == "65 (5-4), baseline 69 [Table; read off by eye]"
    assert judge(asked.model_copy(update={"published": 75.0}), {"s": results_of(t=table)}, {}).verdict == "differs"


def item(name: str, value: float, layer: int, **where: Any) -> dict[str, Any]:
    place = {"step": "s", "table": "t", "column": "value", "rows": {"layer": layer}, "interval": ("low", "high"), **where}
    return {"name": name, "published": value, "where": place}


def ordered(*items: dict[str, Any]) -> Claim:
    return Claim.model_validate({"id": "c", "place": "p", "says": "x", "expect": "order", "items": items})


def test_orders_are_judged_by_the_differences_of_pairs() -> None:
    seen = {"s": results_of(t=LAYERS)}
    good = judge(ordered(item("a", 1, 1), item("b", 2, 4)), seen, {})  # the difference is 4 ± 1.1
    assert (good.verdict, good.detail, good.why) == ("same order", "a 1 < b 5", "")
    bad = judge(ordered(item("a", 1, 1), item("b", 5, 2), item("c", 3, 4)), seen, {})  # c minus b is 3 ± 1.1 times 1.22
    assert bad.verdict == "differs"
    assert bad.ours is not None
    assert bad.ours.value == pytest.approx(1 / 3)  # two pairs of three are as published: (2 - 1) / 3
    assert judge(ordered(item("a", 2, 2), item("b", 1, 3)), seen, {}).verdict == "unclear"
    assert judge(ordered(item("a", 1, 2), item("b", 2, 3)), seen, {}).verdict == "unclear"  # agreement must be significant, too
    without = item("c", 3, 4, interval=None)
    untested = judge(ordered(item("a", 1, 1), item("b", 2, 2), without), seen, {})
    assert (untested.verdict, untested.why) == ("not tested", "there is no interval for c")
    assert judge(ordered(item("a", 5, 4), item("b", 6, 1), without), seen, {}).verdict == "differs"  # a and b alone contradict the order
    some = judge(ordered(item("a", 1, 1), item("b", 2, 4), item("c", 3, 9)), seen, {})
    assert (some.verdict, some.why) == ("same order", "without c")
    partly = ordered(item("a", 1, 1), item("b", 2, 4), {**item("c", 3, 4), "where": {"step": "o", "table": "t", "column": "value"}})
    assert judge(partly, seen, {"o": "no trees"}).why == "without c"
    assert judge(ordered(item("a", 1, 8), item("b", 2, 9)), seen, {}).verdict == "cannot be compared"


@pytest.mark.parametrize("values", [(0.500, 0.501), (0.501, 0.500)])
def test_orders_with_wide_intervals_are_unclear_in_both_directions(values: tuple[float, float]) -> None:
    table = {"layer": [1, 2], "value": list(values), "low": [0.1, 0.1], "high": [0.9, 0.9], "n": [9, 9]}
    outcome = judge(ordered(item("a", 1, 1), item("b", 2, 2)), {"s": results_of(t=table)}, {})
    assert (outcome.verdict, outcome.why) == ("unclear", "the order of 1 of 1 pairs is not significant")


def test_intervals_of_differences_and_of_the_best_of_several_by_hand() -> None:
    assert difference(1.0, (0.7, 1.5), 3.0, (2.6, 4.0)) == pytest.approx((2 - (0.4**2 + 0.5**2) ** 0.5, 2 + (1.0**2 + 0.3**2) ** 0.5))
    assert widened(1.0, (0.0, 3.0)) == (0.0, 3.0)
    factor = ndtri(1 - 0.025 / 144) / ndtri(0.975)
    assert widened(1.0, (0.0, 3.0), 144) == pytest.approx((1 - factor, 1 + 2 * factor))
    few = stdtrit(3, 1 - 0.025 / 144) / stdtrit(3, 0.975)
    assert widened(1.0, (0.0, 3.0), 144, documents=4) == pytest.approx((1 - few, 1 + 2 * few))
    assert widened(1.0, (2.0, 3.0), 144)[0] == 2.0  # a lower bound above the value is not changed


def test_the_best_of_many_heads_needs_a_larger_effect_than_a_single_head() -> None:
    heads = {"label": ["det"] * 144 + ["obj"], "value": [0.5] * 145}
    table = {"label": ["det"], "value": [0.5], "low": [0.41], "high": [0.59], "up": [0.01], "down": [0.19], "base": [0.4], "n": [10]}
    where: dict[str, Any] = {"difference_interval": ("up", "down"), "baseline": "base"}
    done = {"s": results_of(t=table, heads=heads)}
    assert judge(claim("sign", where, published=65.0, baseline=60.0), done, {}).verdict == "same direction"
    assert judge(claim("sign", {**where, "chosen_from": "heads"}, published=65.0, baseline=60.0), done, {}).verdict == "unclear"


def test_pooled_layers_are_not_counted_as_independent_observations() -> None:
    table = {"preset": ["reference", "recommended"], "t": [7.95, 1.91], "low": [0.1, 0.1], "high": [0.3, 0.3], "p": [1e-9, 0.07]}
    table |= {"n": [300, 25], "documents": [9, 9]}
    where = {
        "column": "t",
        "rows": {"preset": "reference"},
        "interval": None,
        "difference_interval": ("low", "high"),
        "p": "p",
        "n_counts": "pairs",
    }
    done = {"s": results_of(t=table)}
    assert judge(claim("sign", where, published=23.38), done, {}).verdict == "same direction"  # as if the 300 pairs were independent
    asked = claim("sign", {**where, "test_rows": {"preset": "recommended"}}, published=23.38)
    outcome = judge(asked, done, {})
    assert (outcome.verdict, outcome.why) == ("unclear", "p 0.07")
    cells = row(asked, outcome, "")
    assert (cells["n"], cells["n_counts"], cells["ours"]) == (25, "pairs", "7.95 (t 1.91 of 25 pairs)")


def test_a_claim_about_one_document_is_not_tested() -> None:
    table = {"t": [3.1], "low": [None], "high": [None], "p": [0.03], "n": [3], "documents": [1]}
    asked = claim("sign", {"column": "t", "interval": None, "difference_interval": ("low", "high"), "p": "p"}, published=23.38)
    outcome = judge(asked, {"s": results_of(t=table)}, {})
    assert (outcome.verdict, outcome.why) == ("not tested", "there is no interval: 1 document: intervals and p values need 6 or more")


def test_correlations_over_heads_are_tested_within_layers() -> None:
    heads = {"kind": ["encoder"] * 8, "layer": [1] * 4 + [2] * 4, "head": [1, 2, 3, 4] * 2, "n": [5] * 8}
    one = {**heads, "value": [1.0, 2.0, 3.0, 4.0, 11.0, 12.0, 13.0, 14.0]}
    like = {**heads, "value": [1.1, 2.1, 3.0, 4.2, 1.0, 2.0, 3.1, 4.0]}
    layered = {**heads, "value": [1.0, 1.1, 1.0, 1.1, 9.0, 9.1, 9.0, 9.1]}  # only the layers are correlated
    asked = claim("correlation", {"interval": None}, published=0.68, other={"step": "o", "table": "t", "column": "value"})
    found = judge(asked, {"s": results_of(t=one), "o": results_of(t=like)}, {})
    assert found.verdict == "same direction"
    assert found.why.endswith("heads permuted within layers")
    unsure = judge(asked, {"s": results_of(t=one), "o": results_of(t=layered)}, {})
    assert unsure.ours is not None
    assert unsure.ours.value > 0.95  # p < .001 if heads were independent
    assert unsure.verdict == "unclear"
    alone = judge(asked, {"s": results_of(t={**one, "layer": list(range(8))}), "o": results_of(t={**like, "layer": list(range(8))})}, {})
    assert alone.verdict == "not tested"


def test_p_of_a_correlation_within_layers_counts_permutations() -> None:
    """Two layers of two heads: two of four permutations are as far from 0, so that p is near one half."""
    assert within_layers([1, 2, 3, 4], [1, 2, 3, 4], [1, 1, 2, 2]) == pytest.approx(0.5, abs=0.04)
    assert np.isnan(within_layers([1, 1, 2, 2], [1, 2, 3, 4], [1, 1, 2, 2]))


def test_equal_numbers_rarely_get_a_significant_order() -> None:
    """Four numbers that differ only by noise, 300 times: at most 5 % of the verdicts are for or against the order."""
    generator = np.random.default_rng(0)
    asked = ordered(*(item(str(layer), layer, layer) for layer in range(1, 5)))
    found = []
    for values in generator.normal(size=(300, 4)):
        table = {"layer": [1, 2, 3, 4], "value": values.tolist(), "low": (values - 1.96).tolist(), "high": (values + 1.96).tolist()}
        found.append(judge(asked, {"s": results_of(t={**table, "n": [1] * 4})}, {}).verdict)
    assert found.count("unclear") >= 285


def test_repeated_numbers_and_properties_of_the_data_are_not_counted() -> None:
    table = results_of(t=LAYERS)
    same = {"rows": {"layer": 2}}
    claims = [claim("sign", same, published=9.0, id="a"), claim("sign", same, published=8.0, id="b")]
    claims.append(claim("within", {"rows": {"layer": 1}}, published=1.2, about="data", id="c"))
    repeats = {"b": "a"}
    rows = [row(one, judge(one, {"s": table}, {}), "", repeats.get(one.id, "")) for one in claims]
    assert rows[1]["why"] == "the same number as in a, counted there"
    told = sentences(Table.of({name: [one[name] for one in rows] for name in rows[0]}))
    assert told[0] == "Of 1 claim: 1 same direction. Not counted: 1 properties of the data, 1 rows that repeat a number of another row."


def test_recipes_name_the_numbers_that_they_repeat() -> None:
    assert read_recipe("westera")[0].repeats == {"open-first-layer-G*": "open-first-layer-G"}
    assert read_recipe("clark2019")[0].repeats == {"label-next": "heads-next", "label-previous": "heads-previous"}
    assert read_recipe("tenney2019")[0].repeats == {"order-large": "order-base"}
    about = {name: sum(claim.about == "data" for claim in read_recipe(name)[0].claims) for name in ("westera", "clark2019", "hewitt2019")}
    assert about == {"westera": 3, "clark2019": 14, "hewitt2019": 4}
