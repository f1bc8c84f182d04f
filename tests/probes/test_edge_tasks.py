from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headscope.core.document import Document, Edge, Mention, Sentence, Word
from headscope.errors import HeadscopeError
from headscope.studies.edge_probe.tasks import Choices, counts_in_score, inside, targets, tasks_in

# Ann saw the dog . / It barked at her . / Rain fell .
STORY = Document(
    "story",
    (
        Sentence(
            (
                Word("Ann", upos="PROPN", xpos="NNP", head=2, relation="nsubj"),
                Word("saw", upos="VERB", xpos="VBD", head=0, relation="root"),
                Word("the", upos="DET", xpos="DT", head=4, relation="det:x"),
                Word("dog", upos="NOUN", xpos="NN", head=2, relation="obj"),
                Word(".", upos="PUNCT", head=2, relation="punct"),
            ),
            parse="(TOP (S (NP-SBJ (NNP Ann)) (VP (VBD saw) (NP (DT the) (NN dog))) (. .)))",
        ),
        Sentence((Word("It"), Word("barked"), Word("at"), Word("her"), Word("."))),
        Sentence((Word("Rain"), Word("fell"), Word("."))),
    ),
    (
        Mention("1", 0, 1, "person"),
        Mention("2", 2, 4, "animal"),
        Mention("2", 5, 6, "animal"),
        Mention("1", 8, 9, "person"),
        Mention("3", 10, 11),
    ),
)


def brief(edges: list[Edge]) -> list[tuple[str, tuple[int, int], tuple[int, int] | None]]:
    return [("+".join(edge.labels), edge.first, edge.second) for edge in edges]


def test_pos_targets_are_upos_tags_or_xpos_tags() -> None:
    assert brief(targets(STORY, "pos")) == [
        ("PROPN", (0, 1), None),
        ("VERB", (1, 2), None),
        ("DET", (2, 3), None),
        ("NOUN", (3, 4), None),
        ("PUNCT", (4, 5), None),
    ]
    own = [("NNP", (0, 1), None), ("VBD", (1, 2), None), ("DT", (2, 3), None), ("NN", (3, 4), None)]
    assert brief(targets(STORY, "pos", Choices(tags="xpos"))) == own
    bare = tuple(replace(word, upos=None) for word in STORY.words)
    assert brief(targets(Document("d", (Sentence(bare),)), "pos")) == own
    assert targets(Document("d", (Sentence(bare),)), "pos", Choices(tags="upos")) == []


def test_the_second_span_of_the_root_is_the_root_itself() -> None:
    assert brief(targets(STORY, "deps")) == [
        ("nsubj", (0, 1), (1, 2)),
        ("root", (1, 2), (1, 2)),
        ("det:x", (2, 3), (3, 4)),
        ("obj", (3, 4), (1, 2)),
        ("punct", (4, 5), (1, 2)),
    ]
    assert targets(STORY, "deps", Choices(subtypes=False))[2].labels == ("det",)


def test_heads_are_counted_from_the_beginning_of_their_sentence() -> None:
    first = Sentence((Word("a", head=0, relation="root"), Word("b")))
    second = Sentence((Word("c", head=2, relation="det"), Word("d", head=0, relation="root"), Word("e", head=9, relation="dep")))
    assert brief(targets(Document("d", (first, second)), "deps")) == [
        ("root", (0, 1), (0, 1)),
        ("det", (2, 3), (3, 4)),
        ("root", (3, 4), (3, 4)),
    ]


def test_constituents_are_the_nodes_above_the_tags() -> None:
    moved = Document("d", (STORY.sentences[2], STORY.sentences[0]))
    assert sorted(brief(targets(moved, "constituents"))) == sorted(
        [
            ("TOP", (3, 8), None),
            ("S", (3, 8), None),
            ("NP", (3, 4), None),
            ("VP", (4, 7), None),
            ("NP", (5, 7), None),
        ]
    )


@pytest.mark.parametrize("parse", ["(S (NP (NNP Ann))", "(S (NP (NNP Ann) (NN x)))", "(NNP Ann)", "", "((", "( (NNP Ann))"])
def test_damaged_parses_and_parses_without_phrases_have_no_constituents(parse: str) -> None:
    assert targets(Document("d", (Sentence((Word("Ann"),), parse=parse),)), "constituents") == []


def test_coref_targets_are_pairs_of_mentions_in_one_sentence() -> None:
    # Entity 3 is mentioned once. OntoNotes does not annotate such singletons.
    assert brief(targets(STORY, "coref")) == [("0", (0, 1), (2, 4)), ("0", (5, 6), (8, 9))]


