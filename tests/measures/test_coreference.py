"""Coreference scores of heads on cases worked out by hand: planted heads, and each rule of docs/coreference.md."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headscope.core.document import Document
from headscope.errors import MeasureError
from headscope.measures import make
from headscope.results.table import Table
from headscope.stats.bootstrap import group_of
from helpers.marked import Map, count, document, measured, pointing, rule, value

NAME = "coreference"
# Ann met Bob. She liked him.   mentions: Ann 0, Bob 2, She 4, him 6
ANN = document("[1 Ann/NNP ] met/VBD [2 Bob/NNP ] ./. [1 She/PRP ] liked/VBD [2 him/PRP ] ./.")


def score(one: Document, targets: dict[int, int], **options: Any) -> dict[str, Table]:
    """Return the tables of one document and one head, in which word i attends to word targets[i]."""
    n = options.get("kept") or len(one.words)
    return measured(NAME, [one], [[pointing(n, targets)]], **options)


def test_a_planted_resolver_scores_1_and_its_transpose_in_the_other_direction() -> None:
    planted = pointing(8, {4: 0, 6: 2})
    transposed = planted.T + 1e-9
    tables = measured(NAME, [ANN], [[planted, transposed / transposed.sum(1, keepdims=True)]])
    assert value(tables, NAME) == value(tables, NAME, "pronoun") == 1
    assert value(tables, NAME, "all (antecedent-to-mention)", head=2) == 1
    assert tables[NAME].where(quantity="all", head=1)["n"] == [2]


def test_first_mentions_are_not_scored() -> None:
    tables = score(ANN, {4: 0})
    assert value(tables, NAME) == 1 / 2
    assert [count(tables, NAME, what) for what in ("mentions", "first mentions", "mentions scored")] == [4, 2, 2]
    assert set(tables[NAME]["label"]) == {"all", "pronoun"}  # both names are first mentions


def test_a_pick_of_any_antecedent_is_right() -> None:
    one = document("[1 Ann/NNP ] [2 Bob/NNP ] [1 she/PRP ] [1 her/PRP$ ]")
    for target, right in ((0, 1), (2, 1), (1, 0)):
        assert value(score(one, {2: 0, 3: target}), NAME) == (1 + right) / 2


@pytest.mark.parametrize(
    ("candidates", "weights", "right"),
    [
        # Words: 0 Ann, 1 met, 2 Bob, 3 and, 4 she (scored), 5 saw, 6 Eve. Only the listed words have weight.
        ("preceding_mentions", {0: 0.1, 1: 0.4, 4: 0.2, 6: 0.3}, True),  # not the verb, not the word itself, no later mention
        ("preceding_mentions", {0: 0.1, 2: 0.2}, False),
        ("any_other_mention", {0: 0.1, 6: 0.3}, False),
        ("any_other_mention", {0: 0.2, 1: 0.7, 6: 0.1}, True),
        ("preceding_words", {0: 0.1, 1: 0.2}, False),
        ("preceding_words", {0: 0.1, 4: 0.5, 5: 0.2, 6: 0.2}, True),
        ("all_words", {0: 0.1, 5: 0.2}, False),
        ("all_words", {0: 0.3, 4: 0.6, 5: 0.1}, True),
    ],
)
def test_the_option_candidates_decides_which_words_can_be_picked(candidates: str, weights: dict[int, float], right: bool) -> None:
    one = document("[1 Ann/NNP ] met/VBD [2 Bob/NNP ] and/CC [1 she/PRP ] saw/VBD [2 Eve/NNP ]")
    a = pointing(7, {6: 2})  # `Eve` has the entity of `Bob`, and its pick is always right
    a[5] = 0
    for word, weight in weights.items():
        a[5, word + 1] = weight
    assert value(measured(NAME, [one], [[a]], candidates=candidates), NAME, "pronoun") == right


def test_a_row_without_weight_on_a_candidate_gives_no_answer() -> None:
    """All weight is on the word itself, on [CLS] and on [SEP]."""
    a: Map = np.zeros((10, 10))
    a[:, 0] = a[:, -1] = 0.4
    a += 0.2 * np.eye(10)
    assert value(measured(NAME, [ANN], [[a]]), NAME) == 0


def test_the_first_of_equal_weights_is_picked() -> None:
    tables = measured(NAME, [ANN])  # uniform attention: `She` and `him` both pick `Ann`
    assert value(tables, NAME) == 1 / 2


def test_the_shorter_of_two_mentions_with_the_same_start_comes_first() -> None:
    """Of two mentions that start at the same word, only the longer one has an antecedent and is scored."""
    one = document("[1 [1 Ann/NNP ] 's/POS mother/NN ]", parse="(NP (NP (NNP Ann) (POS 's)) (NN mother))")
    tables = score(one, {2: 0})
    assert count(tables, NAME, "mentions scored") == 1
    assert value(tables, NAME, "nominal") == 1


def test_an_antecedent_with_the_same_head_word_does_not_count() -> None:
    """`the dog` and `the dog that barks` have the same head word, so neither has an antecedent. `a dog` has one."""
    one = document("[1 [1 the/DT dog/NN ] that/WDT barks/VBZ ] saw/VBD [1 a/DT dog/NN ]")
    tables = score(one, {6: 1})
    shared = "mentions with the head word of all their antecedents"
    assert [count(tables, NAME, what) for what in ("mentions", "first mentions", shared, "mentions scored")] == [3, 1, 1, 1]
    assert value(tables, NAME) == 1


def test_a_head_word_of_two_mentions_is_right_if_one_of_them_is_an_antecedent() -> None:
    one = document("[2 [1 the/DT dog/NN ] that/WDT barks/VBZ ] and/CC [2 it/PRP ]")
    tables = score(one, {5: 1})
    assert value(tables, NAME) == rule(tables, NAME, "nearest") == 1


def test_mentions_cut_by_the_window_are_not_used() -> None:
    """The text ends after `the`: `the dog` is neither scored nor a candidate. Ann is not a singleton, because the
    document mentions her twice.
    """
    one = document("[1 Ann/NNP ] [2 Bob/NNP ] [2 he/PRP ] [3 the/DT dog/NN ] [1 her/PRP$ ] [3 it/PRP ]")
    tables = measured(NAME, [one], [[pointing(4, {2: 1})]], kept=4)
    assert [count(tables, NAME, what) for what in ("mentions", "mentions of singletons left out", "mentions scored")] == [3, 0, 1]
    assert value(tables, NAME) == 1


def test_singletons_are_candidates_only_with_the_option_include() -> None:
    one = document("[1 Ann/NNP ] met/VBD [2 Bob/NNP ] ./. [1 She/PRP ] left/VBD")
    without, included = (score(one, {4: 2}, singletons=singletons) for singletons in ("exclude", "include"))
    assert value(without, NAME) == value(included, NAME) == 0  # without Bob nothing is picked; with Bob the pick is wrong
    assert (rule(without, NAME, "nearest"), rule(included, NAME, "nearest")) == (1, 0)
    assert count(without, NAME, "mentions of singletons left out") == 1
    assert count(included, NAME, "mentions of singletons left out") == 0


def test_documents_without_scored_mentions_give_empty_tables() -> None:
    tables = score(document("[1 Ann/NNP ] sleeps/VBZ"), {})
    assert len(tables[NAME]) == len(tables["coreference_best"]) == len(tables["coreference_rules"]) == 0
    assert count(tables, NAME, "texts") == 1
    assert len(score(document("No mention here"), {})[NAME]) == 0


def test_mentions_are_classified_as_nominal_pronoun_or_proper() -> None:
    one = document(
        "[1 Ann/NNP ] [1 Ann/NNP ] [1 she/PRP ] [1 the/DT boss/NN ] [2 Ann/NNP and/CC Bob/NNP ] [2 Ann/NNP and/CC Bob/NNP ]",
    )
    tables = score(one, {})
    assert {row["label"]: row["n"] for row in tables[NAME] if row["direction"] == "mention-to-antecedent"} == {
        "all": 4, "nominal": 2, "pronoun": 1, "proper": 1,
    }  # fmt: skip


def test_the_three_rules_equal_picks_worked_out_by_hand() -> None:
    """`the boss`: the nearest mention is `him` (wrong). The nearest one with the same head word is `Boss`, and the
    sieves pick it too.
    """
    one = document("[1 Boss/NNP ] met/VBD [2 Bob/NNP ] ./. [1 She/PRP ] saw/VBD [2 him/PRP ] the/DT [1 boss/NN ]")
    tables = score(one, {})
    assert [rule(tables, NAME, name, "nominal") for name in ("nearest", "head_match", "sieves")] == [0, 1, 1]
    # `She`: the nearest mention is `Bob` (wrong). No head word matches. The third sieve accepts any singular mention
    # and picks the nearest, `Bob`.
    # `him`: the nearest mention is `She` (wrong). The third sieve rejects it for its gender and picks `Bob`.
    assert [rule(tables, NAME, name, "pronoun") for name in ("nearest", "head_match", "sieves")] == [0, 0, 1 / 2]


def test_head_match_without_a_match_is_wrong_or_picks_the_nearest() -> None:
    one = document("[1 Ann/NNP ] saw/VBD [1 her/PRP$ ]")
    assert rule(score(one, {}), NAME, "head_match") == 0
    assert rule(score(one, {}, head_match="nearest"), NAME, "head_match") == 1


def test_pronouns_can_skip_the_exact_sieves() -> None:
    """The second `he` refers to the boy but has the same form as the first `he`. The third `he` picks the second with
    and without the option, which is wrong.
    """
    one = document("[1 he/PRP ] saw/VBD [2 the/DT boy/NN ] [2 he/PRP ] [1 he/PRP ]")
    assert rule(score(one, {}), NAME, "sieves", "pronoun") == 0
    assert rule(score(one, {}, skip_exact_for_pronouns=True), NAME, "sieves", "pronoun") == 1 / 2


def test_the_first_sieve_can_ignore_determiners() -> None:
    one = document("[1 the/DT old/JJ dog/NN ] saw/VBD [2 the/DT dog/NN ] [2 it/PRP ] [1 an/DT old/JJ dog/NN ]")
    assert rule(score(one, {}), NAME, "sieves", "nominal") == 0  # picks the nearest `dog`, which is wrong
    assert rule(score(one, {}, strip_determiner=True), NAME, "sieves", "nominal") == 1


def test_the_sieves_use_the_gender_of_listed_names() -> None:
    one = document("[1 Ann/NNP ] met/VBD [2 Bob/NNP ] ./. [1 She/PRP ] left/VBD [2 him/PRP ]")
    assert rule(score(one, {}), NAME, "sieves") == 1 / 2
    assert rule(score(one, {}, masculine=("Bob",)), NAME, "sieves") == 1


def test_head_words_are_counted_by_source() -> None:
    parsed = document("[1 Ann/NNP ] saw/VBD [1 her/PRP$ dog/NN ]", parse="(S (NP (NNP Ann)) (VP (VBD saw) (NP (PRP$ her) (NN dog))))")
    assert count(score(parsed, {}), NAME, "head words by constituents") == 2
    assert count(score(parsed, {}, head_words="cue"), NAME, "head words by cue") == 2
    assert count(score(parsed, {}, head_words="dependencies"), NAME, "head words by cue") == 2  # there is no dependency tree


def test_rules_have_intervals_and_the_best_head_is_compared_with_the_best_rule() -> None:
    documents = [document("[1 Ann/NNP ] [2 Bob/NNP ] [1 Ann/NNP ] [2 Bob/NNP ]", id=f"d{number}") for number in range(12)]
    tables = measured(NAME, documents, [[pointing(4, {2: 0, 3: 1})]] * 12)
    rules = list(tables["coreference_rules"].where(label="all"))
    groups = np.bincount([group_of(one.id) for one in documents])
    least = 0.025 ** (np.square(groups).sum() / groups.sum() ** 2)  # all documents agree: the exact bound
    found = [(row["rule"], row["value"], row["documents"]) for row in rules]
    assert found == [
        ("nearest", 0, 12),
        ("head_match", 1, 12),
        ("sieves", 1, 12),
    ]
    assert [(row["low"], row["high"]) for row in rules] == [(0, pytest.approx(1 - least)), *[(pytest.approx(least), 1)] * 2]
    (row,) = tables["coreference_best"].where(label="all")
    assert (row["heads"], row["direction"], row["value"], row["rule"], row["lift"]) == ("1-1", "mention-to-antecedent", 1, "sieves", 0)


def test_table_2_has_one_head_for_all_kinds_and_the_best_head_of_each_kind() -> None:
    """Head 1 resolves all names, head 2 all pronouns. There are twice as many names, so head 1 is the best overall."""
    text = "[1 Ann/NNP ] [2 Bob/NNP ] [1 Ann/NNP ] [2 Bob/NNP ] [1 she/PRP ]"
    documents = [document(text, id=f"d{number}") for number in range(8)]
    names, pronouns = pointing(5, {2: 0, 3: 1, 4: 3}), pointing(5, {2: 1, 3: 2, 4: 2})
    systems = measured(NAME, documents, [[names, pronouns]] * 8)["coreference_systems"]
    assert list(dict.fromkeys(systems["system"])) == ["nearest", "head_match", "sieves", "one head", "best head of each kind"]
    paper = systems.where(direction="mention-to-antecedent")

    def row(system: str, label: str) -> tuple[str, float, int]:
        (one,) = paper.where(system=system, label=label)
        return one["heads"], one["value"], one["n"]

    assert [row("one head", label) for label in ("all", "proper", "pronoun")] == [("1-1", 2 / 3, 24), ("1-1", 1, 16), ("1-1", 0, 8)]
    assert [row("best head of each kind", label) for label in ("all", "proper", "pronoun")] == [
        ("1-1", pytest.approx(2 / 3), 24),
        ("1-1", 1, 16),
        ("1-2", 1, 8),
    ]
    for (name, label), own in {(one["rule"], one["label"]): one for one in measured(NAME, documents)["coreference_rules"]}.items():
        (same,) = systems.where(system=name, label=label)
        assert (same["value"], same["low"], same["high"], same["direction"]) == (own["value"], own["low"], own["high"], "")


def test_token_level_is_refused() -> None:
    with pytest.raises(MeasureError, match="made of words"):
        make(NAME, {"level": "token"})


def test_the_presets_paper_and_reference_pick_among_all_words() -> None:
    assert make(NAME, preset="paper").options()["candidates"] == "all_words"
    assert make(NAME, preset="reference") == make(NAME, preset="paper")  # there is no released code
