"""Distances, depths and edges of trees, compared with numbers worked out by hand and with plain loops over graphs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headscope.core.document import Document, Sentence, Word
from headscope.core.tally import Tally
from headscope.encoding.texts import Encoded, Encoder
from headscope.encoding.tokenizer import Tokenizer
from headscope.studies.structural_probe.trees import ancestors, smallest_tree, tree_of
from helpers.families import FAMILIES

TOKENIZER = Tokenizer(FAMILIES["wordpiece"]())


def sentence(*rows: tuple[str, int, str, str]) -> Encoded:
    """A sentence from forms, heads (counted from 1; 0 is the root), UPOS tags and XPOS tags."""
    words = tuple(Word(form, upos=upos, xpos=xpos, head=head, relation="dep") for form, head, upos, xpos in rows)
    (text,) = Encoder(TOKENIZER).texts([Document("d", (Sentence(words),))], Tally())
    return text


# "the keys are on ." with the arcs the <- keys <- are -> on; the full stop depends on "are"
CABINET = (
    ("the", 2, "DET", "DT"),
    ("keys", 3, "NOUN", "NNS"),
    ("are", 0, "AUX", "VBP"),
    ("on", 3, "ADP", "IN"),
    (".", 3, "PUNCT", "."),
)


def test_distances_depths_and_edges_by_hand() -> None:
    tree = tree_of(sentence(*CABINET))
    assert tree is not None
    assert tree.depths.tolist() == [2, 1, 0, 1, 1]
    assert tree.distances.tolist() == [[0, 1, 2, 3, 3], [1, 0, 1, 2, 2], [2, 1, 0, 1, 1], [3, 2, 1, 0, 2], [3, 2, 1, 2, 0]]
    assert tree.scored.tolist() == [True, True, True, True, False]
    assert set(tree.edges) == {(0, 1), (1, 2), (2, 3)}
    assert tree.root == 2


def test_punctuation_is_defined_by_tag_or_as_in_the_released_code() -> None:
    hyphen = (*CABINET, ("-", 3, "PUNCT", "HYPH"))
    by_tag, released = tree_of(sentence(*hyphen), "tag"), tree_of(sentence(*hyphen), "ptb")
    assert by_tag is not None
    assert released is not None
    assert by_tag.scored.tolist() == [True] * 4 + [False] * 2
    assert released.scored.tolist() == [True] * 4 + [False, True]
    assert len(released.edges) == 4


def test_words_that_depend_on_punctuation_are_joined_to_the_tree() -> None:
    tree = tree_of(sentence(("a", 3, "X", "X"), ("b", 3, "X", "X"), (",", 4, "PUNCT", ","), ("c", 0, "X", "X")))
    assert tree is not None
    assert tree.edges == ((0, 1), (0, 3))  # all pairs are at distance 2: the first pairs are joined


@pytest.mark.parametrize(
    "heads",
    [(0, 0, 1, 1, 1), (2, 1, 0, 3, 3), (None, 3, 0, 3, 3)],
    ids=["two roots", "a cycle", "a word without a head"],
)
def test_heads_that_do_not_form_a_tree_return_none(heads: tuple[int | None, ...]) -> None:
    rows = [(form, head, upos, xpos) for (form, _, upos, xpos), head in zip(CABINET, heads, strict=True)]
    assert tree_of(sentence(*rows)) is None  # type: ignore[arg-type]


@st.composite
def trees(draw: st.DrawFn) -> list[int]:
    """Random trees as heads, which are counted from 0 (-1 is the root), in any order of words."""
    size = draw(st.integers(1, 9))
    order = draw(st.permutations(range(size)))
    heads = [-1] * size
    for place in range(1, size):
        heads[order[place]] = order[draw(st.integers(0, place - 1))]
    return heads


@given(trees())
def test_distances_are_shortest_paths(heads: list[int]) -> None:
    size = len(heads)
    plain = np.full((size, size), 99)
    np.fill_diagonal(plain, 0)
    for word, head in enumerate(heads):
        if head >= 0:
            plain[word, head] = plain[head, word] = 1
    for middle in range(size):
        plain = np.minimum(plain, plain[:, [middle]] + plain[[middle], :])
    above = ancestors(heads)
    assert above is not None
    root = heads.index(-1)
    assert (above.sum(1) - 1).tolist() == plain[root].tolist()
    rows = [(f"w{word}", head + 1, "X", "X") for word, head in enumerate(heads)]
    found = tree_of(sentence(*rows))
    assert found is not None
    assert np.array_equal(found.distances, plain)
    arcs = {(min(word, head), max(word, head)) for word, head in enumerate(heads) if head >= 0}
    assert set(found.edges) == arcs
    assert set(smallest_tree(plain, range(size))) == arcs
