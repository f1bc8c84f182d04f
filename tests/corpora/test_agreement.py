from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.core.document import Document, Mention, Sentence, Word
from headscope.corpora import AgreementReport, AnnotationDifference, Corpus, compare, read, read_annotation
from headscope.errors import CorpusError, HeadscopeError
from headscope.stats.bootstrap import poisson_weights
from headscope.stats.inference import Support, interval

Write = Callable[[str, str], Path]
FIRST = """
    # newdoc id = d
    # keyphrases = big cat; mouse
    # sent_id = d-1
    1 A     a   DET   DT _ 3 det        _ Entity=(1-animal
    2 big   big ADJ   JJ _ 3 amod       _ _
    3 cat   cat NOUN  NN _ 4 nsubj:pass _ Entity=1)
    4 slept _   VERB  V  _ 0 root       _ _
    5 .     .   PUNCT .  _ 4 punct      _ _

    # sent_id = d-2
    1 It    it  PRON  PR _ 2 nsubj      _ Entity=(1-animal)
    2 saw   see VERB  V  _ 0 root       _ _
    3 it    it  PRON  PR _ 2 obj        _ Entity=(2-animal)
    """
# Changes: the keyphrases; the lemma of `A`; the tags of `big` and `saw`; the relation subtype of `cat`; the head of the
# full stop; the mention `big cat` instead of `A big cat`; entity 2 becomes entity 1, a person.
SECOND = """
    # newdoc id = d
    # keyphrases = Big cat; dog; milk
    # sent_id = d-1
    1 A     an  DET   DT _ 3 det        _ _
    2 big   big VERB  JJ _ 3 amod       _ Entity=(1-animal
    3 cat   cat NOUN  NN _ 4 nsubj      _ Entity=1)
    4 slept _   VERB  V  _ 0 root       _ _
    5 .     .   PUNCT .  _ 3 punct      _ _

    # sent_id = d-2
    1 It    it  PRON  PR _ 2 nsubj      _ Entity=(1-animal)
    2 saw   see VERB  _  _ 0 root       _ _
    3 it    it  PRON  PR _ 2 obj        _ Entity=(1-person)
    """


@pytest.fixture
def report(columns: Write) -> AgreementReport:
    return compare(read(columns("first.conllu", FIRST)), read(columns("second.conllu", SECOND)))


def test_word_scores_match_values_by_hand(report: AgreementReport) -> None:
    assert (report.documents, report.sentences, report.words) == (1, 2, 8)
    expected = {
        "lemma": (6 / 7, 7),
        "upos": (7 / 8, 8),
        # Tags (first, second): DET 1, 1; ADJ 1, 0; VERB 2, 3; NOUN 1, 1; PUNCT 1, 1; PRON 2, 2. Chance: 13/64.
        "upos_kappa": ((7 / 8 - 13 / 64) / (1 - 13 / 64), 8),
        "xpos": (1, 7),
        "uas": (7 / 8, 8),
        "uas_nopunct": (1, 7),
        "las": (6 / 8, 8),
        "las_nopunct": (6 / 7, 7),
        "las_main": (7 / 8, 8),
        "las_main_nopunct": (1, 7),
        "relation": (7 / 8, 8),
        # Relations (first, second): det, amod, punct, obj 1, 1; root 2, 2; nsubj 1, 2; nsubj:pass 1, 0. Chance: 10/64.
        "relation_kappa": ((7 / 8 - 10 / 64) / (1 - 10 / 64), 8),
    }
    for name, (value, n) in expected.items():
        assert report[name].value == pytest.approx(value), name
        assert (report[name].first, report[name].second) == (n, n), name
        assert math.isnan(report[name].low), "a single document has no interval"
    assert report.alone == {"xpos": 1}