def test_coref_targets_may_span_sentences_and_include_singletons() -> None:
    near = [
        ("0", (0, 1), (2, 4)),
        ("0", (0, 1), (5, 6)),
        ("1", (0, 1), (8, 9)),
        ("1", (2, 4), (5, 6)),
        ("0", (2, 4), (8, 9)),
        ("0", (5, 6), (8, 9)),
    ]
    assert brief(targets(STORY, "coref", Choices(apart=1))) == near
    assert brief(targets(STORY, "coref", Choices(apart=None))) == near
    with_rain = targets(STORY, "coref", Choices(apart=1, singletons=True))
    assert [pair for pair in brief(with_rain) if pair not in near] == [("0", (5, 6), (10, 11)), ("0", (8, 9), (10, 11))]
    assert len(targets(STORY, "coref", Choices(apart=None, singletons=True))) == 10


def test_a_span_with_two_entities_is_one_mention() -> None:
    mentions = (Mention("1", 0, 1), Mention("2", 0, 1), Mention("1", 1, 2), Mention("2", 2, 3), Mention("2", 3, 3))
    document = Document("d", (Sentence((Word("a"), Word("b"), Word("c"))),), mentions)
    assert brief(targets(document, "coref")) == [("1", (0, 1), (1, 2)), ("1", (0, 1), (2, 3)), ("0", (1, 2), (2, 3))]


def test_a_mention_across_two_sentences_is_paired_only_across_sentences() -> None:
    mentions = (Mention("1", 0, 3), Mention("1", 1, 2))
    document = Document("d", (Sentence((Word("a"), Word("b"))), Sentence((Word("c"),))), mentions)
    assert targets(document, "coref") == []
    assert brief(targets(document, "coref", Choices(apart=1))) == [("1", (0, 3), (1, 2))]


def test_entities_are_typed_mentions_unless_edges_annotate_entities() -> None:
    typed = [("person", (0, 1), None), ("animal", (2, 4), None), ("animal", (5, 6), None), ("person", (8, 9), None)]
    assert brief(targets(STORY, "entities")) == typed
    given = Edge("entities", ("PER",), (8, 9))
    assert targets(replace(STORY, edges=(given, Edge("srl", ("ARG0",), (1, 2), (0, 1)))), "entities") == [given]


def test_edges_define_tasks_of_any_name() -> None:
    late, early = Edge("mine", ("x", "y"), (3, 4)), Edge("mine", (), (0, 2), (1, 3))
    document = replace(STORY, edges=(late, early, Edge("other", ("z",), (0, 1))))
    assert targets(document, "mine") == [early, late]
    assert targets(document, "srl") == []
    assert tasks_in([document, STORY]) == {
        "pos": 10,
        "constituents": 10,
        "deps": 10,
        "entities": 8,
        "coref": 4,
        "mine": 2,
        "other": 1,
    }
    assert list(tasks_in([document])) == ["pos", "constituents", "deps", "entities", "coref", "mine", "other"]


@pytest.mark.parametrize(
    ("task", "label", "counts"),
    [
        ("coref", "1", True),
        ("coref", "0", False),
        ("srl", "ARG0", True),
        ("srl", "ARGA", True),
        ("srl", "ARGM-TMP", True),
        ("srl", "R-ARG0", False),
        ("srl", "C-ARGM-TMP", False),
        ("srl", "C-V", False),
        ("relations", "Other", False),
        ("relations", "no_relation", False),
        ("relations", "Cause-Effect(e1,e2)", True),
        ("pos", "NOUN", True),
        ("mine", "Other", True),
    ],
)
def test_negative_labels_references_and_continuations_are_not_scored(task: str, label: str, counts: bool) -> None:
    assert counts_in_score(task, label) is counts


def test_edges_inside_a_text_are_renumbered_by_the_words_of_the_text() -> None:
    edges = [Edge("t", ("a",), (2, 4), (5, 6)), Edge("t", ("b",), (5, 7)), Edge("t", ("c",), (5, 6), (1, 3)), Edge("t", ("d",), (0, 3))]
    assert inside(edges, range(2, 7)) == [Edge("t", ("a",), (0, 2), (3, 4)), Edge("t", ("b",), (3, 5))]
    assert inside(edges, [1, 2, 5]) == [Edge("t", ("c",), (2, 3), (0, 2))]
    assert inside(edges, []) == []
    assert inside([Edge("t", ("empty",), (2, 2))], range(7)) == []


@pytest.mark.parametrize(("choice", "problem"), [({"tags": "x"}, "unknown tags 'x'. Use one of auto"), ({"apart": -1}, "-1 sentences")])
def test_unknown_choices_are_refused(choice: dict[str, Any], problem: str) -> None:
    with pytest.raises(HeadscopeError, match=problem):
        Choices(**choice)
