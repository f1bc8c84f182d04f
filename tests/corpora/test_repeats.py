"""The corpus of repeated sequences, and how its words become tokens."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from headscope.core.document import DrawnWord
from headscope.core.tally import Tally
from headscope.corpora import read
from headscope.encoding.drawn import distinct
from headscope.encoding.texts import Encoder
from headscope.errors import EncodingError, HeadscopeError
from headscope.models.model import Model
from helpers.families import tokenizer


def test_each_sequence_occurs_twice_and_the_name_determines_their_number() -> None:
    documents = list(read("repeats:7x3"))
    assert [document.id for document in documents] == ["sequence_1", "sequence_2", "sequence_3"]
    for document in documents:
        draws = [word.draw for word in document.words if isinstance(word, DrawnWord)]
        assert draws[:7] == draws[7:]
        assert len(set(draws)) == 7
    assert len(list(read("repeats:7"))) == 32


def test_the_sequences_depend_only_on_the_seed() -> None:
    assert read("repeats:7x3").hash() == read("repeats:7x3@0").hash()
    assert read("repeats:7x3").hash() != read("repeats:7x3@1").hash()
    assert list(read("repeats:7x2")) == list(read("repeats:7x3"))[:2]


@pytest.mark.parametrize("name", ["repeats:", "repeats:1", "repeats:50x0", "repeats:x5", "repeats:50x32@", "repeats:-5"])
def test_an_incomplete_or_invalid_name_is_refused_with_an_example(name: str) -> None:
    with pytest.raises(HeadscopeError, match="does not give the length") as caught:
        read(name)
    assert "repeats:50x100@7" in (caught.value.remedy or "")


def test_repeats_must_be_the_only_corpus() -> None:
    with pytest.raises(HeadscopeError, match="must be the only corpus"):
        read("repeats:50", "sampler")


def test_words_become_distinct_tokens_that_are_not_special(mini: Model) -> None:
    encoder = Encoder(mini.tokenizer)
    texts = list(encoder.texts(read("repeats:50x4"), Tally()))
    special = {*mini.tokenizer.hf.all_special_ids}
    for text in texts:
        ids = text.ids.tolist()
        assert len(ids) == 102  # 100 words, [CLS] and [SEP]
        assert ids[1:51] == ids[51:101]
        assert len(set(ids[1:51])) == 50
        assert not special & set(ids[1:101])
        assert [word.form for word in text.words] == list(text.pieces[1:101])
    assert len({tuple(text.ids) for text in texts}) == 4


def test_tokens_are_drawn_uniformly() -> None:
    """At each of 3 places, each of 6 tokens is expected in 1,000 of 6,000 draws, with a standard deviation of 29."""
    rng = np.random.default_rng(0)
    draws = [distinct([int(number) for number in rng.integers(0, 2**63, 3)], range(6)) for _ in range(6000)]
    assert all(len(set(drawn)) == 3 for drawn in draws)
    for place in range(3):
        counts = Counter(drawn[place] for drawn in draws)
        assert all(abs(counts[token] - 1000) < 150 for token in range(6))


def test_a_sequence_too_long_for_the_model_or_the_vocabulary_is_refused() -> None:
    encoder = Encoder(tokenizer("gpt2"), max_length=32)
    with pytest.raises(EncodingError, match="sequence_1 has 100 tokens where 32 fit") as caught:
        list(encoder.texts(read("repeats:50"), Tally()))
    assert "--max-length 100" in (caught.value.remedy or "")
    with pytest.raises(EncodingError, match="of a vocabulary of"):
        list(Encoder(tokenizer("gpt2"), max_length=100_000).texts(read("repeats:20000x1"), Tally()))
