"""Trees of other sentences as a control: one-to-one within a length, never that of the sentence itself, and independent
of the order of documents.
"""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import headscope as hs
from headscope.core.annotation import NONE, ROOT, Annotated
from headscope.core.document import Document, Sentence, Word
from headscope.core.numbering import Numbering
from headscope.core.trees import TAGS, Tag, TreeArrays
from headscope.corpora.permuted import DRAWS, Trees


def chain(name: str, *heads: int) -> Sentence:
    return Sentence(tuple(Word(f"{name}{i}", head=head, relation="root" if head == 0 else "dep") for i, head in enumerate(heads)))


DOCUMENTS = [
    Document("a", (chain("x", 0, 1, 2), chain("y", 2, 0))),
    Document("b", (chain("z", 2, 3, 0), Sentence((Word("bare"), Word("words"))), chain("w", 0))),
]


def test_partners_are_other_sentences_of_the_same_length() -> None:
    trees = Trees(DOCUMENTS)
    (first, second), (third, bare, alone) = (trees.partners(document) for document in DOCUMENTS)
    assert first.heads.tolist() == [[1, 2, ROOT]] * DRAWS
    assert third.heads.tolist() == [[ROOT, 0, 1]] * DRAWS
    assert len(bare) == 0  # a sentence without a tree gets none
    assert second.heads.tolist() == [[ROOT, NONE]] * DRAWS  # the only tree of two words gets that of one word
    assert alone.heads.tolist() == [[NONE]] * DRAWS  # the first of two words; its governor is cut off


def test_every_tree_is_given_to_exactly_one_other_sentence_in_every_draw() -> None:
    """40 sentences of two words. The relation of the second word identifies the sentence."""
    many = [Document(str(n), (Sentence((Word("a", head=0, relation="root"), Word("b", head=1, relation=str(n)))),)) for n in range(40)]
    given = [[TAGS.items[number].relation for number in Trees(many, seed=3).partners(document)[0].tags[:, 1]] for document in many]
    draws = list(zip(*given, strict=True))
    assert len(draws) == len(set(draws)) == DRAWS
    for draw in draws:
        assert sorted(map(int, filter(None, draw))) == list(range(40))
        assert all(other != str(number) for number, other in enumerate(draw))
    assert (Trees(many, seed=4).partners(many[0])[0].tags != Trees(many, seed=3).partners(many[0])[0].tags).any()


def test_the_only_tree_of_a_length_is_permuted_with_those_of_near_lengths() -> None:
    """10, 11 and 12 words are near enough to be permuted together. 20 is near to no other length."""
    documents = [Document(str(size), (chain("x", 0, *range(1, size)),)) for size in (10, 11, 12, 20)]
    trees = Trees(documents)
    for document, others in zip(documents, ({11, 12}, {10, 12}, {10, 11}, set()), strict=True):
        (draws,) = trees.partners(document)
        size = len(document.words)
        assert draws.size == size
        filled = set((draws.tags > 0).sum(1).tolist())
        assert filled <= {min(size, other) for other in others}
    assert [len(draws) for draws in trees.partners(documents[3])] == [0]


def test_the_order_of_documents_does_not_matter() -> None:
    documents = list(hs.read("sampler"))
    trees, backwards = Trees(documents), Trees(reversed(documents))
    for document in documents:
        for one, other in zip(trees.partners(document), backwards.partners(document), strict=True):
            assert_array_equal(one.tags, other.tags)
            assert_array_equal(one.heads, other.heads)


def test_a_selection_of_words_gets_the_same_part_of_each_other_tree() -> None:
    annotation = Annotated(DOCUMENTS[0], Trees(DOCUMENTS).partners(DOCUMENTS[0])).select([1, 2, 3, 4])
    assert annotation.heads == (NONE, 0, 3, ROOT)  # the real trees, without their first word
    assert annotation.trees.heads.tolist() == [list(annotation.heads), *[[1, ROOT, ROOT, NONE]] * DRAWS]
    assert [TAGS.items[number].relation for number in annotation.trees.tags[1]] == ["dep", "root", "root", None]
    assert len(Annotated(DOCUMENTS[0]).select([0]).trees) == 1
    silent = TreeArrays.silent(0, 3), TreeArrays.silent(0, 2), TreeArrays.of([chain("w", 0).words], 1)
    bare = Annotated(DOCUMENTS[1], silent).select([4, 5])  # only one sentence has a partner
    assert bare.trees.heads[1:].tolist() == [[NONE, ROOT]]


def test_pickled_trees_keep_their_tags_in_another_process() -> None:
    trees = TreeArrays.of([DOCUMENTS[0].sentences[0].words, [Word("a", upos="X", head=0, relation="new in this test"), None, None]], 3)
    packed = pickle.dumps(trees)
    with pytest.MonkeyPatch.context() as patch:
        elsewhere = Numbering(Tag(), Tag("met before"))
        patch.setattr("headscope.core.trees.TAGS", elsewhere)
        received = pickle.loads(packed)
    assert [[elsewhere.items[number] for number in row] for row in received.tags] == [
        [TAGS.items[number] for number in row] for row in trees.tags
    ]
    assert_array_equal(received.heads, trees.heads)


def test_the_control_is_centred_and_its_spread_shrinks_with_the_corpus() -> None:
    """The second of three words depends on the first or the third. `exact` is the share of equal sentence pairs."""

    def spread(size: int) -> tuple[float, float, float]:
        governors = [1 if number % 4 else 3 for number in range(size)]
        documents = [Document(f"d{number}", (chain("x", 0, head, 1),)) for number, head in enumerate(governors)]
        values = []
        for seed in range(12):
            trees = Trees(documents, seed)
            pairs = [(head, trees.partners(document)[0]) for head, document in zip(governors, documents, strict=True)]
            values += [np.mean([draw.heads[k, 1] == head - 1 for head, draw in pairs]) for k in range(DRAWS)]
        rare = size // 4
        exact = (rare * (rare - 1) + (size - rare) * (size - rare - 1)) / (size * (size - 1))
        return float(np.mean(values)), float(np.std(values, ddof=1)), exact

    (small_mean, small, expected), (large_mean, large, limit) = spread(40), spread(360)
    assert abs(small_mean - expected) < 3.5 * small / 96**0.5
    assert abs(large_mean - limit) < 3.5 * large / 96**0.5
    assert 2.2 < small / large < 4.2  # nine times as many sentences: 3 is expected
