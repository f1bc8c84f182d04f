"""Texts of each unit, and overlong texts, segment ids, decoder inputs and labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.core.batch import CLS, SEP, SPECIAL, WORD
from headscope.core.document import Document, Sentence, Word
from headscope.core.tally import Tally
from headscope.encoding.choices import UNITS, Unit
from headscope.encoding.texts import Encoded, Encoder
from headscope.errors import EncodingError
from helpers.families import document, tokenizer, words

DROPPED, TRUNCATED, SPLIT = "overlong texts dropped", "overlong texts truncated", "overlong texts split into windows"
CUT = "words cut off at the end"
TOO_LONG, UNPAIRED = "words skipped: longer than a window", "windows skipped: no partner"
LETTERS = tokenizer("letters")  # a word of n letters has n tokens
THREE = document("d", "ab c | d", "efg")


def shown(text: Encoded) -> str:
    return " ".join(text.pieces)


def made(encoder: Encoder, *documents: Document) -> tuple[list[Encoded], Tally]:
    tally = Tally()
    return list(encoder.texts(documents, tally)), tally


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("sentence", ["[CLS] a ##b c [SEP]", "[CLS] d [SEP]", "[CLS] e ##f ##g [SEP]"]),
        ("paragraph", ["[CLS] a ##b c d [SEP]", "[CLS] e ##f ##g [SEP]"]),
        ("document", ["[CLS] a ##b c d e ##f ##g [SEP]"]),
        ("pair", ["[CLS] a ##b c d [SEP] e ##f ##g [SEP]"]),
    ],
)
def test_each_unit_has_the_expected_texts(unit: Unit, expected: list[str]) -> None:
    texts, tally = made(Encoder(LETTERS, unit), THREE)
    assert [shown(text) for text in texts] == expected
    assert not tally


def test_a_segment_of_two_sentences_is_split_between_them() -> None:
    texts, tally = made(Encoder(LETTERS, "segment"), document("d", "ab c | d ef"))
    assert [shown(text) for text in texts] == ["[CLS] a ##b c [SEP] d e ##f [SEP]"]
    assert texts[0].segments.tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 1]
    assert not tally


def test_all_fields_of_a_text_equal_values_worked_by_hand() -> None:
    (text,), _ = made(Encoder(LETTERS, "pair"), document("d", "ab c", "d"))
    # [PAD] [UNK] [CLS] [SEP] [MASK], then a to z from 5 on, then ##a to ##z from 31 on.
    assert text.ids.tolist() == [2, 5, 32, 7, 3, 8, 3]
    assert text.ids.dtype == text.segments.dtype == np.int64
    assert text.segments.tolist() == [0, 0, 0, 0, 0, 1, 1]
    assert text.roles == (CLS, WORD, WORD, WORD, SEP, WORD, SEP)
    assert text.word_of == (-1, 0, 0, 1, -1, 2, -1)
    assert text.words == words("ab c d")
    assert text.pieces == ("[CLS]", "a", "##b", "c", "[SEP]", "d", "[SEP]")
    assert (text.id, text.document, text.target) == ("d/1", "d", None)
    assert len(text) == text.cost == 7


def test_words_keep_their_annotation() -> None:
    annotated = (Word("ab", upos="NOUN", head=2, relation="nsubj"), Word("c", upos="VERB", head=0, relation="root"))
    (text,), _ = made(Encoder(LETTERS), Document("d", (Sentence(annotated),)))
    assert text.words == annotated


def test_texts_are_numbered_within_a_document() -> None:
    texts, _ = made(Encoder(LETTERS), THREE, document("e", "a | b"))
    assert [text.id for text in texts] == ["d/1", "d/2", "d/3", "e/1", "e/2"]
    assert [text.document for text in texts] == ["d", "d", "d", "e", "e"]
    # A dropped sentence is not numbered.
    texts, tally = made(Encoder(LETTERS, max_length=6), document("d", "abcde | a"))
    assert [(text.id, shown(text)) for text in texts] == [("d/1", "[CLS] a [SEP]")]
    assert tally.counts == {DROPPED: 1}


def test_segment_ids_can_be_all_zero() -> None:
    for unit in ("pair", "segment"):
        (text,), _ = made(Encoder(LETTERS, unit, segment_ids="zeros"), document("d", "ab", "c"))
        assert text.segments.tolist() == [0] * 6
    (text,), _ = made(Encoder(LETTERS, "sentence", segment_ids="pair"), document("d", "ab"))
    assert text.segments.tolist() == [0] * 4


def test_segment_ids_change_after_all_special_tokens_between_the_parts() -> None:
    (text,), _ = made(Encoder(tokenizer("roberta"), "pair"), document("d", "a", "a"))
    assert shown(text) == "<s> a </s> </s> a </s>"
    assert text.segments.tolist() == [0, 0, 0, 0, 1, 1]
    (text,), _ = made(Encoder(tokenizer("gpt2"), "pair"), document("d", "a", "a"))
    assert text.segments.tolist() == [0, 1]


LONG = document("d", "ab | abc defg h | a")  # 2, 8 and 1 tokens


def test_overlong_drop_skips_and_counts_overlong_texts() -> None:
    texts, tally = made(Encoder(LETTERS, max_length=8), LONG, LONG)
    assert [shown(text) for text in texts] == ["[CLS] a ##b [SEP]", "[CLS] a [SEP]"] * 2
    assert tally.counts == {DROPPED: 2}
    assert tally.first == {DROPPED: "d"}


def test_overlong_truncate_keeps_whole_words() -> None:
    texts, tally = made(Encoder(LETTERS, max_length=8, overlong="truncate"), LONG)
    assert [shown(text) for text in texts] == ["[CLS] a ##b [SEP]", "[CLS] a ##b ##c [SEP]", "[CLS] a [SEP]"]
    assert texts[1].words == words("abc")
    assert tally.counts == {TRUNCATED: 1, CUT: 2}


def test_overlong_window_cuts_between_words() -> None:
    texts, tally = made(Encoder(LETTERS, max_length=8, overlong="window"), LONG)
    assert [shown(text) for text in texts] == [
        "[CLS] a ##b [SEP]",
        "[CLS] a ##b ##c [SEP]",
        "[CLS] d ##e ##f ##g h [SEP]",
        "[CLS] a [SEP]",
    ]
    assert [text.id for text in texts] == ["d/1", "d/2", "d/3", "d/4"]
    assert texts[2].words == words("defg h")
    assert texts[2].word_of == (-1, 0, 0, 0, 0, 1, -1)
    assert tally.counts == {SPLIT: 1}


def test_overlong_error_names_the_length_and_the_remedy() -> None:
    with pytest.raises(EncodingError, match=r"a sentence of d has 8 tokens where 6 fit\. .*--overlong drop, truncate or window"):
        made(Encoder(LETTERS, max_length=8, overlong="error"), LONG)


@pytest.mark.parametrize("overlong", ["drop", "truncate", "window", "error"])
def test_a_text_that_just_fits_is_not_changed(overlong: str) -> None:
    encoder = Encoder(LETTERS, max_length=8, overlong=overlong)  # type: ignore[arg-type]
    texts, tally = made(encoder, document("d", "abc def"))
    assert [shown(text) for text in texts] == ["[CLS] a ##b ##c d ##e ##f [SEP]"]
    assert not tally


def test_a_word_longer_than_a_window_is_skipped_and_counted() -> None:
    encoder = Encoder(LETTERS, max_length=8, overlong="window")
    texts, tally = made(encoder, document("d", "ab cdefghi jk"))
    assert [shown(text) for text in texts] == ["[CLS] a ##b [SEP]", "[CLS] j ##k [SEP]"]
    assert tally.counts == {SPLIT: 1, TOO_LONG: 1}
    texts, tally = made(encoder, document("d", "abcdefg | a"))
    assert [shown(text) for text in texts] == ["[CLS] a [SEP]"]
    assert tally.counts == {DROPPED: 1}


def greedy(lengths: list[int], room: int) -> list[list[int]]:
    """The words of each window: as many consecutive words as fit. A word that never fits ends the window."""
    windows: list[list[int]] = [[]]
    for position, length in enumerate(lengths):
        if length > room or sum(lengths[other] for other in windows[-1]) + length > room:
            windows.append([])
        if length <= room:
            windows[-1].append(position)
    return [window for window in windows if window]


@settings(max_examples=150, deadline=None)
@given(lengths=st.lists(st.integers(1, 9), min_size=1, max_size=14), max_length=st.integers(5, 12))
def test_windows_contain_every_word_that_fits_once(lengths: list[int], max_length: int) -> None:
    # The tag of a word identifies it.
    given_words = tuple(Word("abcdefghi"[:length], xpos=str(position)) for position, length in enumerate(lengths))
    texts, tally = made(Encoder(LETTERS, "document", max_length, "window"), Document("d", (Sentence(given_words),)))
    room = max_length - 2
    assert [[int(word.xpos or "") for word in text.words] for text in texts] == greedy(lengths, room)
    for text in texts:
        assert len(text) <= max_length
        spelt = [position for position, word in enumerate(text.words) for _ in word.form]
        assert text.word_of == (-1, *spelt, -1)
    lost = sum(length > room for length in lengths)
    if sum(lengths) > room and texts:
        assert tally.counts == {SPLIT: 1} | ({TOO_LONG: lost} if lost else {})
    elif sum(lengths) > room:
        assert tally.counts == {DROPPED: 1}
    else:
        assert not tally


@pytest.mark.parametrize(("name", "least"), [("letters", 5), ("roberta", 6), ("gpt2", 2)])
def test_max_length_must_leave_room_for_a_word_in_each_part(name: str, least: int) -> None:
    with pytest.raises(EncodingError, match=f"max_length {least - 1} leaves no room"):
        Encoder(tokenizer(name), max_length=least - 1)
    (text,), _ = made(Encoder(tokenizer(name), "pair", max_length=least), document("d", "a a a", "a a"))
    assert len(text) == least
    assert text.roles.count(WORD) == 2


@pytest.mark.parametrize("unit", UNITS)
def test_documents_without_words_have_no_texts(unit: Unit) -> None:
    empty = Document("none", ())
    hollow = Document("hollow", (Sentence(()), Sentence((), paragraph=1)))
    texts, _ = made(Encoder(LETTERS, unit), empty, hollow, document("d", "a | b", "c | d"))
    assert {text.document for text in texts} == {"d"}


def test_a_pair_with_an_empty_paragraph_is_skipped() -> None:
    hollow = Document("h", (Sentence(words("a")), Sentence((), paragraph=1)))
    texts, tally = made(Encoder(LETTERS, "pair"), hollow)
    assert not texts
    assert tally.counts == {"pairs skipped: an empty paragraph": 1}


def test_pairs_are_made_of_two_consecutive_paragraphs() -> None:
    texts, tally = made(Encoder(LETTERS, "pair"), document("d", "a", "b", "c", "d | e", "f"), document("e", "g"))
    assert [shown(text) for text in texts] == ["[CLS] a [SEP] b [SEP]", "[CLS] c [SEP] d e [SEP]"]
    assert [text.id for text in texts] == ["d/1", "d/2"]
    assert tally.counts == {"paragraphs skipped: no partner": 2}
    assert tally.first == {"paragraphs skipped: no partner": "d"}


def test_overlong_pairs_are_cut_from_the_longer_paragraph() -> None:
    texts, tally = made(Encoder(LETTERS, "pair", max_length=9), document("d", "abcdefghi", "xyz"))
    assert len(texts[0]) == 9
    assert shown(texts[0]).endswith("[SEP] x ##y ##z [SEP]")
    assert texts[0].segments.tolist() == [0, 0, 0, 0, 0, 1, 1, 1, 1]
    first = " ".join(texts[0].pieces[1:4])
    assert first in "a ##b ##c ##d ##e ##f ##g ##h ##i"
    assert not tally


def test_unknown_words_are_counted_in_every_unit() -> None:
    odd = Document("d", (Sentence((Word("\x00"), Word("a"))), Sentence((Word("b"), Word("\x01")), paragraph=1)))
    for unit in UNITS:
        texts, tally = made(Encoder(LETTERS, unit), odd)
        assert tally.counts == {"words without a token, read as unknown": 2}
        assert sum(text.pieces.count("[UNK]") for text in texts) == 2
        assert sum(len(text.words) for text in texts) == 4


START = 4  # [MASK], because this tokenizer has no start token


def test_the_decoder_reads_the_text_shifted_by_one() -> None:
    (text,), _ = made(Encoder(LETTERS, decoder_start=START), document("d", "ab c"))
    assert shown(text) == "[CLS] a ##b c [SEP]"
    assert text.target is not None
    assert shown(text.target) == "[MASK] [CLS] a ##b c"
    assert text.target.ids.tolist() == [START, *text.ids[:-1].tolist()]
    assert text.target.ids.dtype == np.int64
    assert text.target.roles == (CLS, SPECIAL, WORD, WORD, WORD), "only the start token has the role CLS"
    assert text.target.word_of == (-1, -1, 0, 0, 1)
    assert text.target.words == words("ab c")
    assert text.target.segments.tolist() == [0] * 5
    assert text.target.target is None


def test_the_decoder_of_t5_starts_with_padding_as_in_training() -> None:
    made_tokenizer = tokenizer("t5")
    (text,), _ = made(Encoder(made_tokenizer, decoder_start=0), document("d", "The cats"))
    assert text.target is not None
    assert shown(text) == "The cat s </s>"
    assert shown(text.target) == "<pad> The cat s"
    assert text.target.roles == (CLS, WORD, WORD, WORD)


def test_the_decoder_reads_the_second_paragraph_of_a_pair() -> None:
    (text,), tally = made(Encoder(LETTERS, "pair", decoder_start=START), document("d", "ab c", "def"))
    assert text.target is not None
    assert shown(text) == "[CLS] a ##b c [SEP]"
    assert shown(text.target) == "[MASK] [CLS] d ##e ##f"
    assert text.words == words("ab c")
    assert text.target.words == words("def")
    assert text.target.word_of == (-1, -1, 0, 0, 0)
    assert text.segments.tolist() == [0] * 5
    assert (len(text), text.cost) == (5, 5)
    assert not tally
    (text,), _ = made(Encoder(LETTERS, "pair", decoder_start=START), document("d", "ab c", "defghi"))
    assert (len(text), text.cost) == (5, 8)


def test_the_decoder_reads_the_second_part_of_a_segment() -> None:
    (text,), _ = made(Encoder(LETTERS, "segment", decoder_start=START), document("d", "ab c | def"))
    assert text.target is not None
    assert shown(text) == "[CLS] a ##b c [SEP]"
    assert shown(text.target) == "[MASK] [CLS] d ##e ##f"


def pairs(overlong: str, *paragraphs: str) -> tuple[list[tuple[str, str]], Tally]:
    """Source and target of each input, for a model that reads 4 tokens besides the two special ones."""
    encoder = Encoder(LETTERS, "pair", 6, overlong, decoder_start=START)  # type: ignore[arg-type]
    texts, tally = made(encoder, document("d", *paragraphs))
    assert all(text.cost <= 6 for text in texts)
    return [(shown(text), shown(text.target)) for text in texts if text.target is not None], tally


def test_source_and_target_are_truncated_separately() -> None:
    short, long = "ab", "ab cd ef gh ij kl mn op qr"  # 18 tokens
    beginning = ("[CLS] a ##b [SEP]", "[MASK] [CLS] a ##b c ##d")
    found, tally = pairs("truncate", short, long)
    assert found == [beginning]
    assert tally.counts == {TRUNCATED: 1, CUT: 7}
    found, tally = pairs("truncate", long, short)
    assert found == [("[CLS] a ##b c ##d [SEP]", "[MASK] [CLS] a ##b")]
    found, tally = pairs("truncate", long, long)
    assert found == [("[CLS] a ##b c ##d [SEP]", "[MASK] [CLS] a ##b c ##d")]
    assert tally.counts == {TRUNCATED: 2, CUT: 14}


@pytest.mark.parametrize("sides", [("abcde", "ab"), ("ab", "abcde"), ("abcde", "abcde")])
def test_a_pair_with_an_overlong_side_is_dropped_once_or_is_an_error(sides: tuple[str, str]) -> None:
    found, tally = pairs("drop", *sides, "a", "b")
    assert found == [("[CLS] a [SEP]", "[MASK] [CLS] b")]
    assert tally.counts == {DROPPED: 1}
    with pytest.raises(EncodingError, match="a pair of d has 5 tokens where 4 fit"):
        pairs("error", *sides)


def test_windows_of_source_and_target_are_paired_and_the_rest_is_counted() -> None:
    found, tally = pairs("window", "ab cd ef gh ij kl", "uv wx yz")
    assert found == [
        ("[CLS] a ##b c ##d [SEP]", "[MASK] [CLS] u ##v w ##x"),
        ("[CLS] e ##f g ##h [SEP]", "[MASK] [CLS] y ##z"),
    ]
    assert tally.counts == {SPLIT: 2, UNPAIRED: 1}


@pytest.mark.parametrize(
    ("unit", "paragraphs", "labels"),
    [
        ("sentence", ["ab c"], ["x"]),
        ("sentence", ["ab c | d"], [None, None]),
        ("sentence", ["ab c | abcdefghijklmn"], [None]),  # the second is dropped, but the first is still only a part
        ("paragraph", ["ab c | d"], ["x"]),
        ("document", ["ab c | d", "e"], ["x"]),
        ("pair", ["ab c | d", "e"], ["x"]),
        ("pair", ["ab", "c", "d"], [None]),
        ("segment", ["ab c | d"], ["x"]),
    ],
)
def test_only_a_text_of_the_whole_document_has_its_label(unit: Unit, paragraphs: list[str], labels: list[str | None]) -> None:
    labelled = replace(document("d", *paragraphs), label="x")
    encoder = Encoder(LETTERS, unit, max_length=12)
    texts, _ = made(encoder, labelled, replace(labelled, label=None))
    assert [text.label for text in texts] == labels + [None] * len(labels)
    if labels == ["x"]:
        assert made(replace(encoder, labelled=True), labelled)[0][0].label == "x"
    else:
        with pytest.raises(EncodingError, match=rf"d is labelled 'x' as a whole, but read in parts \(unit {unit}, .*Use --unit document"):
            made(replace(encoder, labelled=True), labelled)


def test_a_truncated_text_keeps_its_label_but_its_windows_do_not() -> None:
    labelled = replace(document("d", "ab cd ef gh"), label="x")
    assert [text.label for text in made(Encoder(LETTERS, max_length=6, overlong="truncate"), labelled)[0]] == ["x"]
    assert [text.label for text in made(Encoder(LETTERS, max_length=6, overlong="window"), labelled)[0]] == [None, None]
    assert made(Encoder(LETTERS, max_length=6, labelled=True), labelled)[0] == []
