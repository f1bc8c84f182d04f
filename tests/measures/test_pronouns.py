"""Heads on pronoun tests: which pronouns are scored, the counts, the rules, and the gaps between groups."""

from __future__ import annotations

import math

import pytest

from headscope.errors import MeasureError
from headscope.measures import make
from headscope.stats.bootstrap import group_of
from helpers.marked import count, document, measured, pointing, rule, value

NAME = "pronouns"
# Words:        0    1   2       3    4       5
GAP = document("[A:person Ann ] met [B:person Eve ] ; [A she ] left")


def test_a_planted_head_is_always_right() -> None:
    tables = measured(NAME, [GAP], [[pointing(6, {4: 0}), pointing(6, {4: 2})]])
    assert [value(tables, NAME, head=head) for head in (1, 2)] == [1, 0]
    assert set(tables[NAME]["label"]) == {"all", "feminine"}
    assert [count(tables, NAME, what) for what in ("third-person pronouns", "pronouns scored")] == [1, 1]


def test_only_weights_on_candidates_are_compared() -> None:
    a = pointing(6, {})
    a[5] = [0, 0.02, 0.4, 0.01, 0.07, 0.3, 0.1, 0.1]  # [CLS] Ann met Eve ; she left [SEP]
    assert value(measured(NAME, [GAP], [[a]]), NAME) == 1
    a[5, 3] = 0.03
    assert value(measured(NAME, [GAP], [[a]]), NAME) == 0


def test_candidate_to_pronoun_picks_the_candidate_that_attends_more() -> None:
    a = pointing(6, {})
    a[1, 5], a[3, 5] = 0.3, 0.2
    assert value(measured(NAME, [GAP], [[a]]), NAME, "all (candidate-to-pronoun)") == 1


def test_candidates_can_follow_the_pronoun() -> None:
    one = document("[A Her ] friend [B Eve ] said that [A Ann ] left")
    assert value(measured(NAME, [one], [[pointing(7, {0: 5})]]), NAME) == 1


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("[A Ann ] met [B Eve ] ; [P she ] left", "pronouns that refer to no candidate"),
        ("[A Ann ] slept ; [A she ] left", "pronouns with fewer than two candidates"),
        ("[A Ann ] , [A Eve ] ; [A she ] left", "pronouns that refer to every candidate"),
        ("[A Ann ] met [A her ] and [B them ]", "pronouns with fewer than two candidates"),  # a pronoun is not a candidate
    ],
)
def test_pronouns_that_are_left_out_are_counted_by_reason(text: str, what: str) -> None:
    tables = measured(NAME, [document(text)])
    assert count(tables, NAME, what) == count(tables, NAME, "third-person pronouns") >= 1
    assert len(tables[NAME]) == 0


def test_a_name_headed_by_i_is_a_candidate() -> None:
    """`I` is the head word of the name and not a pronoun. GAP's development set has `Edward I of England` and five
    similar names.
    """
    one = document("[A:person Edward I of England ] met [B:person Eve ] ; [A he ] left")
    tables = measured(NAME, [one], [[pointing(9, {7: 1})]])
    assert count(tables, NAME, "pronouns scored") == 1
    assert value(tables, NAME) == 1


def test_pronouns_of_the_first_and_second_person_are_not_counted() -> None:
    assert count(measured(NAME, [document("[A Ann ] [B Eve ] [A I ] [B you ]")]), NAME, "third-person pronouns") == 0


def test_a_mention_that_contains_the_pronoun_is_not_a_candidate() -> None:
    """`his` cannot refer to `his mother`, so two candidates are left."""
    one = document("[A Tom ] saw [B Bob ] and [C [A his ] mother/NN ]")
    tables = measured(NAME, [one], [[pointing(6, {4: 0})]])
    assert value(tables, NAME, "masculine") == 1


def test_a_pronoun_is_left_out_if_the_window_cuts_off_a_candidate() -> None:
    one = document("[A Her ] friend [B Eve ] said that [A Ann ] left")
    assert count(measured(NAME, [one], kept=4), NAME, "pronouns with fewer than two candidates") == 1


def test_the_three_rules_equal_picks_worked_out_by_hand() -> None:
    """The pronoun follows both names, stands between them, or precedes them; it refers to A or to B. The expected
    values are those of `first`, `nearest` and `nearest_before`.
    """
    texts = {
        "[A Ann ] met a friend [B Eve ] [{} she ]": {"A": (1, 0, 0), "B": (0, 1, 1)},
        "[A Ann ] who was [{} her ] [B Eve ]": {"A": (1, 0, 1), "B": (0, 1, 0)},
        "[{} She ] met [A Ann ] and [B Eve ]": {"A": (1, 1, 1), "B": (0, 0, 0)},
    }
    for text, expected in texts.items():
        for right, values in expected.items():
            tables = measured(NAME, [document(text.format(right))])
            assert tuple(rule(tables, NAME, name) for name in ("first", "nearest", "nearest_before")) == values, (text, right)


