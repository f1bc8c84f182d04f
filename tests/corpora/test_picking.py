"""Picking one sentence of a corpus by id or number, and a part of a document with its mentions."""

from __future__ import annotations

import pytest

from headscope.core.document import Document, Mention, Sentence, Word
from headscope.corpora import Corpus
from headscope.corpora.corpus import pick_sentence
from headscope.errors import HeadscopeError


def sentence(id: str | None, *forms: str) -> Sentence:
    return Sentence(tuple(map(Word, forms)), id)


FIRST = Document("a", (sentence("a-1", "one", "two"), sentence("3", "three")), (Mention("e", 0, 1), Mention("e", 1, 3), Mention("f", 2, 3)))
CORPUS = Corpus.of([FIRST, Document("b", (sentence("b-1", "four"),))])


def test_a_part_has_the_mentions_that_lie_entirely_in_it() -> None:
    assert FIRST.part(1, 2) == Document("a", FIRST.sentences[1:], (Mention("f", 0, 1),))
    assert FIRST.part(0, 2).mentions == FIRST.mentions


@pytest.mark.parametrize(("name", "form"), [("a-1", "one"), ("2", "three"), ("b-1", "four"), ("3", "three")])
def test_a_name_is_an_id_if_there_is_one_and_else_a_number(name: str, form: str) -> None:
    assert pick_sentence(CORPUS, name).words[0].form == form


def test_a_missing_sentence_is_refused() -> None:
    with pytest.raises(HeadscopeError, match=r"has no sentence '4'. Use its id \(# sent_id\) or a number from 1 to 3"):
        pick_sentence(CORPUS, "4")
