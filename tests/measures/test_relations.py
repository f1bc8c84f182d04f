"""Heads as parsers on cases worked out by hand: planted heads, each rule of docs/relations.md, and the cross-fitted
choice of the best head.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

import headscope as hs
from headscope.core.annotation import Annotated
from headscope.core.batch import CLS, SEP, WORD, MapBatch, stack
from headscope.core.document import Document, Word
from headscope.core.document import Sentence as Sentence_
from headscope.core.heads import HeadLayout, Site
from headscope.core.trees import TreeArrays
from headscope.errors import MeasureError, RunError
from headscope.measures import Relations
from headscope.measures.contests import control_group
from headscope.results.table import Table
from headscope.stats.bootstrap import group_of, poisson_weights

Sentence = list[tuple[str, int, str]]  # form, governor (from 1; 0 for a root), relation

CATS: Sentence = [("the", 2, "det"), ("cat", 3, "nsubj"), ("saw", 0, "root"), ("a", 5, "det"), ("dog", 3, "obj"), (".", 3, "punct")]
POSS: Sentence = [("Ann", 3, "poss"), ("'s", 1, "case"), ("house", 0, "root")]


def words(sentence: Sentence) -> list[Word]:
    return [Word(form, head=head, relation=relation) for form, head, relation in sentence]


def planted(sentence: Sentence) -> NDArray[np.float64]:
    """Return a map [T, T] with [CLS] and [SEP] around the words: a word attends to its governor, a root to itself."""
    n = len(sentence)
    a = np.zeros((n + 2, n + 2))
    a[0, 0] = a[-1, -1] = 1
    for i, (_, head, _) in enumerate(sentence, 1):
        a[i, head or i] = 1
    return a


def pointing(n: int, targets: dict[int, int]) -> NDArray[np.float64]:
    """Return a map in which word i (from 1) attends to word targets[i], or to itself if it has no target."""
    a = np.eye(n + 2)
    for i, j in targets.items():
        a[i], a[i, j] = 0, 1
    return a


def score(heads: list[NDArray[np.float64]], sentence: Sentence, **options: Any) -> hs.api.Run:
    n = len(sentence)
    tokens = ["[CLS]", *(form for form, _, _ in sentence), "[SEP]"]
    numbers = [None, *range(n), None]
    return hs.measure(
        np.stack(heads)[None], tokens, {"relations": {"least": 1, **options}}, words=numbers, annotation=words(sentence), replicates=10
    )


def value(run: hs.api.Run, quantity: str, head: int = 1) -> float:
    return float(run["relations"].table.where(quantity=quantity, head=head)["value"][0])


def test_special_tokens_are_picked_only_as_candidates() -> None:
    """A head that gives most weight to [SEP] and the second most to the governor is right only if [SEP] cannot be
    picked.
    """
    towards, back = 0.4 * planted(CATS), np.eye(8)
    towards[:, -1] += 0.6
    back[[2, 5], [2, 5]], back[[2, 5], [1, 4]] = 0.9, 0.1  # nouns attend to their determiners
    back[-1] = [0, *[1 / 6] * 6, 0]
    right = {}
    for specials in ("ignore", "candidates"):
        run = score([planted(CATS), towards, back], CATS, specials=specials)
        for direction in ("dep-to-head", "head-to-dep"):
            rows = run.results["relations"].where(label="det", direction=direction)
            right[specials, direction] = rows["value"]
    assert right["ignore", "dep-to-head"] == [1.0, 1.0, 0.0]
    assert right["ignore", "head-to-dep"] == [0.0, 0.0, 1.0]
    assert right["candidates", "dep-to-head"] == [1.0, 0.0, 0.0]
    assert right["candidates", "head-to-dep"] == [0.0, 0.0, 0.0]
    with pytest.raises(MeasureError, match="option specials is 'both'"):
        score([planted(CATS)], CATS, specials="both")


def test_a_planted_parser_scores_1_and_its_transpose_in_the_other_direction() -> None:
    transposed = planted(CATS).T + 1e-9
    run = score([planted(CATS), transposed / transposed.sum(1, keepdims=True)], CATS)
    for relation in ("all", "det", "nsubj", "obj"):
        assert value(run, relation, 1) == 1
        assert value(run, f"{relation} (head-to-dep)", 2) == 1


def test_all_excludes_root_and_punctuation_by_default() -> None:
    assert n_of_all(CATS) == 4  # without root and punctuation
    assert n_of_all(CATS, punct="include") == 5
    assert n_of_all(CATS, punct="include", root="include") == 6


def n_of_all(sentence: Sentence, **options: Any) -> int:
    return int(score([planted(sentence)], sentence, **options)["relations"].table.where(quantity="all")["n"][0])


def test_a_root_is_always_wrong() -> None:
    assert value(score([planted(CATS)], CATS, root="include"), "all") == 4 / 5


def test_a_word_cannot_pick_itself_or_a_special_token() -> None:
    """All weight on the word itself and on [SEP] gives no pick. A small weight on the governor makes the pick right."""
    a = np.eye(8) * 0.5
    a[:, -1] += 0.5
    assert value(score([a], CATS), "all") == 0
    b = a * 0.9
    for i, (_, head, _) in enumerate(CATS, 1):
        b[i, head or i] += 0.1
    b[[0, -1]] = a[[0, -1]]
    assert value(score([b], CATS), "all") == 1


def test_the_first_of_equal_weights_is_picked() -> None:
    a = np.full((8, 8), 1 / 8)
    run = score([a], CATS)
    assert value(run, "det") == 1 / 2  # "the" picks "cat", the first other word; "a" picks "the"
    assert value(run, "all") == 1 / 4


def test_a_sentence_of_one_word_gives_no_pick() -> None:
    run = score([np.full((3, 3), 1 / 3)], [("Yes", 0, "root")], root="include")
    assert value(run, "all") == 0


def test_relations_without_errors_are_listed_and_root_and_punct_are_not() -> None:
    labels = set(score([planted(CATS)], CATS)["relations"].table["label"])
    assert labels == {"all", "det", "nsubj", "obj"}


def test_subtypes_are_kept_or_folded() -> None:
    sentence: Sentence = [("it", 3, "nsubj:pass"), ("was", 3, "aux:pass"), ("seen", 0, "root")]
    assert set(score([planted(sentence)], sentence)["relations"].table["label"]) == {"all", "nsubj:pass", "aux:pass"}
    assert set(score([planted(sentence)], sentence, subtypes="fold")["relations"].table["label"]) == {"all", "nsubj", "aux"}


@pytest.mark.parametrize(
    ("rule", "targets", "right"),
    [
        ("none", {1: 3, 2: 1}, True),
        ("none", {1: 2, 2: 3}, False),
        ("clitic", {1: 2, 2: 3}, True),  # the pick of 's counts for Ann
        ("clitic", {1: 3, 2: 1}, False),
        ("reference", {1: 2, 2: 3}, True),
        ("reference", {1: 3, 2: 1}, True),  # an exception: Ann's pick counts if it is the last word
    ],
)
def test_the_possessive_rule_decides_whose_pick_counts(rule: str, targets: dict[int, int], right: bool) -> None:
    assert value(score([pointing(3, targets)], POSS, possessive=rule), "poss") == right


def test_the_possessive_rules_handle_a_final_possessor_and_a_plural_clitic() -> None:
    last: Sentence = [("house", 0, "root"), ("Ann", 1, "poss")]
    assert value(score([planted(last)], last, possessive="reference"), "poss") == 1
    plural: Sentence = [("cats", 3, "nmod:poss"), ("'", 1, "case"), ("house", 0, "root")]
    run = score([pointing(3, {1: 2, 2: 3})], plural, possessive="clitic")
    assert value(run, "nmod:poss") == 1
    assert value(score([pointing(3, {1: 2, 2: 3})], plural, possessive="reference"), "nmod:poss") == 0


def best(run: hs.api.Run, label: str) -> dict[str, Any]:
    table: Table = run.results["relations_best"].where(label=label)
    return {name: table[name][0] for name in table.columns}


def test_the_baseline_is_the_best_fixed_offset_of_each_relation() -> None:
    """det: the next word in both cases. obj: two words back. all: +1 is right for `the`, `cat` and `a` only."""
    run = score([planted(CATS)], CATS, selection="in-sample")
    assert (best(run, "det")["rule"], best(run, "det")["baseline"]) == ("+1", 1)
    assert (best(run, "obj")["rule"], best(run, "obj")["baseline"]) == ("-2", 1)
    assert (best(run, "all")["rule"], best(run, "all")["baseline"]) == ("+1", 3 / 4)


def test_the_largest_of_equal_offsets_is_used() -> None:
    sentence: Sentence = [("a", 2, "x"), ("b", 0, "root"), ("c", 2, "x")]
    assert best(score([planted(sentence)], sentence, selection="in-sample"), "x")["rule"] == "+1"


def test_offsets_are_clipped_to_the_sentence() -> None:
    """With -1 the first word picks the root. With +1 the last word picks itself, which is never right."""
    sentence: Sentence = [("go", 0, "root"), ("now", 1, "advmod")]
    run = score([planted(sentence)], sentence, root="include", offsets=(-1,), selection="in-sample")
    assert best(run, "all")["baseline"] == 1
    run = score([planted(sentence)], sentence, root="include", offsets=(1,), selection="in-sample")
    assert best(run, "all")["baseline"] == 0


def test_the_offset_baseline_follows_the_possessive_rule() -> None:
    """The pick of `'s` counts for `Ann`: +1 from `'s` is right, as is +2 from `Ann`. Larger offsets are clipped to the
    last word, `house`.
    """
    options = {"selection": "in-sample", "offsets": (-1, 0, 1)}
    assert best(score([planted(POSS)], POSS, possessive="clitic", **options), "poss")["baseline"] == 1
    assert best(score([planted(POSS)], POSS, **options), "poss")["baseline"] == 0
    assert best(score([planted(POSS)], POSS, selection="in-sample"), "poss")["rule"] == "+3"


def test_the_best_head_is_chosen_on_other_documents() -> None:
    """Head 1 is right in one half of the documents and wrong in the other. In-sample its accuracy is 1/2; cross-fitted,
    the best head is never right.
    """
    documents = sorted((f"d{number}" for number in range(400)), key=group_of)
    chosen = list({group_of(name): name for name in documents}.values())[:8]  # one document per group, in the order of groups
    good, bad = planted(CATS), pointing(6, {i: 6 if head != 6 else 1 for i, (_, head, _) in enumerate(CATS, 1)})
    maps = [np.stack([good, bad] if turn % 2 == 0 else [bad, good])[None] for turn in range(8)]
    tokens = [["[CLS]", *(form for form, _, _ in CATS), "[SEP]"]] * 8
    run = hs.measure(
        maps, tokens, {"relations": {"least": 1}}, words=[[None, *range(6), None]] * 8, annotation=[words(CATS)] * 8, documents=chosen
    )
    row = best(run, "det")
    assert row["in_sample"] == 0.5
    assert row["value"] == row["crossfit"] == 0
    assert row["heads"] == "1-2 | 1-1"
    assert row["lift"] == -1


def test_the_number_of_folds_decides_which_documents_choose_the_head() -> None:
    """Head 1 is right in four of six documents, head 2 in the other two, which are both in the first of two folds."""
    documents = sorted((f"d{number}" for number in range(400)), key=group_of)
    chosen = list({group_of(name): name for name in documents}.values())[:6]
    good, bad = planted(CATS), pointing(6, {i: 6 if head != 6 else 1 for i, (_, head, _) in enumerate(CATS, 1)})
    maps = [np.stack([good, bad] if turn in (1, 3, 4, 5) else [bad, good])[None] for turn in range(6)]
    given: Any = {"words": [[None, *range(6), None]] * 6, "annotation": [words(CATS)] * 6, "documents": chosen}
    tokens = [["[CLS]", *(form for form, _, _ in CATS), "[SEP]"]] * 6

    def row(**options: Any) -> dict[str, Any]:
        return best(hs.measure(maps, tokens, {"relations": {"least": 1, **options}}, **given), "det")

    # Two folds: documents 0, 2, 4 (head 2 is right in two of them) and 1, 3, 5 (head 1 is right in all). Each scores
    # the head that is best on the other.
    assert (row()["heads"], row()["value"]) == ("1-1 | 1-2", (1 + 0) / 6)
    # With one fold per document, head 1 is chosen for all documents: it is wrong in 0 and 2 and right in the others.
    assert (row(folds=6)["heads"], row(folds=6)["value"]) == ("1-1", 4 / 6)
    assert row(folds=16)["value"] == 4 / 6  # at most one fold per document
    for wrong in (1, 17):
        with pytest.raises(MeasureError, match=f"relations: folds are {wrong}. Use 2 to 16"):
            row(folds=wrong)


def test_one_document_has_no_cross_fitted_score() -> None:
    row = best(score([planted(CATS)], CATS), "det")
    assert row["in_sample"] == 1
    assert np.isnan(row["value"])
    assert np.isnan(row["low"])


def test_token_level_is_refused() -> None:
    with pytest.raises(MeasureError, match="between words"):
        hs.run("mini", "sampler", {"relations": {"level": "token"}}, limit=1, gallery=0)


def test_corpora_and_maps_without_trees_are_refused(tmp_path: Any) -> None:
    file = tmp_path / "plain.txt"
    file.write_text("No trees here.\n")
    with pytest.raises(RunError, match="relations needs trees"):
        hs.run("mini", file, ["relations"], gallery=0)
    with pytest.raises(MeasureError, match="annotated words"):
        hs.measure(np.eye(2)[None, None], ["a", "b"], ["relations"], words=[0, 1])


def test_chance_is_the_score_on_the_trees_of_other_sentences() -> None:
    """A planted parser of one tree is scored on two other trees, which share two and one of its four governors."""
    own = [Word(f, head=h, relation="x" if h else "root") for f, h in (("a", 2), ("b", 0), ("c", 2), ("d", 3), ("e", 4))]
    others = [[Word("", head=h, relation="y" if h else "root") for h in heads] for heads in ((2, 3, 0, 3, 3), (0, 1, 2, 1, 1))]
    sentence = [(word.form, word.head or 0, "x") for word in own]
    measure, layout = Relations(least=1, selection="crossfit"), HeadLayout((Site("encoder", 0, 1, 1, "planted"),))
    state = measure.start(layout, 4)
    names = {control_group(torch.tensor(0), torch.tensor(group_of(f"d{number}"))).item(): f"d{number}" for number in range(40)}
    for name in list(names.values())[:2]:  # two documents of different groups: each scores the head chosen on the other
        text = Annotated(Document(name, (Sentence_(tuple(own)),)), [TreeArrays.of(others, 5)]).select(range(5))
        side = stack([["[CLS]", *"abcde", "[SEP]"]], [[CLS, *[WORD] * 5, SEP]], [text])
        weights = torch.from_numpy(planted(sentence)[None, None].astype(np.float32))
        measure.update(state, MapBatch(0, layout, weights, side, side, partial(poisson_weights, replicates=0)))
    best = measure.tables(state, layout)["relations_best"]
    assert dict(zip(best["label"], best["value"], strict=True)) == {"all": 1, "x": 1}
    # The first tree: a -> b and d -> c. The second: c -> b. The standard error of 2/4 and 1/4 is (1/2 - 1/4) / 2.
    assert dict(zip(best["label"], best["chance"], strict=True))["all"] == (2 / 4 + 1 / 4) / 2
    assert dict(zip(best["label"], best["chance_error"], strict=True))["all"] == pytest.approx(1 / 8)
    assert np.isnan(best["chance"][list(best["label"]).index("x")])  # the other trees have no x
