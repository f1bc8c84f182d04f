"""Segments by the construction of Clark et al., compared with a plain version."""

from __future__ import annotations

import random
from itertools import chain

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.core.document import Document, Sentence, Word
from headscope.core.tally import Tally
from headscope.encoding.segments import clark_chunks, cut_to
from headscope.encoding.texts import Encoded, Encoder
from helpers.families import document, tokenizer

LEFT_OUT = "segments skipped: no second part"
LETTERS = tokenizer("letters")  # a word of n letters has n tokens
Token = tuple[str, str]  # the tag of its word, and the piece


def random_document(name: str, seed: int) -> Document:
    """Sentences of 0 to 4 words of 1 to 6 letters, each word tagged with its position; no token occurs twice."""
    rng = random.Random(seed)
    position = 0
    sentences = []
    for _ in range(rng.randint(1, 12)):
        own = []
        for _ in range(rng.randint(0, 4) or rng.randint(0, 1)):
            own.append(Word("".join(rng.sample("abcdef", k=rng.randint(1, 6))), xpos=str(position)))
            position += 1
        sentences.append(Sentence(tuple(own)))
    return Document(name, tuple(sentences))


def tokens(sentence: Sentence) -> list[Token]:
    return [(word.xpos or "", "##" * (place > 0) + letter) for word in sentence.words for place, letter in enumerate(word.form)]


def parts(text: Encoded) -> tuple[list[Token], list[Token]]:
    """The two parts of `[CLS] A [SEP] B [SEP]`."""
    assert text.pieces[0] == "[CLS]"
    assert text.pieces[-1] == "[SEP]"
    assert text.pieces.count("[SEP]") == 2
    middle = text.pieces.index("[SEP]")
    pairs = [(text.words[word].xpos or "" if word >= 0 else "", piece) for word, piece in zip(text.word_of, text.pieces, strict=True)]
    return pairs[1:middle], pairs[middle + 1 : -1]


def plain_segments(document: Document, max_length: int, seed: int) -> tuple[list[tuple[list[Token], list[Token]]], int]:
    """The segments, made with lists from which tokens are popped, and the number of chunks with an empty part."""
    rng = random.Random(f"{seed}/{document.id}")
    target = max_length - 3
    remaining = [tokens(sentence) for sentence in document.sentences]
    made, left_out = [], 0
    while remaining:
        chunk = [remaining.pop(0)]
        while remaining and sum(map(len, chunk)) < target:
            chunk.append(remaining.pop(0))
        split = rng.randint(1, len(chunk) - 1) if len(chunk) > 1 else 1
        a, b = list(chain(*chunk[:split])), list(chain(*chunk[split:]))
        while len(a) + len(b) > target:
            longer = a if len(a) > len(b) else b
            longer.pop(0 if rng.random() < 0.5 else -1)
        if a and b:
            made.append((a, b))
        else:
            left_out += 1
    return made, left_out


def segments(*documents: Document, max_length: int = 16, seed: int = 0) -> tuple[list[Encoded], Tally]:
    tally = Tally()
    return list(Encoder(LETTERS, "segment", max_length, seed=seed).texts(documents, tally)), tally


def test_segments_of_short_documents_equal_those_worked_by_hand() -> None:
    texts, tally = segments(document("d", "ab c | de"), document("e", "f | g"))
    assert [" ".join(text.pieces) for text in texts] == ["[CLS] a ##b c [SEP] d ##e [SEP]", "[CLS] f [SEP] g [SEP]"]
    assert [text.id for text in texts] == ["d/1", "e/1"]
    assert not tally


def test_sentences_are_gathered_until_a_chunk_is_full() -> None:
    # Room for 7 tokens: the first two sentences fill it exactly, the next two exceed it by one, and two are left.
    texts, tally = segments(document("d", "abc | defg | hij | klmno | p | q"), max_length=10)
    assert " ".join(texts[0].pieces) == "[CLS] a ##b ##c [SEP] d ##e ##f ##g [SEP]"
    assert " ".join(texts[1].pieces) in (
        "[CLS] h ##i ##j [SEP] k ##l ##m ##n [SEP]",
        "[CLS] h ##i ##j [SEP] ##l ##m ##n ##o [SEP]",
    )
    assert " ".join(texts[2].pieces) == "[CLS] p [SEP] q [SEP]"
    assert len(texts) == 3
    assert not tally


def test_a_document_of_one_sentence_is_skipped_and_the_next_is_read() -> None:
    texts, tally = segments(document("one", "ab cd"), document("two", "a | b"), document("three", "c"), document("last", "d | e"))
    assert [text.document for text in texts] == ["two", "last"]
    assert tally.counts == {LEFT_OUT: 2}
    assert tally.first == {LEFT_OUT: "one"}


def test_a_sentence_that_fills_a_chunk_alone_skips_only_that_chunk() -> None:
    # The reference implementation skips the rest of the document here.
    texts, tally = segments(document("d", "abcdefgh | i | j"), max_length=10)
    assert [" ".join(text.pieces) for text in texts] == ["[CLS] i [SEP] j [SEP]"]
    assert [text.id for text in texts] == ["d/1"]
    assert tally.counts == {LEFT_OUT: 1}