def test_pronouns_are_labelled_by_gender_and_subset() -> None:
    texts = {"he": "pro", "her": "anti", "it": None, "them": "pro"}
    documents = [document(f"[A Ann ] met [B Eve ] ; [A {form} ]", form, subset) for form, subset in texts.items()]
    tables = measured(NAME, documents)
    labels = {row["label"]: row["n"] for row in tables[NAME] if row["direction"] == "pronoun-to-candidate"}
    assert labels == {"all": 4, "pro": 2, "anti": 1, "feminine": 1, "masculine": 1, "neuter": 1, "plural": 1}


def test_gaps_between_groups_equal_those_worked_out_by_hand() -> None:
    """4 of 8 feminine and 8 of 10 masculine pronouns are right: 0.5 and 0.8. The rule `nearest` is always wrong, so it
    has no ratio.
    """
    people = [("she", right) for right in (1, 1, 0, 0) * 2] + [("he", right) for right in (1, 1, 1, 1, 0) * 2]
    documents = [document(f"[A Ann ] [B Eve ] [A {form} ]", f"{number}") for number, (form, _) in enumerate(people)]
    heads = [[pointing(3, {2: 0 if right else 1})] for _, right in people]
    tables = measured(NAME, documents, heads, selection="in-sample")
    rows = {(row["entrant"], row["direction"]): row for row in tables["pronouns_gaps"]}
    head = rows["1-1", "pronoun-to-candidate"]
    assert (head["label"], head["versus"], head["n"], head["versus_n"]) == ("feminine", "masculine", 8, 10)
    assert (head["value"], head["versus_value"], head["ratio"]) == (0.5, 0.8, 0.625)
    assert math.isclose(head["difference"], -0.3)
    assert head["difference_low"] <= -0.3 <= head["difference_high"]
    assert 6 <= head["documents"] <= 8
    assert rows["best head of all", ""]["ratio"] == 0.625
    assert rows["first", ""]["ratio"] == 1
    assert math.isnan(rows["nearest", ""]["ratio"])
    assert math.isnan(rows["nearest", ""]["ratio_low"])


def test_the_best_head_of_a_gap_is_chosen_on_other_documents() -> None:
    """Head 1 is right in one half of the documents, head 2 in the other. If each half scores the head that is best on
    the other, the best head is never right.
    """
    documents, heads = [], []
    names = sorted({group_of(f"d{number}"): f"d{number}" for number in range(400)}.items())[:8]
    for turn, (_, name) in enumerate(names):
        documents.append(document(f"[A Ann ] [B Eve ] [A {'she' if turn < 4 else 'he'} ]", name))
        good, bad = pointing(3, {2: 0}), pointing(3, {2: 1})
        heads.append([good, bad] if turn % 2 == 0 else [bad, good])
    tables = measured(NAME, documents, heads)
    (row,) = tables["pronouns_gaps"].where(entrant="best head of all")
    assert (row["value"], row["versus_value"]) == (0, 0)
    assert tables["pronouns_gaps"].where(entrant="1-1", direction="pronoun-to-candidate")["value"] == [0.5]


def test_a_gap_is_that_of_the_best_head_overall_and_not_of_each_label() -> None:
    """Head 1 resolves all feminine pronouns and no masculine one; head 2 resolves all masculine ones, of which there
    are more. So head 2 is the best overall, and the gap is that of head 2.
    """
    people = ["she"] * 2 + ["he"] * 4
    documents = [document(f"[A Ann ] [B Eve ] [A {form} ]", f"{number}") for number, form in enumerate(people)]
    good, bad = pointing(3, {2: 0}), pointing(3, {2: 1})
    tables = measured(NAME, documents, [[good, bad] if form == "she" else [bad, good] for form in people], selection="in-sample")
    (gap,) = tables["pronouns_gaps"].where(entrant="best head of all")
    assert (gap["value"], gap["versus_value"]) == (0, 1)
    best = {row["label"]: (row["heads"], row["value"]) for row in tables["pronouns_best"]}
    assert best == {"all": ("1-2", 4 / 6), "masculine": ("1-2", 1), "feminine": ("1-1", 1)}


def test_one_subset_alone_has_no_gap() -> None:
    tables = measured(NAME, [document("[A Ann ] met [B Eve ] ; [A she ]", subset="pro")])
    assert len(tables["pronouns_gaps"]) == 0


def test_token_level_is_refused() -> None:
    with pytest.raises(MeasureError, match="made of words"):
        make(NAME, {"level": "token"})
