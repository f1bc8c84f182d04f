"""Pairs of nouns and pronouns: by hand in a small document, and their properties in real documents."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from headscope.core.document import Document, Mention, Sentence, Word
from headscope.corpora import read
from headscope.studies.flow.items import STRATA, Context, Passage, alternating, draw, headed, is_noun, is_pronoun, lowest


def words(text: str) -> Sentence:
    """A sentence of words with Penn tags, written as `cat/NN`."""
    return Sentence(tuple(Word(form, xpos=tag) for form, tag in (item.split("/") for item in text.split())))


def story() -> Document:
    """A document of two sentences with seven mentions of four entities. The comments have the places of the words."""
    first = words("the/DT door/NN of/IN the/DT kitchen/NN opened/VBD ./.")  # 0 to 6
    second = words("a/DT dog/NN saw/VBD its/PRP$ owner/NN and/CC he/PRP saw/VBD it/PRP ./.")  # 7 to 16
    mentions = (
        Mention("door", 0, 5),
        Mention("kitchen", 3, 5),
        Mention("dog", 7, 9),
        Mention("owner", 10, 12),
        Mention("dog", 10, 11),
        Mention("owner", 13, 14),
        Mention("dog", 15, 16),
    )
    return Document("story", (first, second), mentions)


def pairs_as_words(passages: list[Passage]) -> list[tuple[str, str, bool, int]]:
    return [
        (document.words[pair.noun].form, document.words[pair.pronoun].form, pair.same, pair.distance)
        for document, pairs in ((passage.document, passage.pairs) for passage in passages)
        for pair in pairs
    ]


def test_nouns_and_pronouns_are_found_by_universal_and_penn_tags() -> None:
    nouns = [
        Word("cat", xpos="NN"),
        Word("cats", upos="NOUN"),
        Word("cats", upos="NOUN", xpos="NNS"),
        Word("Katze", upos="NOUN", xpos="NN"),
    ]
    others = [Word("Ann", xpos="NNP"), Word("Ann", upos="PROPN", xpos="NNP"), Word("one", upos="PRON", xpos="NN"), Word("x")]
    assert all(map(is_noun, nouns))
    assert not any(map(is_noun, others))
    pronouns = [Word("it", xpos="PRP"), Word("its", xpos="PRP$"), Word("es", upos="PRON", xpos="PPER"), Word("it", upos="PRON")]
    others = [Word("who", upos="PRON", xpos="WP"), Word("this", upos="PRON", xpos="DT"), Word("who", xpos="WP"), Word("x")]
    assert all(map(is_pronoun, pronouns))
    assert not any(map(is_pronoun, others))


def test_words_have_their_lowest_mention_and_mentions_their_head_word() -> None:
    found = lowest(story())
    assert [mention.entity if mention else None for mention in found[:7]] == ["door", "door", "door", "kitchen", "kitchen", None, None]
    assert [mention.entity if mention else None for mention in found[9:12]] == [None, "dog", "owner"]
    heads = {place: mention.entity for place, mention in enumerate(headed(story())) if mention}
    assert heads == {1: "door", 4: "kitchen", 8: "dog", 10: "dog", 11: "owner", 13: "owner", 15: "dog"}


def test_draw_takes_all_pairs_of_one_entity_and_as_many_of_two() -> None:
    """Three pairs of one entity, and as many of two. Between noun and pronoun is a word that is in neither mention."""
    same = [("dog", "its", True, 2), ("owner", "he", True, 2), ("dog", "it", True, 7)]
    different = {
        ("door", "its", False, 9), ("kitchen", "its", False, 6), ("door", "he", False, 12), ("kitchen", "he", False, 9),
        ("dog", "he", False, 5), ("door", "it", False, 14), ("kitchen", "it", False, 11), ("owner", "it", False, 4),
    }  # fmt: skip
    found = pairs_as_words(draw([story()], 100, strata=()))
    assert sorted(row for row in found if row[2]) == sorted(same)
    assert len(found) == 6
    assert {row for row in found if not row[2]} <= different
    everything = {row for seed in range(40) for row in pairs_as_words(draw([story()], 100, strata=(), seed=seed)) if not row[2]}
    assert everything == different


def test_context_is_the_whole_sentences_that_fit_the_limit() -> None:
    """With a limit of ten words the context is the second sentence alone. With a limit of nine it does not fit, and its
    pairs are omitted. A word may cost more than 1.
    """
    for context in (Context(10), Context(20, cost=lambda word: 2), Context(16)):
        (passage,) = draw([story()], 100, context, strata=())
        assert len(passage.document.words) == 10
        assert {row[0] for row in pairs_as_words([passage])} == {"dog", "owner"}
        assert passage.document.mentions[0] == Mention("dog", 0, 2)
    assert len(draw([story()], 100, Context(17))[0].document.words) == 17
    assert draw([story()], 100, Context(9)) == []


def test_alternating_pairs_follow_the_rules_of_the_released_list() -> None:
    """Pairs are within sentences, in order, and alternate between one entity and two. The noun comes before the
    pronoun, so `owner its` is no pair.
    """
    expected = [("dog", "its", True, 2), ("dog", "he", False, 5), ("owner", "he", True, 2), ("owner", "it", False, 4)]
    assert pairs_as_words(alternating([story()], 4)) == expected
    found = pairs_as_words(alternating([story(), story()], 3))
    assert Counter(row[2] for row in found) == {True: 2, False: 1}
    assert len(pairs_as_words(alternating([story()], 100))) == 4  # two entities have only the pairs `dog he` and `owner it`
    adjacent = Document("near", (words("dog/NN it/PRP ran/VBD"),), (Mention("a", 0, 1), Mention("a", 1, 2)))
    assert alternating([adjacent], 10) == []


@pytest.mark.parametrize("match", [False, True])
def test_pairs_of_a_real_corpus_are_balanced_and_fit_their_context(data: Path, match: bool) -> None:
    documents = [document for _, document in zip(range(14), read(data / "coref/ontogum-dev.v4_gold_conll.xz"), strict=False)]
    passages = draw(documents, 200, Context(100), match=match, seed=1)
    pairs = [pair for passage in passages for pair in passage.pairs]
    assert len(pairs) == len({(id(passage), pair) for passage in passages for pair in passage.pairs}) == 200
    assert sum(pair.same for pair in pairs) == 100
    boxes = Counter((int(np.searchsorted(STRATA, pair.distance, "right")), pair.same) for pair in pairs)
    for number in range(len(STRATA) + 1):
        assert boxes[number, True] == boxes[number, False]
    assert min(boxes[number, True] for number in range(4)) >= 20
    if match:
        distances = [sorted(pair.distance for pair in pairs if pair.same == same) for same in (True, False)]
        assert distances[0] == pytest.approx(distances[1], abs=8)
        assert np.mean(distances[0]) == pytest.approx(np.mean(distances[1]), abs=0.5)
    whole = {document.id: document for document in documents}
    for passage in passages:
        part, part_words = passage.document, passage.document.words
        assert len(part_words) <= 100
        assert part.sentences[-1] in whole[part.id].sentences
        entity_of = {(mention.start, mention.end): mention.entity for mention in part.mentions}
        for noun, pronoun, same in passage.pairs:
            assert noun + 1 < pronoun
            assert part_words[noun].xpos in ("NN", "NNS")
            assert part_words[pronoun].xpos in ("PRP", "PRP$")
            assert pronoun >= len(part_words) - len(part.sentences[-1])
            nouns = {entity for (start, end), entity in entity_of.items() if start <= noun < end <= pronoun}
            assert not same or entity_of[pronoun, pronoun + 1] in nouns
    assert passages == draw(documents, 200, Context(100), match=match, seed=1)
    assert passages != draw(documents, 200, Context(100), match=match, seed=2)


def test_the_sampler_has_the_default_number_of_pairs() -> None:
    passages = draw(read("sampler"))
    assert Counter(pair.same for passage in passages for pair in passage.pairs) == {True: 250, False: 250}
    assert len({passage.document.id for passage in passages}) == 19
    few = Counter(pair.same for passage in alternating(read("sampler")) for pair in passage.pairs)
    assert few[True] == few[False] < 250
