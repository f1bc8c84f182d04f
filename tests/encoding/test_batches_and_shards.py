"""Batches of texts within a budget of tokens, and shards of consecutive texts."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.core.annotation import Annotation
from headscope.core.document import Word
from headscope.encoding.batches import batches, shards
from headscope.encoding.texts import Encoded

sizes = st.lists(st.integers(1, 40), max_size=30)


def text(name: str, length: int, target: Encoded | None = None) -> Encoded:
    ids = np.arange(length, dtype=np.int64)
    places = tuple(range(length))
    return Encoded(
        name, Annotation.of_sentence("d", (Word("a"),) * length), ids, np.zeros_like(ids), (0,) * length, places, ("a",) * length, target
    )


def texts(lengths: list[int]) -> list[Encoded]:
    return [text(f"d/{number}", length) for number, length in enumerate(lengths)]


def names(groups: list[list[Encoded]]) -> list[list[str]]:
    return [[one.id for one in group] for group in groups]


def test_batches_equal_those_worked_by_hand() -> None:
    made = texts([5, 2, 9, 2, 3])
    # Sorted lengths: 2 2 3 5 9. Three texts padded to 3 take 9 tokens; with a fourth, padded to 5, they would take 20.
    assert names(list(batches(made, 10))) == [["d/1", "d/3", "d/4"], ["d/0"], ["d/2"]]
    assert names(list(batches(made, 8))) == [["d/1", "d/3"], ["d/4"], ["d/0"], ["d/2"]]
    assert names(list(batches(made, 45))) == [["d/1", "d/3", "d/4", "d/0", "d/2"]]
    assert list(batches([], 10)) == []


@settings(deadline=None)
@given(lengths=sizes, budget=st.integers(1, 120))
def test_batches_stay_within_the_budget_and_contain_every_text_once(lengths: list[int], budget: int) -> None:
    made = texts(lengths)
    found = list(batches(made, budget))
    assert sorted(one.id for batch in found for one in batch) == sorted(one.id for one in made)
    for batch in found:
        padded = len(batch) * max(len(one.ids) for one in batch)
        assert padded <= budget or len(batch) == 1
    assert all(found)
    # The batches do not depend on the order of the texts.
    assert names(list(batches(made[::-1], budget))) == names(found)


def test_a_text_longer_than_the_budget_has_a_separate_batch() -> None:
    assert names(list(batches(texts([50, 1, 60]), 4))) == [["d/1"], ["d/0"], ["d/2"]]


def test_the_cost_of_a_text_is_the_length_of_its_longer_side() -> None:
    both = [text("d/0", 2, text("d/0", 9)), text("d/1", 9, text("d/1", 2)), text("d/2", 2, text("d/2", 2))]
    assert [one.cost for one in both] == [9, 9, 2]
    assert names(list(batches(both, 18))) == [["d/2", "d/0"], ["d/1"]]


def test_shards_equal_those_worked_by_hand() -> None:
    made = texts([4, 4, 4, 9, 1, 2])
    assert names(list(shards(made, 8))) == [["d/0", "d/1"], ["d/2", "d/3"], ["d/4", "d/5"]]
    assert names(list(shards(made, 1))) == [[f"d/{number}"] for number in range(6)]
    assert names(list(shards(made, 1000))) == [[f"d/{number}" for number in range(6)]]
    assert list(shards([], 8)) == []


@settings(deadline=None)
@given(lengths=sizes, tokens=st.integers(1, 200), budget=st.integers(1, 120))
def test_shards_are_consecutive_texts_and_end_when_they_are_full(lengths: list[int], tokens: int, budget: int) -> None:
    made = texts(lengths)
    found = list(shards(iter(made), tokens))
    assert [one for shard in found for one in shard] == made
    for number, shard in enumerate(found):
        total = sum(len(one.ids) for one in shard)
        assert total - len(shard[-1].ids) < tokens
        assert total >= tokens or number == len(found) - 1
    # The batches of a shard contain exactly its texts.
    for shard in found:
        assert {one.id for batch in batches(shard, budget) for one in batch} == {one.id for one in shard}


def test_shards_read_texts_only_when_they_are_needed() -> None:
    taken: list[int] = []

    def stream() -> Iterator[Encoded]:
        for number in range(100):
            taken.append(number)
            yield text(f"d/{number}", 5)

    assert names([next(shards(stream(), 10))]) == [["d/0", "d/1"]]
    assert taken == [0, 1]


@pytest.mark.parametrize("seed", [0, 1])
def test_batches_of_equally_long_texts_do_not_depend_on_their_order(seed: int) -> None:
    made = texts([3] * 8)
    shuffled = [made[place] for place in np.random.default_rng(seed).permutation(8)]
    assert names(list(batches(shuffled, 9))) == names(list(batches(made, 9)))
