"""Trees built from attention, on cases worked out by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import headscope as hs
from headscope.core.document import Word
from headscope.errors import MeasureError

CATS = [("the", 2, "det"), ("cat", 3, "nsubj"), ("saw", 0, "root"), ("a", 5, "det"), ("dog", 3, "obj"), (".", 3, "punct")]
WORDS = [Word(form, head=head, relation=relation) for form, head, relation in CATS]
TOKENS = ["[CLS]", *(form for form, _, _ in CATS), "[SEP]"]


def pointing(*targets: int) -> NDArray[np.float64]:
    """Return a map in which word i attends to word targets[i - 1]; 0 is [CLS]."""
    a = np.zeros((8, 8))
    a[0, 0] = a[-1, -1] = 1
    for i, target in enumerate(targets, 1):
        a[i, target] = 1
    return a


PARSER, CHAIN = pointing(2, 3, 0, 5, 3, 3), pointing(2, 3, 4, 5, 6, 0)


def trees(*heads: NDArray[np.float64], **options: Any) -> hs.api.Run:
    maps = np.stack(heads)[None] * 0.98 + 0.02 / 8  # a small weight everywhere, as in real attention
    return hs.measure(maps, TOKENS, {"trees": options}, words=[None, *range(6), None], annotation=WORDS, replicates=10)


def uuas(run: hs.api.Run) -> list[float]:
    return list(run["trees"].table["value"])


def test_uuas_of_a_planted_parser_and_of_a_chain() -> None:
    """Without the period there are four edges. A chain of the five words has three of them: the - cat, cat - saw and a
    - dog.
    """
    run = trees(PARSER, CHAIN)
    assert uuas(run) == [1, 3 / 4]
    assert set(run["trees"].table["baseline"]) == {3 / 4}
    assert set(run["trees"].table["n"]) == {4}


def test_uuas_can_include_punctuation() -> None:
    run = trees(PARSER, CHAIN, punct="include")
    assert uuas(run) == [1, 3 / 5]
    assert set(run["trees"].table["n"]) == {5}


def test_a_sum_of_heads_combines_the_edges_of_its_heads() -> None:
    """One head finds the determiners, another the arguments; their sum is a parser. A transposed head needs the
    direction head-to-dep.
    """
    nouns, verbs = pointing(2, 0, 0, 5, 0, 0), pointing(0, 3, 0, 0, 3, 3)
    table = trees(nouns, verbs, heads=("1-1", "1-2")).results["trees_together"]
    assert dict(zip(table["quantity"], table["value"], strict=True)) == {"uas": 1, "uuas": 1}
    assert list(table["n"]) == [5, 4]
    assert list(table["baseline"]) == [3 / 5, 3 / 4]  # the next word is the governor of `the`, `cat` and `a`
    transposed = PARSER.T / np.maximum(PARSER.T.sum(1, keepdims=True), 1)
    assert trees(transposed, heads=("1-1:head-to-dep",)).results["trees_together"]["value"][0] == 1
    assert trees(transposed, heads=("1-1",)).results["trees_together"]["value"][0] < 0.5


def test_unknown_heads_and_the_token_level_are_refused() -> None:
    with pytest.raises(MeasureError, match="no head 1-7"):
        trees(PARSER, heads=("1-7",))
    with pytest.raises(MeasureError, match="is not the name of a head"):
        trees(PARSER, heads=("eight",))
    with pytest.raises(MeasureError, match="made of words"):
        trees(PARSER, level="token")
