"""Highlighted words and links: how they are specified, and where they are in a grid."""

from __future__ import annotations

import re

import numpy as np
import pytest

from headscope.core.document import Document, Mention, Sentence, Word
from headscope.core.heads import HeadId
from headscope.encoding.texts import Encoded
from headscope.encoding.tokenizer import Tokenizer
from headscope.engine.typed_text import typed
from headscope.errors import RunError
from headscope.gallery.grids import grid
from headscope.gallery.highlight import Highlight, find_highlight, find_pairs, find_relation, find_word
from headscope.models.model import Model
from headscope.models.sites import find_sites
from helpers.architectures import build
from helpers.families import FAMILIES

TEXT = "The cat sat on the mat the"


def tiny(name: str, tokenizer: str) -> Model:
    tokens = FAMILIES[tokenizer]()
    network = build(name, vocabulary=len(tokens))
    return Model(name, network, Tokenizer(tokens), *find_sites(network))


@pytest.fixture(scope="module")
def bert() -> Model:
    return tiny("bert", "wordpiece")


@pytest.fixture(scope="module")
def text(bert: Model) -> Encoded:
    return typed(bert, TEXT).encoded


@pytest.fixture(scope="module")
def tree(bert: Model) -> Encoded:
    """The sentence "She saw the mat": "saw" has a subject and an object; "She" and "the mat" are one entity."""
    words = [("She", 2, "nsubj"), ("saw", 0, "root"), ("the", 4, "det"), ("mat", 2, "obj:lvc")]
    sentence = Sentence(tuple(Word(form, head=head, relation=relation) for form, head, relation in words))
    return typed(bert, Document("d", (sentence,), (Mention("e", 0, 1), Mention("e", 2, 4)))).encoded


@pytest.mark.parametrize(("name", "place"), [("cat", 1), ("CAT", 1), ("The", 0), ("the:1", 4), ("the:2", 6), ("THE:3", 6), (" mat ", 5)])
def test_a_word_is_found_by_its_form_and_number(text: Encoded, name: str, place: int) -> None:
    assert find_word(name, text) == place


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("dog", "'dog' is not a word of the text. Its words are: The cat sat on the mat the"),
        ("the", "'the' is in the text 2 times. Write which one: the:1 or the:2"),
        ("the:3", "there is no 'the:3': the text has 'the' 2 times. Use the:1 or the:2"),
        ("cat:2", "there is no 'cat:2': the text has 'cat' once. Use cat:1"),
        ("", "'' is not a word of the text"),
    ],
)
def test_an_unknown_or_ambiguous_word_is_refused(text: Encoded, name: str, says: str) -> None:
    with pytest.raises(RunError, match=re.escape(says)):
        find_word(name, text)


def test_pairs_and_single_words_are_found_and_invalid_pairs_are_refused(text: Encoded) -> None:
    assert find_pairs(["cat→mat", "sat->the:2"], text, text).pairs == {(1, 5), (2, 6)}
    assert find_pairs(["cat"], text, text).pairs == {(1, None), (None, 1)}
    for wrong in ("→mat", "cat->", "cat→sat→mat"):
        with pytest.raises(RunError, match="is not a pair of words"):
            find_pairs([wrong], text, text)


def test_words_of_cross_attention_are_found_in_two_texts() -> None:
    t5 = tiny("t5", "t5")
    encoded = typed(t5, "The cat sat", "A dog").encoded
    source, target = encoded, encoded.target
    assert target is not None
    assert find_pairs(["dog→cat", "sat", "A"], target, source).pairs == {(1, 1), (None, 2), (0, None)}
    with pytest.raises(RunError, match="the head attends from one text to another"):
        find_highlight([], "obj", target, source)


def test_highlighted_links_rows_and_columns_are_marked_in_a_grid(text: Encoded) -> None:
    shown = grid(text, HeadId("encoder", 0, 0), np.zeros((len(text), len(text)), dtype=np.float32))  # [CLS], seven words, [SEP]
    red = Highlight(frozenset({(1, 5), (2, None)}))
    expected = np.zeros((9, 9), dtype=bool)
    expected[2, 6] = True  # from `cat` to `mat`
    expected[3] = True  # from `sat` to all words
    assert (red.links(shown) == expected).all()
    rows, columns = red.words(shown)
    assert (np.flatnonzero(rows).tolist(), np.flatnonzero(columns).tolist()) == ([2, 3], [6])
    assert not Highlight().links(shown).any()
    assert not np.concatenate(Highlight().words(shown)).any()


def test_relations_are_found_in_an_annotated_sentence(tree: Encoded, text: Encoded) -> None:
    assert find_relation("obj", tree).pairs == {(3, 1)}
    assert find_relation("head-to-dep obj", tree).pairs == {(1, 3)}
    assert find_relation("coreferent", tree).pairs == {(0, 2), (0, 3), (2, 0), (3, 0)}
    assert find_highlight(["saw→She"], "nsubj", tree, tree).pairs == {(1, 0), (0, 1)}
    for name, side, says in (
        ("iobj", tree, "the text has no iobj. It has det, nsubj, obj:lvc"),
        ("to obj", tree, "direction 'to' is unknown. Use one of dep-to-head, head-to-dep"),
        ("obj", text, "the text has no obj. Use an annotated sentence: headscope view FILE --sentence 3"),
        ("coreferent", text, "the text has no coreferent"),
    ):
        with pytest.raises(RunError, match=re.escape(says)):
            find_relation(name, side)


def test_a_name_that_is_not_a_word_may_be_a_relation(tree: Encoded, text: Encoded) -> None:
    """A name that is not a word of the text may be a relation of the text."""
    assert find_highlight(["obj"], None, tree, tree) == find_relation("obj", tree)
    assert find_highlight(["coreferent"], None, tree, tree) == find_relation("coreferent", tree)
    assert find_highlight(["mat", "nsubj"], None, tree, tree).pairs == {(3, None), (None, 3), (0, 1)}
    with pytest.raises(RunError, match="'obj' is not a word of the text"):
        find_highlight(["obj"], None, text, text)
