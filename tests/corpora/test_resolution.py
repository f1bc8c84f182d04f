"""Kinds and attributes of mentions, and each rule that picks antecedents."""

from __future__ import annotations

from typing import Any

import pytest

from headscope.core.annotation import Annotated
from headscope.core.document import Word
from headscope.corpora.resolution.expressions import (
    SIEVES,
    Expression,
    agrees,
    anything,
    expressions,
    head_match,
    nearest,
    same_head,
    same_wording,
    sieve,
)
from headscope.corpora.resolution.mentions import (
    ANIMATE,
    FEMININE,
    FIRST,
    MASCULINE,
    NEUTER,
    PLURAL,
    SECOND,
    SINGULAR,
    THIRD,
    Attributes,
    NameLists,
    compatible,
    kind,
    pronoun,
)
from helpers.marked import document


def mentions(text: str, names: NameLists | None = None, **options: Any) -> list[Expression]:
    one = document(text)
    return expressions(Annotated(one).select(range(len(one.words))), names=names or NameLists(), **options)


@pytest.mark.parametrize(
    ("word", "coordinated", "expected"),
    [
        (Word("she", xpos="PRP"), False, "pronoun"),
        (Word("her", xpos="PRP$"), False, "pronoun"),
        (Word("this", xpos="DT"), False, "nominal"),
        (Word("this", upos="PRON", xpos="DT"), False, "pronoun"),
        (Word("Ann", xpos="NNP"), False, "proper"),
        (Word("Alps", xpos="NNPS"), False, "proper"),
        (Word("dog", xpos="NN"), False, "nominal"),
        (Word("grew", xpos="VBD"), False, "nominal"),
        (Word("Ann", xpos="NNP"), True, "nominal"),
        (Word("she", xpos="PRP"), True, "nominal"),
        (Word("Her"), False, "pronoun"),  # without a tag the form decides
        (Word("US"), False, "proper"),
        (Word("I"), False, "pronoun"),
        (Word("Ann"), False, "proper"),
        (Word("developer"), False, "nominal"),
    ],
)
def test_the_tag_form_and_coordination_determine_the_kind(word: Word, coordinated: bool, expected: str) -> None:
    assert kind([word], 0, coordinated) == expected


@pytest.mark.parametrize(("form", "expected"), [("I", "proper"), ("it", "nominal")])
def test_a_pronoun_without_a_tag_is_a_single_word(form: str, expected: str) -> None:
    assert kind([Word("Edward"), Word(form)], 1, False) == expected
    assert kind([Word("Edward"), Word(form, xpos="PRP")], 1, False) == "pronoun"  # a tag decides at any length


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("Me", Attributes(SINGULAR, None, FIRST)),
        ("ourselves", Attributes(PLURAL, None, FIRST)),
        ("you", Attributes(None, None, SECOND)),
        ("yourself", Attributes(SINGULAR, None, SECOND)),
        ("yourselves", Attributes(PLURAL, None, SECOND)),
        ("His", Attributes(SINGULAR, MASCULINE, THIRD)),
        ("hers", Attributes(SINGULAR, FEMININE, THIRD)),
        ("its", Attributes(SINGULAR, NEUTER, THIRD)),
        ("them", Attributes(PLURAL, None, THIRD)),
        ("dog", None),
        ("US", None),
    ],
)
def test_the_form_determines_the_attributes_of_a_pronoun(form: str, expected: Attributes | None) -> None:
    assert pronoun(form) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[1 the/DT dog/NN ]", (SINGULAR, None, THIRD)),
        ("[1 the/DT dogs/NNS ]", (PLURAL, None, THIRD)),
        ("[1 the/DT Alps/NNPS ]", (PLURAL, None, THIRD)),
        ("[1 the dog ]", (None, None, THIRD)),  # without a tag the number is unknown
        ("[1:organization the/DT firm/NN ]", (None, None, THIRD)),
        ("[1:ORG Shell/NNP ]", (None, None, THIRD)),
        ("[1:person Kim/NNP ]", (SINGULAR, ANIMATE, THIRD)),
        ("[1:PERSON Mr./NNP Kim/NNP ]", (SINGULAR, MASCULINE, THIRD)),
        ("[1 Mrs/NNP Kim/NNP ]", (SINGULAR, FEMININE, THIRD)),
        ("[1 Queen/NNP Anne/NNP 's/POS speech/NN ]", (SINGULAR, None, THIRD)),  # the title belongs to Anne
        ("[1 his/PRP$ mother/NN ]", (SINGULAR, FEMININE, THIRD)),
        ("[1 the/DT boys/NNS ]", (PLURAL, MASCULINE, THIRD)),
        ("[1 his/PRP$ mother/NN 's/POS dog/NN ]", (SINGULAR, None, THIRD)),
        ("[1 Mr./NNP and/CC Mrs./NNP Kim/NNP ]", (PLURAL, None, THIRD)),
        ("[1 you/PRP and/CC me/PRP ]", (PLURAL, None, None)),
        ("[1 us/PRP ]", (PLURAL, None, FIRST)),
        ("[1 the/DT US/NNP ]", (SINGULAR, None, THIRD)),
        ("[1 who/WP ]", (SINGULAR, None, THIRD)),
    ],
)
def test_the_words_determine_the_attributes_of_a_mention(text: str, expected: tuple[frozenset[str] | None, ...]) -> None:
    (found,) = mentions(text)
    assert found.attributes == expected