def test_relation_scores_match_values_by_hand(report: AgreementReport) -> None:
    found: dict[str, tuple[object, ...]] = {
        score.name: (score.precision, score.recall, score.value, score.first, score.second) for score in report.relations
    }
    assert found["root"] == (1, 1, 1, 2, 2)
    assert found["nsubj"] == (1 / 2, 1, pytest.approx(2 / 3), 1, 2)
    assert found["punct"] == (0, 0, 0, 1, 1), "the head differs"
    assert found["nsubj:pass"] == (pytest.approx(math.nan, nan_ok=True), 0, 0, 1, 0)
    assert report.relations[0].name == "root", "the most frequent relation comes first"


def test_coreference_scores_match_values_by_hand(report: AgreementReport) -> None:
    """Entities in the first annotation: {A big cat, It}, {it}. In the second: {big cat, It, it}."""
    expected = {
        "mentions": (2 / 3, 2 / 3),
        "muc": (0, 0),  # The annotations share no link.
        "b_cubed": (2 * (1 / 3) / 3, (1 / 2 + 1) / 3),
        "ceaf": (2 / 4, 2 / 4 / 2),  # Similarity to {big cat, It, it}: {it} 2/4, {A big cat, It} 2/5.
        "links": (0, 0),
        "b_cubed_chains": (1 / 3 / 3, 1 / 2 / 2),
        "ceaf_chains": (2 / 5, 2 / 5),
        "keyphrases": (1 / 3, 1 / 2),
    }
    for name, (precision, recall) in expected.items():
        assert (report[name].precision, report[name].recall) == pytest.approx((precision, recall)), name
        f1 = 2 * precision * recall / (precision + recall) if precision else 0
        assert report[name].value == pytest.approx(f1), name
    assert report["conll"].value == pytest.approx((report["muc"].value + report["b_cubed"].value + report["ceaf"].value) / 3)
    assert report["conll_chains"].value == pytest.approx((0 + report["b_cubed_chains"].value + report["ceaf_chains"].value) / 3)
    assert (report["type"].value, report["type"].first) == (1 / 2, 2)
    assert (report["antecedent"].value, report["antecedent"].first) == (0, 2)


def test_every_difference_is_listed_with_its_place(report: AgreementReport) -> None:
    def word(sentence: str, word: int, text: str, first: dict[str, object], second: dict[str, object], last: int | None = None) -> object:
        return AnnotationDifference("first.conllu", "d", sentence, word, last, text, first, second)  # type: ignore[arg-type]

    assert list(report.differences) == [
        word("d-1", 1, "A", {"lemma": "a"}, {"lemma": "an"}),
        word("d-1", 2, "big", {"upos": "ADJ"}, {"upos": "VERB"}),
        word("d-1", 3, "cat", {"relation": "nsubj:pass"}, {"relation": "nsubj"}),
        word("d-1", 5, ".", {"head": 4, "to": "slept"}, {"head": 3, "to": "cat"}),
        word("d-2", 2, "saw", {"xpos": "V"}, {"xpos": None}),
        word("d-1", 1, "A big cat", {"entity": "1", "type": "animal"}, {}, 3),
        word("d-1", 2, "big cat", {}, {"entity": "1", "type": "animal"}, 3),
        word("d-2", 1, "It", {"antecedent": "A big cat (d-1, word 1)"}, {"antecedent": "big cat (d-1, word 2)"}, 1),
        word("d-2", 3, "it", {"type": "animal", "antecedent": None}, {"type": "person", "antecedent": "It (d-2, word 1)"}, 3),
    ]


def tagged(id: str, tags: str) -> Document:
    return Document(id, (Sentence(tuple(Word("w", upos=tag) for tag in tags)),))


def test_kappa_matches_a_known_table_and_is_nan_for_a_single_tag() -> None:
    """20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: observed agreement 0.7, chance agreement 0.5."""
    agreement = compare(Corpus.of([tagged("d", "Y" * 25 + "N" * 25)]), Corpus.of([tagged("d", "Y" * 20 + "N" * 5 + "Y" * 10 + "N" * 15)]))
    assert agreement["upos"].value == pytest.approx(0.7)
    assert agreement["upos_kappa"].value == pytest.approx(0.4)
    assert math.isnan(compare(Corpus.of([tagged("d", "YY")]), Corpus.of([tagged("d", "YY")]))["upos_kappa"].value)