@pytest.mark.parametrize("max_length", [5, 8, 16, 33, 128])
@pytest.mark.parametrize("seed", [0, 7])
def test_segments_equal_the_plain_ones(max_length: int, seed: int) -> None:
    documents = [random_document(f"doc{number}", number) for number in range(40)]
    texts, tally = segments(*documents, max_length=max_length, seed=seed)
    described = [plain_segments(one, max_length, seed) for one in documents]
    assert [parts(text) for text in texts] == [pair for made, _ in described for pair in made]
    assert tally.counts[LEFT_OUT] == sum(left_out for _, left_out in described)
    assert len(texts) > 5


@pytest.mark.parametrize("max_length", [5, 12, 20])
def test_parts_are_consecutive_tokens_of_the_document_in_order(max_length: int) -> None:
    documents = {f"doc{number}": random_document(f"doc{number}", 100 + number) for number in range(40)}
    texts, _ = segments(*documents.values(), max_length=max_length)
    ends: dict[str, int] = {}
    for text in texts:
        stream = [token for sentence in documents[text.document].sentences for token in tokens(sentence)]
        a, b = parts(text)
        assert a
        assert b
        assert len(a) + len(b) <= max_length - 3
        starts = stream.index(a[0]), stream.index(b[0])
        assert stream[starts[0] : starts[0] + len(a)] == a
        assert stream[starts[1] : starts[1] + len(b)] == b
        # In the order of the text, after the tokens of the document's previous segment.
        assert ends.get(text.document, 0) <= starts[0]
        assert starts[0] + len(a) <= starts[1]
        ends[text.document] = starts[1] + len(b)
        assert sorted({word for word in text.word_of if word >= 0}) == list(range(len(text.words)))


def test_a_part_can_begin_within_a_word() -> None:
    texts, _ = segments(*(random_document(f"doc{number}", number) for number in range(40)), max_length=12)
    assert any(piece.startswith("##") for text in texts for piece in (text.pieces[1], text.pieces[text.pieces.index("[SEP]") + 1]))


def test_segments_depend_only_on_the_seed_and_the_document() -> None:
    documents = [random_document(f"doc{number}", number) for number in range(12)]

    def by_document(order: list[Document], seed: int) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for text in segments(*order, max_length=12, seed=seed)[0]:
            found.setdefault(text.document, []).append(f"{text.id}: {' '.join(text.pieces)}")
        return found

    first = by_document(documents, 0)
    assert by_document(documents, 0) == first
    assert by_document(documents[::-1], 0) == first
    alone = by_document(documents[5:6], 0)
    assert alone == {name: found for name, found in first.items() if name == "doc5"}
    assert by_document(documents, 1) != first
    # The draw is different if the same sentences are in a document with another name.
    sentences = tuple(sentence for one in documents for sentence in one.sentences)
    lines = [[line.partition(" ")[2] for line in by_document([Document(name, sentences)], 0)[name]] for name in ("x", "y")]
    assert lines[0] != lines[1]


def test_chunks_contain_the_words_of_their_sentences() -> None:
    (chunk,) = clark_chunks(document("d", "ab c | d"), LETTERS, 100, 0, Tally())
    assert [word.form for word in chunk.words] == ["ab", "c", "d"]
    assert chunk.word_of == (0, 0, 1)
    assert chunk.second_words == (2,)
    assert chunk.sides() == ((chunk.ids, (0, 0, 1)), (chunk.second_ids, (2,)))


def plain_cut(a: list[int], b: list[int], room: int, rng: random.Random) -> tuple[list[int], list[int]]:
    a, b = list(a), list(b)
    while len(a) + len(b) > room:
        longer = a if len(a) > len(b) else b
        if rng.random() < 0.5:
            del longer[0]
        else:
            del longer[-1]
    return a, b


@settings(max_examples=200, deadline=None)
@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 60), st.integers())
def test_cutting_equals_removing_tokens_one_by_one(first: int, second: int, room: int, seed: int) -> None:
    a, b = list(range(first)), list(range(100, 100 + second))
    kept = cut_to(a, b, room, random.Random(seed))
    assert kept == plain_cut(a, b, room, random.Random(seed))
    assert sum(map(len, kept)) == min(first + second, room)


@pytest.mark.parametrize(
    ("first", "second", "room", "expected"),
    [
        (5, 5, 10, (5, 5)),
        (5, 5, 9, (5, 4)),  # equal lengths: the second part is cut
        (5, 5, 8, (4, 4)),
        (9, 2, 8, (6, 2)),
        (2, 9, 8, (2, 6)),
        (9, 2, 3, (2, 1)),
        (1, 1, 1, (1, 0)),
    ],
)
def test_lengths_after_cutting_equal_values_worked_by_hand(first: int, second: int, room: int, expected: tuple[int, int]) -> None:
    for seed in range(5):
        kept = cut_to(list(range(first)), list(range(second)), room, random.Random(seed))
        assert (len(kept[0]), len(kept[1])) == expected


def test_tokens_are_cut_from_both_ends_equally_often() -> None:
    starts = [cut_to(list(range(60)), [], 20, random.Random(seed))[0][0] for seed in range(200)]
    # 40 tosses of a fair coin per seed: the mean is 20, and the standard error of the mean of 200 seeds is 0.22.
    assert abs(sum(starts) / 200 - 20) < 1.2
    assert min(starts) > 0
    assert max(starts) < 40