def test_name_lists_of_the_user_determine_the_gender() -> None:
    names = NameLists(masculine=frozenset({"kim"}), feminine=frozenset({"alex", "kim"}))
    for text, gender in (
        ("[1 Alex/NNP Smith/NNP ]", FEMININE),
        ("[1 Kim/NNP ]", ANIMATE),
        ("[1 Smith/NNP ]", None),
        ("[1 alex/NN ]", None),
    ):
        assert mentions(text, names)[0].attributes.gender == gender


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (Attributes(), Attributes(SINGULAR, MASCULINE, THIRD), True),
        (Attributes(SINGULAR), Attributes(PLURAL), False),
        (Attributes(None, ANIMATE), Attributes(None, FEMININE), True),
        (Attributes(None, ANIMATE), Attributes(None, NEUTER), False),
        (Attributes(SINGULAR, FEMININE, THIRD), Attributes(SINGULAR, FEMININE, FIRST), False),
    ],
)
def test_attributes_are_compatible_if_they_do_not_contradict(one: Attributes, other: Attributes, expected: bool) -> None:
    assert compatible(one, other) == compatible(other, one) == expected


def test_mentions_have_the_right_order_wording_and_head() -> None:
    text = "[1 [2 The/DT Dog/NN ] 's/POS tail/NN ] and/CC [2 it/PRP ]"
    found = mentions(text)
    assert [(one.entity, one.start, one.end, one.wording, one.head_form) for one in found] == [
        ("2", 0, 2, "the dog", "dog"),
        ("1", 0, 4, "the dog 's tail", "tail"),
        ("2", 5, 6, "it", "it"),
    ]
    assert found[0].precedes(found[1])
    assert not found[1].precedes(found[0])
    assert [one.entity for one in mentions(text, singletons=False)] == ["2", "2"]
    assert [one.wording for one in mentions(text, strip_determiner=True)] == ["dog", "dog 's tail", "it"]
    assert mentions("[1 This/DT ]", strip_determiner=True)[0].wording == "this"  # the only word is kept


def test_nearest_compares_heads_and_prefers_the_later_start() -> None:
    """The head of both mentions is `tail`; the inner mention starts later."""
    outer, inner, it = mentions("a/DT [1 dog/NN 's/POS [2 old/JJ tail/NN ] ] ,/, [1 it/PRP ]")
    assert (outer.head, inner.head) == (4, 4)
    assert nearest(it, [outer, inner]) is inner
    assert nearest(it, []) is None


def test_nearest_measures_the_distance_between_heads() -> None:
    """The head of the long mention is farther away. A candidate after the mention is compared in the same way."""
    first, second, third = mentions("[1 dog/NN of/IN the/DT man/NN ] [2 her/PRP$ ] and/CC [3 cat/NN ]")
    assert nearest(second, [first, third]) is third


def test_head_match_returns_a_mention_with_the_same_head() -> None:
    dog, cat, other = mentions("[1 The/DT Dog/NN ] [2 a/DT cat/NN ] [1 that/DT dog/NN ]")
    assert head_match(other, [dog, cat]) is dog
    assert head_match(cat, [dog]) is None
    assert head_match(cat, [dog], fallback=True) is dog


def test_sieves_are_applied_in_order() -> None:
    """A distant exact match precedes a head match, then agreement, then any other candidate."""
    far, match, fits, clash, mention = mentions(
        "[1 the/DT old/JJ dog/NN ] [2 a/DT dog/NN ] [3 a/DT cat/NN ] [4 they/PRP ] [5 the/DT old/JJ dog/NN ]"
    )
    candidates = [far, match, fits, clash]
    for expected in (far, match, fits, clash):
        assert sieve(mention, candidates) is expected
        candidates.remove(expected)
    assert sieve(mention, candidates) is None


def test_each_sieve_accepts_the_expected_pairs() -> None:
    dog, same, dogs, she = mentions("[1 the/DT dog/NN ] [2 The/DT Dog/NN ] [3 old/JJ dogs/NNS ] [4 she/PRP ]")
    assert list(SIEVES) == [same_wording, same_head, agrees, anything]
    assert [passes(dog, same) for passes in SIEVES] == [True, True, True, True]
    assert [passes(dog, dogs) for passes in SIEVES] == [False, False, False, True]
    assert [passes(dog, she) for passes in SIEVES] == [False, False, True, True]
    assert not agrees(dogs, she)
