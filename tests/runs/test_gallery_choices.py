"""Choices of a gallery: texts, windows of long texts, and the number and size of stacks."""

from __future__ import annotations

from typing import Any

from headscope.core.document import Document, Mention, Sentence, Word
from headscope.core.heads import HeadLayout, Site
from headscope.core.tally import Tally
from headscope.corpora import read
from headscope.encoding.texts import Encoded, Encoder
from headscope.engine.sample import Sample
from headscope.gallery.examples import window
from headscope.measures import make
from headscope.models.model import Model

MEASURES: dict[str, dict[str, Any]] = {"positions": {}, "tokens": {}, "entropy": {}, "relations": {}, "coreference": {"least": 5}}


def encoded(model: Model, words: list[Word], id: str = "d", mentions: tuple[Mention, ...] = ()) -> Encoded:
    (text,) = Encoder(model.tokenizer, "document", 400).texts([Document(id, (Sentence(tuple(words)),), mentions)], Tally())
    return text


def test_the_window_of_a_long_text_contains_the_cases_of_a_quantity(mini: Model) -> None:
    words = [Word("the", head=60 if n == 57 else None, relation="obj" if n == 57 else "x") for n in range(100)]
    text = encoded(mini, words, mentions=(Mention("a", 80, 82), Mention("b", 2, 3), Mention("a", 95, 96)))
    assert len(text) == 102
    start, end = window(text, make("relations"), "obj")
    assert end - start == 48
    assert start <= 58 < 60 < end
    assert abs((start + end) / 2 - 59) < 12, "the case has text on both sides"
    start, end = window(text, make("coreference"), "nominal")
    assert start <= 81
    assert 96 < end <= 102
    assert window(text, make("coreference"), "proper") == (0, 48), "a text without a case is shown from its beginning"
    assert window(text, make("tokens"), "to_sep")[1] == 102
    assert window(text, make("tokens"), "to_cls") == (0, 48)
    assert window(text, make("positions"), "previous") == (0, 48)
    assert window(encoded(mini, words[:20]), make("positions"), "previous") == (0, 22)


def test_the_window_contains_the_mentions_of_a_label(mini: Model) -> None:
    """Names are at the beginning and a pronoun is at the end; the window contains the mentions of the label."""
    words = [Word("the")] * 120
    for n in (2, 6, 10, 14):
        words[n] = Word("Ann")
    words[100], words[104] = Word("Mary"), Word("she")
    words[90] = Word("Tom")
    named = tuple(Mention("a", n, n + 1) for n in (2, 6, 10, 14))
    text = encoded(mini, words, mentions=(*named, Mention("t", 90, 91), Mention("m", 100, 101), Mention("m", 104, 105)))
    first = {word: text.word_of.index(word) for word in range(len(words))}
    for measure, label, inside in (
        ("coreference", "proper", (2, 14)),
        ("coreference", "pronoun", (100, 104)),
        ("pronouns", "feminine", (100, 104)),
    ):
        start, end = window(text, make(measure), label)
        assert start <= first[inside[0]], (measure, label)
        assert first[inside[1] + 1] <= end


def test_a_window_contains_all_tokens_of_the_words_of_a_case(mini: Model) -> None:
    """A window just long enough for a case begins and ends with whole words, even if they are split into tokens."""
    long = "unbelievablenesses"
    words = [Word("the") for _ in range(80)]
    words[30] = Word(long)
    words[60] = Word("cat", head=31, relation="obj")
    text = encoded(mini, words)
    pieces = [token for token, word in enumerate(text.word_of) if word == 30]
    assert len(pieces) > 1
    size = text.word_of.index(60) - pieces[0] + 1
    assert window(text, make("relations"), "obj", longest=size) == (pieces[0], pieces[0] + size)
    words[30], words[60] = Word("cat", head=61, relation="obj"), Word(long)
    text = encoded(mini, words)
    last = max(token for token, word in enumerate(text.word_of) if word == 60)
    start = text.word_of.index(30)
    assert window(text, make("relations"), "obj", longest=last - start + 1) == (start, last + 1)


def test_a_sample_does_not_depend_on_the_order_of_texts(mini: Model) -> None:
    texts = [encoded(mini, [Word("the")] * (n % 50 + 1), f"d{n}") for n in range(200)]
    forward, backward = Sample(16, mini.layout), Sample(16, mini.layout)
    for text in texts:
        forward.add(text)
    for text in reversed(texts):
        backward.add(text)
    chosen = [text.id for text in forward.texts()]
    assert chosen == [text.id for text in backward.texts()]
    assert len(chosen) == len(set(chosen)) == 16
    assert all(6 <= len(text) <= 40 for text in forward.texts())
    larger = Sample(32, mini.layout)
    for text in texts:
        larger.add(text)
    assert [text.id for text in larger.texts()][:16] == chosen, "a larger sample continues a smaller one"


def test_a_sample_is_filled_with_texts_closest_to_a_readable_length(mini: Model) -> None:
    """The limits are 6 and 40 tokens: 62 tokens are too many by a factor of 1.55, 4 too few by a factor of 1.5, and 3
    by a factor of 2.
    """
    few = Sample(8, mini.layout)
    for n in (1, 2, *range(60, 90)):
        few.add(encoded(mini, [Word("the")] * n, f"d{n}"))
    few.add(encoded(mini, [Word("the")] * 20, "short"))
    assert [text.id for text in few.texts()] == ["short/1", "d2/1", *(f"d{n}/1" for n in range(60, 66))]


def test_a_larger_sample_begins_with_a_smaller_one(mini: Model) -> None:
    """Samples of 96 and 5,000 texts of the sampler begin with the same texts; texts of a readable length come first."""
    samples = [Sample(96, mini.layout), Sample(5000, mini.layout)]
    texts = list(Encoder(mini.tokenizer).texts(read("sampler"), Tally()))
    for text in texts:
        for one in samples:
            one.add(text)
    few, many = (one.texts() for one in samples)
    assert many[:96] == few
    readable = [text for text in texts if 6 <= len(text) <= 40]
    assert {text.id for text in many[: len(readable)]} == {text.id for text in readable}
    assert sum(map(len, many)) <= 8192


def test_models_with_many_heads_get_fewer_and_smaller_stacks(mini: Model) -> None:
    from headscope.gallery.build import BYTES, chosen_stacks

    texts = [encoded(mini, [Word("the")] * 20, f"d{n}") for n in range(6)]
    for layers, heads, count in ((12, 12, 3), (24, 16, 2), (32, 32, 1), (80, 64, 1)):
        stacks = chosen_stacks(texts, HeadLayout(tuple(Site("decoder", layer, heads, heads, "") for layer in range(layers))))
        assert len(stacks) == count
        assert sum((end - start) ** 2 * layers * heads * 2 for start, end in stacks.values()) <= BYTES