def test_intervals_resample_documents() -> None:
    rng = np.random.default_rng(0)
    first, second = [], []
    for i in range(12):
        tags = "".join(rng.choice(["A", "B"], size=i + 3))
        first.append(tagged(f"d{i}", tags))
        second.append(tagged(f"d{i}", "".join(tag if rng.random() < 0.8 else "C" for tag in tags)))
    score = compare(Corpus.of(first), Corpus.of(second[::-1]), replicates=200, seed=3)["upos"]
    agree = [sum(a.upos == b.upos for a, b in zip(x.words, y.words, strict=True)) for x, y in zip(first, second, strict=True)]
    weights = poisson_weights([document.id for document in first], 200, seed=3)
    replicates = (weights.T @ agree) / (weights.T @ [len(document.words) for document in first])
    assert score.value == pytest.approx(replicates[0])
    support = Support.of(np.arange(3, 15))  # the number of words per document
    assert (score.low, score.high) == pytest.approx(interval(replicates[0], replicates[1:], support))
    assert score.documents == 12
    assert score.low < score.value < score.high


@st.composite
def annotated(draw: st.DrawFn, shape: Sequence[int]) -> Document:
    """A randomly annotated document. `shape` is the number of words per sentence."""
    labels = st.sampled_from(["nsubj", "nsubj:pass", "punct", "obj"])
    sentences = tuple(
        Sentence(tuple(Word("w", upos=draw(st.sampled_from("AB")), head=draw(st.integers(0, n)), relation=draw(labels)) for _ in range(n)))
        for n in shape
    )
    spans = draw(st.lists(st.tuples(st.integers(0, sum(shape) - 1), st.integers(1, 2)), max_size=6, unique=True))
    mentions = tuple(Mention(draw(st.sampled_from("123")), start, start + n, draw(st.sampled_from("pq"))) for start, n in spans)
    return Document("d", sentences, tuple(m for m in mentions if m.end <= sum(shape)), tuple(draw(st.sets(st.sampled_from("xyz")))))


@st.composite
def both_sides(draw: st.DrawFn) -> tuple[list[Document], list[Document]]:
    sides: tuple[list[Document], list[Document]] = ([], [])
    for i in range(draw(st.integers(1, 3))):
        shape = draw(st.lists(st.integers(1, 3), min_size=1, max_size=3))
        for side in sides:
            side.append(replace(draw(annotated(shape)), id=f"d{i}"))
    return sides


@settings(max_examples=60, deadline=None)
@given(both_sides())
def test_swapping_the_annotations_swaps_precision_and_recall(sides: tuple[list[Document], list[Document]]) -> None:
    first, second = (Corpus.of(side) for side in sides)
    forward, backward = compare(first, second, replicates=20), compare(second, first, replicates=20)
    swapped = {score.name: score for score in (*backward.scores, *backward.relations)}
    for score in (*forward.scores, *forward.relations):
        other = swapped[score.name]
        assert (score.value, score.low, score.high) == pytest.approx((other.value, other.low, other.high), nan_ok=True)
        assert (score.first, score.second) == (other.second, other.first)
        assert (score.precision is None) == (other.recall is None)
        if score.precision is not None:
            assert (score.precision, score.recall) == pytest.approx((other.recall, other.precision), nan_ok=True)
        assert math.isnan(score.value) or -1 <= score.value <= 1 + 1e-12
    assert [(d.sentence, d.word, d.last, d.first, d.second) for d in forward.differences] == [
        (d.sentence, d.word, d.last, d.second, d.first) for d in backward.differences
    ]


