"""Reading and encoding in batches equals reading and encoding one by one, on unusual inputs of all kinds."""

from __future__ import annotations

import pickle
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headscope.core.document import Document, Mention, Sentence, Word
from headscope.core.tally import Tally
from headscope.corpora import read
from headscope.corpora.files import lines
from headscope.encoding import runs
from headscope.encoding.texts import Encoder
from headscope.encoding.tokenizer import Tokenizer
from headscope.errors import EncodingError, HeadscopeError
from helpers.families import FAMILIES, tokenizer, words
from plain_reading import PlainEncoder, PlainTokenizer, one_by_one

ALL = ["mini", *FAMILIES]
ODD = [
    "The",
    "cats",
    "don",
    "'t",
    "[SEP]",
    "</s>",
    "<unk>",
    "😀",
    "👩‍👩‍👧",
    "я",
    "\x07",
    "\u200b",
    "\u0301",
    "cat mat",
    " ",
    "▁",
    "Ġ",
    "a" * 70,
    "日本",
    ".",
    ",",
]
word = st.builds(Word, form=st.sampled_from(ODD), head=st.none() | st.integers(0, 4), space_after=st.booleans())
sentence = st.builds(Sentence, words=st.lists(word, max_size=7).map(tuple), paragraph=st.integers(0, 3))
document = st.builds(
    Document,
    id=st.just("d"),
    sentences=st.lists(sentence, max_size=5).map(lambda found: tuple(sorted(found, key=lambda one: one.paragraph))),
    keyphrases=st.sampled_from([(), ("cats",)]),
    label=st.sampled_from([None, "x"]),
)
kinds = st.fixed_dictionaries(
    {
        "unit": st.sampled_from(["sentence", "paragraph", "document", "pair", "segment"]),
        "overlong": st.sampled_from(["drop", "truncate", "window"]),
        "max_length": st.integers(8, 24),
        "segment_ids": st.sampled_from(["pair", "zeros"]),
        "decoder_start": st.sampled_from([None, 0]),
        "tags": st.sampled_from([None, "upos"]),
    }
)


def encoded(encoder: Encoder, documents: Iterable[Document]) -> tuple[list[Any], list[str]]:
    """All fields of each text, or the error, and the counts of the tally."""
    tally, found = Tally(), list[Any]()
    try:
        for text in encoder.texts(documents, tally):
            for side in (text, text.target):
                if side is not None:
                    arrays = (side.ids.tolist(), side.ids.dtype, side.segments.tolist(), side.segments.dtype)
                    found.append(
                        (side.id, side.annotation, *arrays, side.roles, side.word_of, side.pieces, side.label, side.tags, side.unknown)
                    )
    except EncodingError as error:
        found.append(str(error))
    return found, tally.lines()


@pytest.mark.parametrize("name", ALL)
@settings(max_examples=60, deadline=None)
@given(documents=st.lists(document, min_size=1, max_size=3), options=kinds)
def test_texts_encoded_in_batches_equal_texts_encoded_one_by_one(name: str, documents: list[Document], options: dict[str, Any]) -> None:
    hf = tokenizer(name).hf
    assert encoded(Encoder(Tokenizer(hf), **options), documents) == encoded(PlainEncoder(PlainTokenizer(hf), **options), documents)


def test_encoding_does_not_depend_on_what_was_tokenised_before() -> None:
    """One tokenizer is used twice, and then a copy that was pickled."""
    documents = [Document(f"d{number}", (Sentence(tuple(Word(form) for form in ODD[number:])),)) for number in range(len(ODD))]
    expected = encoded(PlainEncoder(PlainTokenizer(tokenizer("t5").hf)), documents)
    warm = Tokenizer(tokenizer("t5").hf)
    for own in (warm, warm, pickle.loads(pickle.dumps(warm))):
        assert encoded(Encoder(own), documents) == expected


@pytest.mark.parametrize("name", ["mini", "t5"])
def test_the_cache_of_words_is_bounded_and_excludes_long_words(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "REMEMBERED", 3)
    own = Tokenizer(tokenizer(name).hf)
    text = words("The cats_, the dog_, and a mat_. The cats_, the dog_, and a mat_.")
    assert own.tokens(text) == PlainTokenizer(tokenizer(name).hf).tokens(text)
    own.tokens(words("a b c d"))
    assert len(own._runs._known) <= max(3, len(text))
    assert own.tokens([Word("a" * 1000)]) == PlainTokenizer(tokenizer(name).hf).tokens([Word("a" * 1000)])
    assert "a" * 1000 not in own._runs._known


def test_an_error_in_a_later_sentence_is_raised_after_the_texts_before_it() -> None:
    bad = Document("d", (Sentence(words("a cat")), Sentence((Word("fine"), Word("\ud800"))), Sentence(words("a dog"))))
    found, _ = encoded(Encoder(tokenizer("mini")), [bad])
    assert [one[0] for one in found[:-1]] == ["d/1"]
    assert "ud800' cannot be written" in found[-1]


