"""Labels of heads: from states made by hand, against second, plain computations, and from runs."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose

import headscope as hs
from headscope.core.heads import HeadId, HeadLayout, Site
from headscope.errors import RunError
from headscope.measures import REGISTRY, make
from headscope.measures.means import HeadMeans
from headscope.models.model import Model
from headscope.results.cross_fitting import cross_fitted
from headscope.results.head_evidence import evidence
from headscope.results.head_labels import COLUMNS, LEVEL, HeadLabels, head_labels
from headscope.results.head_types import BROAD, CLEARLY, HALF, NAMES, TYPES
from headscope.stats.bootstrap import GROUPS, key_of, poisson_weights
from headscope.stats.inference import p_value
from headscope.stats.significance import holm
from helpers.labelled import REPLICATES, contest_state, labelled, names_of

LAYOUT = HeadLayout((Site("encoder", 0, 2, 2, ""), Site("encoder", 1, 2, 2, "")))
EVEN = math.log(128)


def words(*runs: Any, **choices: Any) -> list[tuple[str, ...]]:
    return head_labels(*runs, **choices).words()


def relations(label: str = "obj", documents: int = 20, **right: list[float]) -> Any:
    """A state of relations with 10 words per document: the share of words that each head and the rule -1 get right."""
    measure = make("relations")
    n = np.full(documents, 10)
    answers = np.zeros((documents, 2, LAYOUT.size), dtype=np.int64)
    answers[:, 0] = 10 * np.array(right["heads"])
    rules = np.zeros((documents, len(measure.contests.rules)), dtype=np.int64)  # type: ignore[attr-defined]
    rules[:, 2] = 10 * right["rule"][0]
    return contest_state(measure, LAYOUT, label, n, answers, rules)


def test_types_are_unique_and_refer_to_quantities_of_their_measures() -> None:
    assert len({(type.name, type.measure) for type in TYPES}) == len(TYPES)
    assert NAMES == ("induction", "duplicate", "previous token", "retrieval", "syntactic", "coreference", "positional", "sink", "broad")
    assert pytest.approx((0.5, 0.1, 0.7832), abs=1e-4) == (HALF, CLEARLY, BROAD)
    for type in TYPES:
        if type.measure in REGISTRY:
            assert "{" not in type.definition()
            measure = make(type.measure)
            assert set(type.words) <= set(measure.quantities() if isinstance(measure, HeadMeans) else ()), (
                "a type refers only to quantities of its measure"
            )


def test_all_labels_are_kept_with_specific_ones_first_and_broad_last() -> None:
    run = labelled(
        LAYOUT,
        positions={"next": [0.8, 0.5, 0, 0], "previous": [0, 0.55, 0, 0.2]},
        tokens={"to_cls": [0.7, 0, 0, 0.6], "to_sep": [0, 0.61, 0, 0], "to_punct": [0.65, 0, 0, 0]},
        entropy={"entropy": [3.9, 1.0, 3.79, 3.9]},
        baselines={"entropy": {"entropy": EVEN}},
    )
    assert words(run) == [("next", "[CLS]", "punctuation", "broad"), ("previous", "[SEP]"), (), ("[CLS]", "broad")]


def test_sink_labels_are_listed_after_other_labels_of_a_head() -> None:
    """The label furthest above its baseline comes first: obj by 0.5, the next token by 0.42."""
    run = labelled(
        LAYOUT,
        tokens={"to_sep": [0.99, 0.99, 0.2, 0.2]},
        positions={"next": [0.52, 0.2, 0.2, 0.95]},
        baselines={"positions": {"next": 0.1}},
        states={"relations": relations(heads=[0.9, 0.2, 0.9, 0.6], rule=[0.4])},
    )
    assert words(run) == [("obj", "next", "[SEP]"), ("[SEP]",), ("obj",), ("next", "obj")]
    (first, *_) = head_labels(run)[HeadId("encoder", 0, 0)]
    assert (first.type.name, first.quantity, first.what, first.n, first.documents) == ("syntactic", "obj", "obj", 200, 20)
    assert (first.value, first.baseline, first.survives) == pytest.approx((0.9, 0.4, 1.0))
    assert first.sentence == "finds the other word of the relation obj more often than the best fixed offset"


@pytest.mark.parametrize(
    ("value", "even", "named"),
    [(0.501, 0.1, True), (0.5, 0.1, False), (0.8, 0.9, False), (math.nan, 0.1, False)],
    ids=["above", "at the threshold", "below the baseline", "not measured"],
)
def test_a_label_needs_over_half_of_the_attention_and_more_than_even_attention(value: float, even: float, named: bool) -> None:
    run = labelled(LAYOUT, tokens={"to_sep": [value, 0, 0, 0]}, baselines={"tokens": {"to_sep": even}})
    assert words(run)[0] == (("[SEP]",) if named else ())


def test_labels_of_sequences_need_scores_clearly_above_even_attention_and_shuffling() -> None:
    run = labelled(
        LAYOUT,
        sequences={"induction": [0.3, 0.15, 0.3, 0.12], "induction_shuffled": [0.1, 0.01, 0.25, 0.01], "previous_token": [0.4, 0.51, 0, 0]},
        baselines={"sequences": {"induction": 0.04, "previous_token": 0.1}},
    )
    assert words(run) == [("induction",), ("previous token", "induction"), (), ()]
    assert [label.baseline for label in head_labels(run).labels] == pytest.approx([0.1, 0.1, 0.04])


def test_broad_is_a_share_of_the_entropy_of_even_attention_at_any_length() -> None:
    """In texts of 20 tokens, even attention has an entropy of 3.0 nats, and 2.5 nats are broad; in texts of one token
    it has 0 nats.
    """
    for even, values in ((EVEN, [3.81, 3.79, 1.0, 4.8]), (math.log(20), [2.5, 2.3, 1.0, 2.9])):
        run = labelled(LAYOUT, entropy={"entropy": values}, baselines={"entropy": {"entropy": even}})
        assert words(run) == [("broad",), (), (), ("broad",)]
    assert words(labelled(LAYOUT, entropy={"entropy": [1e-9] * 4})) == [()] * 4


def test_documents_of_different_lengths_have_different_baselines() -> None:
    """Entropies depend on the lengths of texts. A head with 0.9 of the entropy of even attention in each document is
    broad.
    """
    lengths = np.tile([4.0, 400.0], 10)
    run = labelled(
        LAYOUT, entropy={"entropy": np.outer(np.log(lengths), [0.9, 0.7, 0, 0])}, baselines={"entropy": {"entropy": np.log(lengths)}}
    )
    assert words(run) == [("broad",), (), (), ()]
    (found,) = evidence(run, make("entropy"), TYPES)
    weights = poisson_weights(names_of(20), REPLICATES)
    assert_allclose(found.baseline[:, 0], [weight @ np.log(lengths) / weight.sum() for weight in weights.T], rtol=1e-12)


def test_p_values_and_survival_follow_the_replicates() -> None:
    values = np.random.default_rng(0).normal(0.6, 0.2, (20, 4))
    run = labelled(LAYOUT, tokens={"to_sep": values})
    (found,) = (one for one in evidence(run, make("tokens"), TYPES) if one.word == "[SEP]")
    weights = poisson_weights(names_of(20), REPLICATES)
    means = np.array([[weight @ values[:, head] / weight.sum() for head in range(4)] for weight in weights.T])
    assert_allclose(found.scores.values, means, rtol=1e-12)
    assert_allclose(found.survives, [np.mean([mean > 0.5 for mean in means[1:, head]]) for head in range(4)])
    assert_allclose(found.p, p_value(means[0] - 0.5, means[1:] - 0.5, found.scores.support))
    names = [word for word, p in zip(found.p.tolist(), holm(found.p).tolist(), strict=True) if p < LEVEL]
    assert len(head_labels(run).labels) == len(names) < 4


def test_labels_are_corrected_for_the_number_of_heads() -> None:
    """A head above half with p = 0.01 gets a label if it is the only head, and none among 64 heads."""
    drawn = np.random.default_rng(3).normal(0, 0.1, 20)
    drawn = 0.5 + (drawn - drawn.mean()) + 0.065
    one_head, many_heads = HeadLayout((Site("encoder", 0, 1, 1, ""),)), HeadLayout((Site("encoder", 0, 64, 64, ""),))
    (found,) = (
        one for one in evidence(labelled(one_head, tokens={"to_sep": drawn[:, None]}), make("tokens"), TYPES) if one.word == "[SEP]"
    )
    assert 0.05 / 64 < found.p[0] < 0.05
    assert words(labelled(one_head, tokens={"to_sep": drawn[:, None]})) == [("[SEP]",)]
    drawn_for_many = np.concatenate([drawn[:, None], np.full((20, 63), 0.1)], 1)
    assert words(labelled(many_heads, tokens={"to_sep": drawn_for_many})) == [()] * 64


def test_at_most_five_per_cent_of_runs_have_a_false_label() -> None:
    """The true values of all heads are at the threshold, so any label is false."""
    layout = HeadLayout((Site("encoder", 0, 12, 12, ""),))
    rng = np.random.default_rng(5)
    runs = [labelled(layout, documents=15, tokens={"to_sep": rng.normal(0.5, 0.1, (15, 12))}) for _ in range(120)]
    assert sum(bool(head_labels(run).labels) for run in runs) <= 10  # 6 are expected; more than 10 have a probability of 0.04


def test_heads_as_good_as_the_rule_are_rarely_labelled() -> None:
    """Both halves of the documents choose some of the many heads; all heads count in the correction."""
    rng, layout = np.random.default_rng(6), HeadLayout((Site("encoder", 0, 1200, 1200, ""),))
    measure = make("relations")
    named = []
    for _ in range(40):
        n = rng.integers(4, 12, 24)
        answers = rng.binomial(n[:, None, None], 0.4, (24, 2, layout.size))
        rules = rng.binomial(n[:, None], 0.4, (24, 7))
        labels = head_labels(labelled(layout, states={"relations": contest_state(measure, layout, "obj", n, answers, rules)}))
        assert labels.tested == 2 * layout.size
        named.append(bool(labels.labels))
    assert sum(named) <= 5  # at most 2 are expected; more than 5 have a probability of 0.01


@pytest.mark.parametrize(("heads", "named"), [(4, True), (4000, False)])
def test_heads_that_are_not_chosen_count_in_the_correction(heads: int, named: bool) -> None:
    """One head is better than the rule in 10 documents; the others are never right, and are never chosen."""
    rng, layout = np.random.default_rng(3), HeadLayout((Site("encoder", 0, heads, heads, ""),))
    measure, n = make("relations"), np.full(10, 12)
    answers = np.zeros((10, 2, heads), dtype=np.int64)
    answers[:, 0, 0] = rng.binomial(n, 0.8)
    rules = rng.binomial(n[:, None], 0.4, (10, 7))
    labels = head_labels(labelled(layout, states={"relations": contest_state(measure, layout, "obj", n, answers, rules)}))
    assert (labels.tested, bool(labels.labels)) == (2 * heads, named)


def test_heads_of_relations_are_chosen_on_the_other_fold() -> None:
    """Against a plain computation: a head is chosen for one fold if it beats the best rule by 0.1 on the other fold."""
    rng = np.random.default_rng(1)
    measure: Any = make("relations", {"offsets": (-1, 1)})
    n = rng.integers(1, 9, 30)
    answers = rng.binomial(n[:, None, None], rng.uniform(0.2, 0.8, (2, LAYOUT.size)), (30, 2, LAYOUT.size))
    rules = rng.binomial(n[:, None], [0.35, 0.3], (30, 2))
    state = contest_state(measure, LAYOUT, "obj", n, answers, rules)
    found = {
        (one.direction, int(head)): (one, i)
        for one in cross_fitted(measure.contests, state, LAYOUT, 0.1)
        for i, head in enumerate(one.heads)
    }
    group = [key_of(name) % GROUPS for name in names_of(30)]
    used = sorted(set(group))
    fold = {number: place % 2 for place, number in enumerate(used)}
    expected: dict[tuple[str, int], list[int]] = {}
    rule_of = {}
    for side in (0, 1):
        other = [d for d in range(30) if fold[group[d]] != side]
        totals = [sum(rules[d, r] for d in other) for r in (0, 1)]
        rule_of[side] = 1 if totals[1] >= totals[0] else 0
        for way, direction in enumerate(measure.contests.directions):
            for head in range(LAYOUT.size):
                right = sum(answers[d, way, head] for d in other)
                if right / n[other].sum() - totals[rule_of[side]] / n[other].sum() > 0.1:
                    expected.setdefault((direction, head), []).append(side)
    assert set(found) == set(expected)
    assert any(len(sides) == 1 for sides in expected.values()), "some head is chosen on one fold only"
    for (direction, head), sides in expected.items():
        one, item = found[direction, head]
        own = [d for d in range(30) if fold[group[d]] in sides]
        way = measure.contests.directions.index(direction)
        assert one.scores.values[0, item] == pytest.approx(answers[own, way, head].sum() / n[own].sum())
        assert one.rule[0, item] == pytest.approx(sum(rules[d, rule_of[fold[group[d]]]] for d in own) / n[own].sum())
        assert (one.scores.n[item], one.scores.support.documents[item]) == (n[own].sum(), len(own))


def test_the_label_first_token_comes_from_sinks_if_tokens_are_not_measured() -> None:
    decoder = HeadLayout((Site("decoder", 0, 2, 2, ""),))
    first = {"to_first": [0.9, 0.1]}
    assert words(labelled(decoder, sinks=first)) == [("first token",), ()]
    assert words(labelled(decoder, sinks=first, tokens={"to_cls": [0.9, 0.1], "to_first": [0.9, 0.1]})) == [("[CLS]",), ()]
    assert words(labelled(decoder, tokens={"to_first": [0.9, 0.1]})) == [("first token",), ()], "a model without an opening token"


def test_a_relation_is_labelled_once_in_its_better_direction() -> None:
    measure: Any = make("relations")
    answers = np.zeros((20, 2, LAYOUT.size), dtype=np.int64)
    answers[:, 0, 0], answers[:, 1, 0] = 7, 9
    rules = np.zeros((20, 7), dtype=np.int64)
    run = labelled(LAYOUT, states={"relations": contest_state(measure, LAYOUT, "obj", np.full(20, 10), answers, rules)})
    (label,) = head_labels(run).labels
    assert (label.quantity, label.what, label.value) == ("obj (head-to-dep)", "obj", 0.9)


def test_kinds_of_mentions_are_separate_labels_and_one_word_in_figures() -> None:
    measure: Any = make("coreference")
    n, answers = np.full(20, 10), np.zeros((20, 2, LAYOUT.size), dtype=np.int64)
    answers[:, 0, 1] = 9
    rules = np.full((20, len(measure.contests.rules)), 2)
    state = contest_state(measure, LAYOUT, "pronoun", n, answers, rules)
    other = contest_state(measure, LAYOUT, "proper", n, answers - (answers > 0), rules)
    state = state.merge(other)
    found = head_labels(labelled(LAYOUT, states={"coreference": state}))
    assert [(label.type.name, label.what, label.value) for label in found.labels] == [
        ("coreference", "pronoun", 0.9),
        ("coreference", "proper", 0.8),
    ]
    assert found.words() == [(), ("coreference",), (), ()]


def test_without_intervals_figures_follow_the_values_and_the_table_is_empty() -> None:
    few = labelled(LAYOUT, documents=3, tokens={"to_sep": [0.9, 0.1, 0.1, 0.6]})
    found = head_labels(few)
    assert not found.certain
    assert found.words() == [("[SEP]",), (), (), ("[SEP]",)]
    assert (len(found.table()), found.table().columns) == (0, list(COLUMNS))
    assert "needs an interval" in found.rule
    assert few.head_labels.words() == found.words()


def test_planted_heads_of_given_maps_are_labelled() -> None:
    """In a text of 12 tokens, one head attends to the previous token, one to [SEP], and one to all tokens evenly."""
    n = 12
    before, to_sep = np.eye(n, k=-1), np.zeros((n, n))
    before[0, 0] = to_sep[:, -1] = 1
    tokens = ["[CLS]", *"a" * 10, "[SEP]"]
    run = hs.measure(np.stack([before, to_sep, np.full((n, n), 1 / n)])[None], tokens, ["positions", "tokens", "entropy"])
    assert run.results.head_labels.words() == [("previous",), ("[SEP]",), ("broad",)]


def test_runs_of_one_model_are_joined_and_runs_of_different_models_are_refused() -> None:
    text = labelled(LAYOUT, tokens={"to_sep": [0.9, 0, 0, 0]})
    repeats = labelled(LAYOUT, sequences={"induction": [0.9, 0, 0, 0]}, tokens={"to_sep": [0, 0, 0.9, 0]})
    joined = head_labels(text, repeats)
    assert joined.words() == [("induction", "[SEP]"), (), (), ()]
    assert joined.notes == ("tokens: 2 runs measured it, and the first is used",)
    assert joined.tested == 8, "four heads times two quantities: to_sep and induction"
    needles = "retrieval (--measures retrieval --corpus needles:96x40 --max-length 256)"
    assert joined.unmeasured.startswith(f"not measured: {needles}; syntactic (--measures relations); coreference")
    with pytest.raises(RunError, match=r"a run \(m\) and a run \(m, random weights\) are runs of different models"):
        head_labels(text, labelled(LAYOUT, settings={"weights": "random"}, tokens={"to_sep": [0.9, 0, 0, 0]}))
    with pytest.raises(RunError, match=r"a run \(m\) and a run \(m, norm maps\) are runs of different maps"):
        head_labels(text, labelled(LAYOUT, settings={"map": "norm"}, tokens={"to_sep": [0.9, 0, 0, 0]}))


@pytest.fixture(scope="module")
def decoder_runs(mini_decoder: Model) -> dict[str, tuple[hs.Run, hs.Run]]:
    """Runs of the decoder with trained and with random weights, on repeated sequences and on text."""
    choices: dict[str, Any] = {"replicates": 200, "gallery": 0}
    return {
        weights: (
            hs.run("mini-decoder", "repeats:30x12", ["sequences"], weights=weights, **choices),
            hs.run("mini-decoder", "sampler", {"tokens": {}, "relations": {"control": "none"}}, weights=weights, **choices),
        )
        for weights in ("trained", "random")
    }


def test_the_known_heads_of_the_decoder_are_labelled(decoder_runs: dict[str, tuple[hs.Run, hs.Run]]) -> None:
    repeats, text = decoder_runs["trained"]
    table = hs.heads(repeats, text)
    assert table.columns == list(COLUMNS)
    heads = {name: [f"{row['layer']}-{row['head']}" for row in table if row["label"] == name] for name in NAMES}
    assert {"5-3", "5-4", "7-3"} <= set(heads["induction"])
    assert heads["previous token"] == ["4-3"]
    objects = [row for row in table if row["quantity"] == "obj"]
    (best,) = (row for row in objects if (row["layer"], row["head"]) == (8, 5))
    assert best["low"] > best["baseline"] + 0.1
    assert len(heads["sink"]) > 40
    first = {(row["layer"], row["head"]): row["label"] for row in reversed(list(table))}
    assert (first[8, 5], first[5, 3], first[6, 6]) == ("syntactic", "induction", "syntactic"), "labels of sinks are not first"


def test_a_decoder_with_random_weights_has_no_labels(decoder_runs: dict[str, tuple[hs.Run, hs.Run]]) -> None:
    repeats, text = decoder_runs["random"]
    assert len(hs.heads(repeats, text)) == 0
    with pytest.raises(RunError, match="are runs of different models"):
        hs.heads(repeats, decoder_runs["trained"][1])


def test_the_heads_command_lists_labels_and_refuses_invalid_options(
    decoder_runs: dict[str, tuple[hs.Run, hs.Run]], tmp_path: Path, headscope: Callable[..., tuple[int, str, str]]
) -> None:
    choices: dict[str, Any] = {"replicates": 100, "gallery": 0}
    hs.run("mini-decoder", "repeats:20x8", ["sequences"], tmp_path / "REPEATS", **choices)
    hs.run("mini", "sampler", ["positions"], tmp_path / "MINI", limit=80, **choices)
    code, out, _ = headscope("heads", tmp_path / "REPEATS")
    assert code == 0
    assert max(map(len, out.partition(" of 64 heads")[0].splitlines())) <= 80
    (row,) = (line.split() for line in out.splitlines() if line.split()[:1] == ["4-3"])
    assert row[1:3] == ["previous", "token"]
    assert row[-1] == "100%"
    assert "not measured: retrieval" in out
    assert "syntactic (--measures relations)" in out
    code, out, _ = headscope("heads", tmp_path / "REPEATS", "--only", "induction", "--format", "tsv")
    lines = list(csv.reader(out.splitlines(), delimiter="\t"))
    assert lines[0] == list(COLUMNS)
    assert {line[3] for line in lines[1:]} == {"induction"}
    assert {f"{line[1]}-{line[2]}" for line in lines[1:]} >= {"5-3", "5-4", "7-3"}
    assert [row["quantity"] for row in hs.open_run(tmp_path / "REPEATS").heads().where(layer=4, head=3)] == ["previous_token"]
    code, out, _ = headscope("heads", tmp_path / "REPEATS", "--head", "1-1")
    assert (code, out.splitlines()[0].startswith("head 1-1: 0 labels; p < 0.05")) == (0, True)
    for wrong, message in (
        (("--only", "magic"), "there is no type of heads 'magic'. Use one of induction, duplicate"),
        (("--head", "9-1"), "the model has no head 9-1. Did you mean 8-1? Its heads are 1-1 to 8-8"),
        (("--head", "x"), "'x' is not the name of a head"),
        ((tmp_path / "MINI",), "are runs of different models. List the heads of each"),
        (("--format", "xls"), "format 'xls' is unknown"),
    ):
        code, out, err = headscope("heads", tmp_path / "REPEATS", *wrong)
        assert (code, out) == (2, ""), wrong
        assert message in err
        assert "Traceback" not in err


def test_compare_lists_the_types_of_each_model(decoder_runs: dict[str, tuple[hs.Run, hs.Run]]) -> None:
    found = hs.compare(decoder_runs["trained"][0], decoder_runs["random"][0])
    values = {(row["type"], row["run"]): row for row in found.values["types"]}
    labels: HeadLabels = decoder_runs["trained"][0].results.head_labels
    names = [str(head) for head in labels.of_type("induction")]
    row = values["induction", "trained weights"]
    assert row["heads"] == f"{len(names)}: {', '.join(names)}"
    assert values["induction", "random weights"]["heads"] == "none"
    assert values["induction", "random weights"]["value"] == 0
    scores = {
        row["head"] + 8 * row["layer"]: row for row in decoder_runs["trained"][0]["sequences"].table if row["quantity"] == "induction"
    }
    assert row["value"] == sum(one["value"] - one["baseline"] > 0.1 for one in scores.values()) / 64
    (difference,) = (one for one in found.differences["types"] if one["type"] == "induction")
    assert difference["difference"] == -row["value"]
    assert difference["high"] < 0
    assert difference["p"] < 0.05
