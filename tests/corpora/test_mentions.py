from __future__ import annotations

import pytest

from headscope.core.document import Document, Mention, Sentence, Word
from headscope.corpora.resolution.mentions import antecedents, governors, head_word, kind_of

# Ann sleeps . / the old " dogs " of hers
WORDS = (
    Sentence((Word("Ann", upos="PROPN", head=2), Word("sleeps", upos="VERB", head=0), Word(".", upos="PUNCT", head=2))),
    Sentence(
        (
            Word("the", upos="DET", head=4),
            Word("old", upos="ADJ", head=4),
            Word('"', upos="PUNCT", head=0),
            Word("dogs", upos="NOUN", head=0),
            Word("of", upos="ADP", head=6),
            Word("hers", upos="PRON", head=4),
        )
    ),
)
DOCUMENT = Document("d", WORDS)


def test_governors_are_numbered_through_the_document() -> None:
    assert governors(DOCUMENT) == [1, -1, 1, 6, 6, -1, -1, 8, 6]
    assert governors(Document("d", (Sentence((Word("a"),)),))) == [None]


@pytest.mark.parametrize(("start", "end", "head"), [(0, 1, 0), (3, 9, 6), (4, 7, 6), (7, 9, 8), (3, 5, 3), (0, 3, 1)])
def test_the_head_is_the_first_nominal_word_governed_from_outside(start: int, end: int, head: int) -> None:
    assert head_word(Mention("1", start, end), DOCUMENT.words, governors(DOCUMENT)) == head


def test_without_a_tree_there_is_no_head() -> None:
    assert head_word(Mention("1", 0, 1), (Word("a"),), [None]) is None


@pytest.mark.parametrize(
    ("upos", "xpos", "kind"),
    [
        ("PRON", "DT", "pronoun"),
        ("PROPN", None, "name"),
        ("VERB", "NNP", "nominal"),
        (None, "PRP$", "pronoun"),
        (None, "NNPS", "name"),
        (None, "CD", "nominal"),
        (None, None, None),
    ],
)
def test_the_tags_determine_the_kind_of_a_word(upos: str | None, xpos: str | None, kind: str | None) -> None:
    assert kind_of(Word("x", upos=upos, xpos=xpos)) == kind


def test_the_antecedent_is_the_nearest_preceding_mention() -> None:
    a, b, inner, outer, last = Mention("1", 0, 2), Mention("2", 1, 2), Mention("1", 4, 5), Mention("1", 4, 8), Mention("2", 9, 10)
    assert list(antecedents([last, outer, b, inner, a])) == [(a, None), (b, None), (inner, a), (outer, inner), (last, b)]
