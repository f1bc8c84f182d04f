"""Plain text of any size is read in bounded memory: long files, paragraphs and lines are cut, and cuts are reported."""

from __future__ import annotations

import math
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headscope.corpora import files as corpus_files
from headscope.corpora import read
from headscope.corpora.files import Meter, lines
from headscope.corpora.readers.text import CUT, LONGEST, plain_words, read_lines, read_text
from headscope.corpora.source import Source
from headscope.errors import CorpusError

Write = Callable[[str, str], Path]
PARAGRAPH = "The cat sat on the mat. It slept.\n\n"  # 33 characters and a blank line


def test_the_first_document_needs_only_a_bounded_part_of_the_file(write: Write) -> None:
    path = write("a.txt", PARAGRAPH * 60_000)  # 2.1 million characters
    corpus = read(path)
    first = next(iter(corpus))
    assert first.id == "a.txt#1"
    assert len(first.sentences) == 2 * (LONGEST // 33)
    assert (corpus.share or 1) * path.stat().st_size < LONGEST * 36 / 33 + (1 << 17)


@pytest.mark.parametrize("separator", ["\n\n", "\n", " "])
def test_memory_does_not_grow_with_the_file(write: Write, separator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_files, "_PIECE", 1 << 12)

    def peak(times: int) -> int:
        path = write(f"{times}.txt", f"The cat sat on the mat.{separator}" * times)
        tracemalloc.start()
        try:
            assert sum(len(document.words) for document in read_text(Source(path), longest=5000)) == 6 * times
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(6000) < 1.5 * peak(2000)  # files of 140 and 50 KB


def test_a_long_text_is_cut_between_paragraphs(write: Write) -> None:
    source = Source(write("a.txt", "Aa bb. Cc\n\nDd ee\n\nFf\n\nGg hh ii jj\n"))
    found = [
        (document.id, [(sentence.paragraph, sentence.text) for sentence in document.sentences])
        for document in read_text(source, longest=14)
    ]
    assert found == [
        ("a.txt#1", [(0, "Aa bb."), (0, "Cc"), (1, "Dd ee")]),
        ("a.txt#2", [(0, "Ff"), (1, "Gg hh ii jj")]),
    ]
    assert source.tally.lines() == [f"2 {CUT} (first: line 5 of a.txt)"]


def test_a_long_paragraph_is_cut_between_sentences(write: Write) -> None:
    source = Source(write("a.txt", "Aa bb. Cc\ndd. Ee ff.\nGg hh. ii\n\nJj"))
    documents = list(read_text(source, longest=14))
    assert [[sentence.text for sentence in document.sentences] for document in documents] == [
        ["Aa bb."],
        ["Cc dd."],
        ["Ee ff.", "Gg hh. ii"],
        ["Jj"],
    ]
    assert [sentence.paragraph for sentence in documents[2].sentences] == [0, 0]


def test_a_text_with_keyphrases_is_not_cut(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"{'x' * 10_000}\n\n" * 110)
    (tmp_path / "a.key").write_text("cat\n")
    (document,) = read(tmp_path)
    assert (len(document.sentences), len(document.words)) == (110, 110)


def test_many_lines_without_blank_lines_are_cut(write: Write) -> None:
    documents = read_lines(Source(write("a.txt", "x y\n" * 7 + "\nz\n")), longest=18)
    assert [(document.id, len(document.sentences)) for document in documents] == [("a.txt#1#1", 6), ("a.txt#1#2", 1), ("a.txt#2", 1)]


def pieces(path: Path) -> list[tuple[int, str]]:
    return [(line.number, line.text) for line in lines(path, pieces=True)]


def test_a_long_line_is_read_in_pieces(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_files, "_PIECE", 8)
    path = write("a.txt", "\ufeffab cd efghijklmnop qr\nst\n" + " " * 20 + "\nuv" + " " * 20 + "wx\n" + " " * 9)
    assert pieces(path) == [(1, "ab "), (1, "cd "), (1, "efghijklmnop "), (1, "qr"), (2, "st"), (3, " " * 4), (4, "uv      "), (4, "wx")]
    (document,) = read(path)
    assert [(sentence.paragraph, sentence.text) for sentence in document.sentences] == [(0, "ab cd efghijklmnop qr st"), (1, "uv wx")]


def test_an_error_in_a_later_piece_names_the_position_in_the_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_files, "_PIECE", 8)
    path = tmp_path / "a.txt"
    path.write_bytes(b"ab cd ef gh\xff ij\n")
    with pytest.raises(CorpusError, match=r"line 1 of .*a.txt: byte 0xff at position 12 is not UTF-8"):
        list(read(path))


def test_a_long_line_without_white_space_is_refused(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_files, "_PIECE", 8)
    monkeypatch.setattr(corpus_files, "_LONGEST_WORD", 30)
    assert pieces(write("a.txt", "x" * 30)) == [(1, "x" * 30)]
    with pytest.raises(CorpusError, match=r"line 2 of .*there is no white space in 30 bytes\. Check that this is a text file"):
        pieces(write("b.txt", "a\n" + "x" * 40))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.text(alphabet="aA. \n\t\u3000é", min_size=1, max_size=120), longest=st.integers(1, 40))
def test_no_word_is_lost_wherever_a_text_is_cut(tmp_path: Path, text: str, longest: int) -> None:
    path = tmp_path / "a.txt"
    path.write_text(f"x{text}", encoding="utf-8", newline="")
    whole = next(read_text(Source(path), math.inf))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(corpus_files, "_PIECE", 8)
        assert next(read_text(Source(path), math.inf)) == whole
        parts = list(read_text(Source(path), longest))
    assert [word.form for part in parts for word in part.words] == f"x{text}".split() == [word.form for word in whole.words]
    assert all(part.id == f"a.txt#{number}" for number, part in enumerate(parts, start=1)) or [part.id for part in parts] == ["a.txt"]


def test_equal_words_are_one_object_if_they_are_short() -> None:
    first, second, other, *long = plain_words(f"cat cat dog {'x' * 40} {'x' * 40}")
    assert first is second
    assert first is not other
    assert long[0] is not long[1]


def test_the_layers_of_a_text_are_known_without_reading_it(write: Write) -> None:
    corpus = read(write("a.txt", PARAGRAPH))
    assert corpus.layers({"trees"}) == set()
    assert corpus.share == 0.0


def test_the_meter_shows_how_much_of_a_text_was_read(write: Write) -> None:
    path = write("a.txt", "Aa\n\n" * 5000)
    meter = Meter([path])
    next(read_text(Source(path, meter=meter), longest=100))
    assert meter.share * 20_000 < 300
    assert len(next(read_text(Source(path), longest=math.inf)).sentences) == 5000
