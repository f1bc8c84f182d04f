"""What heads are called, from tables made by hand."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import headscope as hs
from headscope.core.heads import HeadId, HeadLayout, Site
from headscope.results.behaviour import BROAD, HALF, RECOMMENDED, REFERENCE, Thresholds, behaviours, shown
from headscope.results.table import Table

LAYOUT = HeadLayout((Site("encoder", 0, 2, 2, ""), Site("encoder", 1, 2, 2, "")))
CROSSED = HeadLayout((Site("encoder", 0, 1, 1, ""), Site("decoder", 0, 1, 1, ""), Site("cross", 0, 1, 1, "")))
EVEN = math.log(128)


def surface(layout: HeadLayout, baseline: float = math.nan, **values: list[float]) -> Table:
    """A table of heads: for each quantity a value a head."""
    rows: list[dict[str, Any]] = [
        {"kind": id.kind, "layer": id.layer + 1, "head": id.head + 1, "quantity": quantity, "value": value, "baseline": baseline}
        for quantity, of in values.items()
        for id, value in zip(layout.ids(), of, strict=True)
    ]
    return Table.of({name: [row[name] for row in rows] for name in rows[0]})


def contest(*rows: tuple[str, str, str, float, float]) -> Table:
    """A table of best heads: kind, label, heads, lift and its lower bound."""
    return Table.of(dict(zip(("kind", "label", "heads", "lift", "lift_low"), map(list, zip(*rows, strict=True)), strict=True)))


TABLES = {
    "positions": surface(LAYOUT, next=[0.51, 0.5, 0.0, np.nan], previous=[0.0, 0.55, 0.0, 0.2], self=[0.9] * 4),
    "entropy": surface(LAYOUT, EVEN, entropy=[3.9, 1.0, 3.79, 3.9], entropy_cls=[4.8] * 4),
    "tokens": surface(LAYOUT, to_cls=[0.7, 0, 0, 0.6], to_sep=[0.0, 0.61, 0, 0], to_punct=[0.65, 0, 0, 0]),
}


def test_all_labels_are_kept_the_largest_share_first_and_broad_last() -> None:
    found = behaviours(TABLES, LAYOUT)
    assert found == [("[CLS]", "punctuation", "next", "broad"), ("[SEP]", "previous"), (), ("[CLS]", "broad")]
    assert list(map(shown, found)) == ["[CLS]", "[SEP]", "", "[CLS]"]


def test_what_takes_most_of_the_attention_comes_before_what_it_is_good_for() -> None:
    """A head that gives 80 % to the next token is the best for aux:pass since auxiliaries stand before their verbs."""
    tables = {
        "positions": surface(LAYOUT, next=[0.8, 0.2, 0.0, 0.0]),
        "entropy": surface(LAYOUT, EVEN, entropy=[0.5, EVEN, EVEN, 0.5]),
        "relations_best": contest(
            ("encoder", "aux:pass", "1-1", 0.2, 0.1), ("encoder", "obj", "1-2", 0.1, 0.05), ("encoder", "det", "1-2", 0.3, 0.2)
        ),
    }
    assert behaviours(tables, LAYOUT) == [("next", "aux:pass"), ("det", "obj", "broad"), ("broad",), ()]


def test_half_is_the_threshold_and_those_of_the_paper_are_still_there() -> None:
    assert RECOMMENDED.next == RECOMMENDED.previous == RECOMMENDED.cls == RECOMMENDED.sep == RECOMMENDED.punct == HALF == 0.5
    assert (REFERENCE.next, REFERENCE.cls, REFERENCE.sep, REFERENCE.punct) == (0.5, 0.6, 0.6, 0.6)


def test_the_order_is_that_of_the_method_wherever_the_numbers_come_from() -> None:
    everything = {
        "tokens": surface(LAYOUT, to_punct=[1.0] * 4, to_sep=[1.0] * 4, to_cls=[1.0] * 4),
        "relations_best": contest(("encoder", "obj", "1-1", 0.1, 0.05)),
        "entropy": surface(LAYOUT, EVEN, entropy=[EVEN] * 4),
        "positions": surface(LAYOUT, previous=[1.0] * 4, next=[1.0] * 4),
    }
    labels = ("next", "previous", "[CLS]", "[SEP]", "punctuation")
    assert behaviours(everything, LAYOUT) == [(*labels, "obj", "broad"), *[(*labels, "broad")] * 3]


def test_thresholds_are_parameters() -> None:
    assert behaviours(TABLES, LAYOUT, Thresholds(next=0.6, cls=0.55, punct=0.9, broad=0.99)) == [
        ("[CLS]",),
        ("[SEP]", "previous"),
        (),
        ("[CLS]",),
    ]
    assert behaviours({"positions": TABLES["positions"]}, LAYOUT, Thresholds(previous=0.0)) == [("next",), ("previous",), (), ("previous",)]


def test_broad_as_released_and_in_short_texts() -> None:
    """3.8 nats are 78 % of what 128 tokens can have; 20 tokens have no more than 3.0, and 2.5 of them are broad."""
    assert pytest.approx(0.7832, abs=1e-4) == BROAD == RECOMMENDED.broad
    long = {"entropy": surface(LAYOUT, EVEN, entropy=[3.81, 3.79, 1.0, 4.8])}
    assert behaviours(long, LAYOUT) == behaviours(long, LAYOUT, REFERENCE) == [("broad",), (), (), ("broad",)]
    short = {"entropy": surface(LAYOUT, math.log(20), entropy=[2.5, 2.3, 1.0, 2.9])}
    assert behaviours(short, LAYOUT) == [("broad",), (), (), ("broad",)]
    assert behaviours(short, LAYOUT, REFERENCE) == [()] * 4
    bits = {"entropy": surface(LAYOUT, 7.0, entropy=[value / math.log(2) for value in (3.81, 3.79, 1.0, 4.8)])}
    assert behaviours(bits, LAYOUT, REFERENCE, "bits") == behaviours(bits, LAYOUT) == behaviours(long, LAYOUT)
    alone = {"entropy": surface(LAYOUT, 0.0, entropy=[1e-9] * 4)}
    assert behaviours(alone, LAYOUT) == [()] * 4, "even attention to one token is not broad"


def test_linguistic_labels_are_the_runs_own_and_sure() -> None:
    tables = {
        "tokens": TABLES["tokens"],
        "relations_best": contest(
            ("encoder", "all", "2-1", 0.5, 0.4),
            ("encoder", "det", "1-1", 0.3, 0.2),
            ("encoder", "obj", "1-1 | 2-2", 0.4, 0.2),
            ("encoder", "nsubj", "1-2", 0.4, -0.1),
            ("encoder", "amod", "1-2", 0.4, np.nan),
            ("encoder", "aux", "2-1", -0.1, -0.2),
            ("encoder", "case", "", 0.4, 0.3),
        ),
        "coreference_best": contest(
            ("encoder", "all", "2-1", 0.5, 0.4), ("encoder", "pronoun", "2-2", 0.1, 0.05), ("encoder", "proper", "2-2", 0.6, 0.5)
        ),
        "pronouns_best": contest(("encoder", "masculine", "1-1", 0.35, 0.3)),
    }
    found = behaviours(tables, LAYOUT)
    assert found == [("[CLS]", "punctuation", "obj", "pronouns", "det"), ("[SEP]",), (), ("[CLS]", "coreference", "obj")]


def test_heads_of_all_kinds_are_found_by_name() -> None:
    best = contest(("encoder", "a", "1-1", 0.2, 0.1), ("decoder", "b", "decoder/1-1", 0.2, 0.1), ("cross", "c", "cross/1-1", 0.2, 0.1))
    assert behaviours({"relations_best": best}, CROSSED) == [("a",), ("b",), ("c",)]
    # Said without its kind it is of the kind that the row is about.
    only = HeadLayout((Site("decoder", 0, 2, 2, ""),))
    assert behaviours({"relations_best": contest(("decoder", "b", "1-2", 0.2, 0.1))}, only) == [(), ("b",)]


def test_of_a_run() -> None:
    """One head that looks at the token before, one at [SEP], and one at everything, in texts of 12 tokens."""
    n = 12
    before, to_sep = np.eye(n, k=-1), np.zeros((n, n))
    before[0, 0] = to_sep[:, -1] = 1
    run = hs.measure(
        np.stack([before, to_sep, np.full((n, n), 1 / n)])[None], ["[CLS]", *"a" * 10, "[SEP]"], ["positions", "tokens", "entropy"]
    )
    layout = run.results.layout
    assert layout.ids()[1] == HeadId("encoder", 0, 1)
    assert behaviours(run.results, layout) == [("previous",), ("[SEP]",), ("broad",)]