@settings(max_examples=40, deadline=None)
@given(both_sides())
def test_the_same_annotation_agrees_with_itself(sides: tuple[list[Document], list[Document]]) -> None:
    """Every defined score is 1, also if the entities have other names."""
    renamed = [replace(d, mentions=tuple(replace(m, entity=f"x{m.entity}") for m in d.mentions)) for d in sides[0]]
    agreement = compare(Corpus.of(sides[0]), Corpus.of(renamed[::-1]), replicates=5)
    assert agreement["las"].value == 1
    for score in (*agreement.scores, *agreement.relations):
        assert math.isnan(score.value) or score.value == pytest.approx(1)
    assert agreement.differences == ()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("big   big", "large big"), "document d, sentence d-1: word 2 is 'big' in the first annotation and 'large' in the second"),
        (
            ("3 it    it  PRON  PR _ 2 obj        _ Entity=(2-animal)", ""),
            "sentence d-2: word 3 is 'it' in the first .* and missing in the",
        ),
        (("sent_id = d-2", "sent_id = d-3"), "document d: sentence 2 is d-2 in the first annotation and d-3 in the second"),
        (("newdoc id = d", "newdoc id = e"), "only the first annotation has document d; only the second annotation has document e"),
        (("# sent_id = d-2", "# newdoc id = e"), "document d: only the first annotation has sentence d-2"),
    ],
)
def test_annotations_of_different_texts_are_refused(columns: Write, change: tuple[str, str], says: str) -> None:
    assert change[0] in FIRST
    first, second = read(columns("first.conllu", FIRST)), read(columns("second.conllu", FIRST.replace(*change)))
    with pytest.raises(HeadscopeError, match=says):
        compare(first, second)


def test_five_missing_documents_are_named_and_the_rest_counted() -> None:
    documents = [tagged(f"d{i}", "A") for i in range(9)]
    with pytest.raises(HeadscopeError, match=r"only the second annotation has documents d1, d2, d3, d4, d5 and 2 more\."):
        compare(Corpus.of([documents[0], documents[8]]), Corpus.of(documents))


def test_a_column_missing_in_one_annotation_is_not_a_difference(columns: Write) -> None:
    untagged = "".join(line.replace(" DT ", " _ ").replace(" JJ ", " _ ") for line in FIRST.splitlines(keepends=True))
    for tag in ("NN", "V ", ". ", "PR"):
        untagged = untagged.replace(f" {tag} _", " _ _")
    agreement = compare(read(columns("first.conllu", FIRST)), read(columns("second.conllu", untagged)))
    assert (agreement.differences, agreement.alone) == ((), {"xpos": 8})
    assert "xpos" not in {score.name for score in agreement.scores}


def test_folders_are_compared_and_faulty_folders_refused(columns: Write, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        columns(f"{folder}/a.conllu", FIRST)
    columns("two/b.conllu", FIRST)
    assert compare(read_annotation(tmp_path / "one"), read_annotation(tmp_path / "one" / "a.conllu"))["las"].value == 1
    with pytest.raises(HeadscopeError, match=r"document 'd' is in a\.conllu and again in b\.conllu"):
        compare(read_annotation(tmp_path / "one"), read_annotation(tmp_path / "two"))
    with pytest.raises(CorpusError, match=r"there is no \.conllu file in this folder"):
        read_annotation(tmp_path)
    with pytest.raises(HeadscopeError, match="there is no score 'beauty'"):
        compare(read("sampler"), read("sampler"), replicates=0)["beauty"]


def test_skipped_items_are_reported_for_each_annotation(columns: Write) -> None:
    path = columns("a.conllu", "# newdoc id = d\n1-2 ab _ _ _ _ _ _ _ _\n1 a _ X _ _ 0 root _ _\n2 b _ X _ _ 1 dep _ _")
    corpus = read(path)
    for _ in range(2):
        assert [dict(tally.counts) for tally in compare(corpus, read(path)).skipped] == [
            {"multi-word tokens (their words are read)": 1},
            {"multi-word tokens (their words are read)": 1},
        ]


def test_gum_agrees_completely_with_itself(data: Path) -> None:
    path = data / "ud/en_gum-ud-dev.conllu.xz"
    agreement = compare(read(path), read(path), replicates=10)
    assert {score.value for score in (*agreement.scores, *agreement.relations)} == {1.0}
    assert (agreement["mentions"].first, agreement["ceaf"].first, agreement.differences) == (7_897, 3_940, ())
