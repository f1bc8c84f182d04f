"""Differences of attention between two texts, worked out by hand: corresponding words, and distances of their rows."""

from __future__ import annotations

import numpy as np
import pytest

from headscope.core.heads import HeadId
from headscope.encoding.texts import Encoded
from headscope.encoding.tokenizer import Tokenizer
from headscope.engine.typed_text import typed
from headscope.errors import RunError
from headscope.gallery.differences import align, differences
from headscope.models.model import Model
from headscope.models.sites import find_sites
from helpers.architectures import build
from helpers.families import FAMILIES

HEAD = HeadId("encoder", 0, 0)


@pytest.fixture(scope="module")
def model() -> Model:
    tokens = FAMILIES["wordpiece"]()
    network = build("bert", vocabulary=len(tokens))
    return Model("bert", network, Tokenizer(tokens), *find_sites(network))


def read(model: Model, text: str) -> Encoded:
    return typed(model, text).encoded


def uniform(encoded: Encoded) -> np.ndarray:
    return np.full((len(encoded), len(encoded)), 1 / len(encoded), dtype=np.float32)


def map_to(encoded: Encoded, column: int) -> np.ndarray:
    """A map whose rows all attend to one token."""
    weights = np.zeros((len(encoded), len(encoded)), dtype=np.float32)
    weights[:, column] = 1
    return weights


def test_corresponding_words_are_aligned(model: Model) -> None:
    aligned = align(read(model, "the cat play"), read(model, "the dog play"))
    assert aligned.pairs == ((0, 0), (1, 1), (2, 2), (3, 3), (4, 4))  # [CLS] the cat play [SEP]
    assert aligned.rows == ((1, 1), (2, 2), (3, 3))
    assert aligned.changed == (("cat", "dog"),)
    longer = align(read(model, "the cat play"), read(model, "The a cat play"))
    assert longer.pairs == ((0, 0), (1, 1), (2, 3), (3, 4), (4, 5))
    assert longer.changed == (("", "a"),)


def test_texts_with_too_few_corresponding_words_are_refused(model: Model) -> None:
    with pytest.raises(RunError, match="the texts have 2 and 5 words, and only 1 correspond, too few to compare heads"):
        align(read(model, "cat play"), read(model, "a dog play x y"))
    assert len(align(read(model, "the cat"), read(model, "a dog")).rows) == 2  # "cat" and "dog" correspond by position


def test_distances_match_values_worked_out_by_hand(model: Model) -> None:
    first, second = read(model, "the cat play"), read(model, "the dog play")
    assert len(first) == len(second) == 5
    same = differences(first, second, {HEAD: uniform(first)}, {HEAD: uniform(second)}).heads[0]
    assert same.value == same.largest == 0
    changed = uniform(second)
    changed[2] = [0, 1, 0, 0, 0]  # the row of "dog": 4/5 of the weight has moved
    one = differences(first, second, {HEAD: uniform(first)}, {HEAD: changed}).heads[0]
    assert one.value == pytest.approx(0.8 / 3)
    assert one.largest == pytest.approx(0.8)
    assert one.words == ("cat", "dog")


def test_all_attention_to_a_word_without_a_counterpart_counts_as_different(model: Model) -> None:
    first, second = read(model, "the cat play"), read(model, "the a cat play")
    assert second.pieces == ("[CLS]", "the", "a", "cat", "play", "[SEP]")
    found = differences(first, second, {HEAD: map_to(first, 2)}, {HEAD: map_to(second, 2)}).heads[0]  # to "cat" and to "a"
    assert found.value == pytest.approx(1)
    found = differences(first, second, {HEAD: map_to(first, 2)}, {HEAD: map_to(second, 3)}).heads[0]  # both to "cat"
    assert found.value == pytest.approx(0)