def test_windows_keep_mentions_heads_and_keyphrases_of_their_words() -> None:
    """A document with trees and mentions is split into three windows. Some mentions cross a border."""
    own = [Word(form, head=head, relation="dep") for form, head in [("a", 2), ("cat", 3), ("saw", 0), ("a", 5), ("dog", 3), (".", 3)]]
    mentions = (Mention("x", 0, 2), Mention("y", 3, 5), Mention("x", 8, 9), Mention("z", 5, 8))
    given_document = Document("d", (Sentence(tuple(own)),) * 3, mentions, ("dog",))
    options: dict[str, Any] = {"unit": "document", "overlong": "window", "max_length": 9}
    hf = tokenizer("mini").hf
    found = encoded(Encoder(Tokenizer(hf), **options), [given_document])
    assert found == encoded(PlainEncoder(PlainTokenizer(hf), **options), [given_document])
    assert len(found[0]) == 3
    assert found[0][0][1].heads[:3] == (1, 2, -1)
    assert [(mention.start, mention.end) for mention in found[0][0][1].mentions] == [(0, 2), (3, 5)]
    assert all(len(text[1].keywords) == len(text[1].words) and any(text[1].keywords) for text in found[0])


ROW = "{id}\t{form}\t{lemma}\t{upos}\t{xpos}\t_\t{head}\t{rel}\t_\t{misc}"
cell = st.sampled_from(["_", "", "a", "NOUN", "b c", "é"])
row = st.builds(
    ROW.format,
    id=st.sampled_from(["1", "2", "3", "4", "01", "1-2", "2-3", "3-2", "2.1", "x", ""]),
    form=st.sampled_from(["cat", "dog", "_", "", " ", "\u00a0", "é", "."]),
    lemma=cell,
    upos=st.sampled_from(["NOUN", "PUNCT", "SYM", "_", ""]),
    xpos=cell,
    head=st.sampled_from(["0", "1", "2", "3", "_", "9", "-1", "x", "٣", "1000000000"]),
    rel=cell,
    misc=st.sampled_from(["_", "SpaceAfter=No", "SpaceAfter=Nowhere", "Entity=(1-person)", "Gloss=a|SpaceAfter=No|Entity=(2"]),
)


@st.composite
def mostly_valid_rows(draw: st.DrawFn) -> list[str]:
    """Rows of a sentence that is valid more often than not."""
    size = draw(st.integers(1, 5))
    found = []
    for number in range(1, size + 1):
        if draw(st.integers(0, 4)) == 0:
            space = draw(st.sampled_from(["_", "SpaceAfter=No"]))
            found.append(
                ROW.format(
                    id=f"{number}-{number + draw(st.integers(0, 2))}",
                    form="x",
                    lemma="_",
                    upos="_",
                    xpos="_",
                    head="_",
                    rel="_",
                    misc=space,
                )
            )
        one = draw(row).split("\t")
        found.append(
            "\t".join([str(number), draw(st.sampled_from(["cat", "é", "."])), *one[2:6], str(draw(st.integers(0, size))), *one[7:]])
        )
    return found


sentences = st.lists(
    st.one_of(
        mostly_valid_rows(),
        st.lists(row | st.sampled_from(["1\tcat", "a\tb" * 9, "# text = x", "1\tcat\t_\t_\t_\t_\t0\t_\t_\t_\t2"]), min_size=1, max_size=4),
    ),
    min_size=1,
    max_size=4,
)


@pytest.mark.parametrize("form", ["conllu", "conllx"])
@settings(max_examples=150, deadline=None)
@given(blocks=sentences, end=st.sampled_from(["\n", "\r\n"]))
def test_sentences_read_by_columns_equal_those_read_by_rows(
    tmp_path_factory: pytest.TempPathFactory, form: str, blocks: list[list[str]], end: str
) -> None:
    path = tmp_path_factory.mktemp("columns") / f"a.{form}"
    path.write_text((end * 2).join(end.join(block) for block in blocks) + end, encoding="utf-8", newline="")
    assert documents_in(path, form) == _plainly(path, form)


def documents_in(path: Path, form: str) -> tuple[list[Document], list[str], str]:
    corpus = read(path, format=form, on_error="skip")
    try:
        first = str(list(read(path, format=form)))
    except HeadscopeError as error:
        first = str(error)
    try:
        return list(corpus), corpus.skipped.lines(), first
    except HeadscopeError as error:
        return [], [str(error)], first


def _plainly(path: Path, form: str) -> tuple[list[Document], list[str], str]:
    with one_by_one():
        return documents_in(path, form)


@settings(max_examples=200, deadline=None)
@given(
    pieces=st.lists(
        st.sampled_from([b"a", b"bc d", b"\n", b"\r\n", b"\r", b"\xff", b"\xc3\xa9", b"\xef\xbb\xbf", b"\x0b", b"\xe2\x80\xa8", b"\x85"]),
        max_size=30,
    ),
    size=st.integers(1, 9),
    longest=st.integers(4, 40),
)
def test_lines_read_in_blocks_equal_those_read_one_by_one(
    tmp_path_factory: pytest.TempPathFactory, pieces: list[bytes], size: int, longest: int
) -> None:
    path = tmp_path_factory.mktemp("lines") / "a.txt"
    path.write_bytes(b"".join(pieces))

    def found() -> list[Any]:
        got: list[Any] = []
        try:
            got.extend(lines(path))
        except HeadscopeError as error:
            got.append(str(error))
        return got

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("headscope.corpora.files._READ", min(size, longest))
        patch.setattr("headscope.corpora.files.LONGEST_LINE", longest)
        ours = found()
        with one_by_one():
            assert ours == found()
