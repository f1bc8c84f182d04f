from __future__ import annotations

import gzip
import hashlib
import lzma
from pathlib import Path

import pytest

from headscope.corpora import Corpus, read
from headscope.corpora.files import Line, base_name, content_hash, lines
from headscope.errors import CorpusError


def test_lines_are_numbered_and_stripped_of_line_ends_and_byte_order_mark(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbfone\r\ntwo\n\nvier\xc3\xa4")
    assert list(lines(path)) == [Line(1, "one"), Line(2, "two"), Line(3, ""), Line(4, "vierä")]


def test_other_separators_of_str_splitlines_do_not_end_a_line(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("a\u2028b\x0bc\x85d\n".encode())
    assert list(lines(path)) == [Line(1, "a\u2028b\x0bc\x85d")]


def test_invalid_bytes_are_reported_with_their_position(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"fine\nna\xefve\n")
    fine, bad = lines(path)
    assert fine.invalid is None
    assert bad.invalid == "byte 0xef at position 3 is not UTF-8"


def test_compressed_files_read_and_hash_like_plain_ones(tmp_path: Path) -> None:
    content = b"Ein Satz.\nNoch einer.\n"
    plain, gz, xz = tmp_path / "a.txt", tmp_path / "a.txt.gz", tmp_path / "a.txt.xz"
    plain.write_bytes(content)
    gz.write_bytes(gzip.compress(content))
    xz.write_bytes(lzma.compress(content))
    assert list(lines(plain)) == list(lines(gz)) == list(lines(xz))
    assert content_hash([plain]) == content_hash([gz]) == content_hash([xz]) == hashlib.sha256(content).hexdigest()
    assert base_name(plain) == base_name(gz) == base_name(xz) == "a.txt"


def test_the_hash_of_several_files_depends_on_their_boundaries(tmp_path: Path) -> None:
    paths = []
    for name, content in {"1": "ab", "2": "c", "3": "a", "4": "bc"}.items():
        paths.append(tmp_path / name)
        paths[-1].write_text(content)
    assert content_hash(paths[:2]) != content_hash(paths[2:])
    digests = [hashlib.sha256(b"ab").hexdigest(), hashlib.sha256(b"c").hexdigest()]
    assert content_hash(paths[:2]) == hashlib.sha256("\n".join(digests).encode()).hexdigest()


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.txt", b"", "the file is empty"),
        ("a.txt", b" \n\t\r\n\n", "the file is empty"),
        ("a.txt.gz", b"", "the file is empty"),
        ("a.txt.gz", gzip.compress(b"\n", mtime=0), "the file is empty"),
        ("a.txt.gz", gzip.compress(b"text" * 1000, mtime=0)[:-10], "the .gz data ends too early"),
        ("a.txt.gz", b"plain text", "this is not valid .gz data"),
        ("a.txt.xz", lzma.compress(b"text" * 1000)[:-10], "the .xz data ends too early"),
        ("a.txt.xz", b"plain text, long enough", "this is not valid .xz data"),
    ],
)
def test_empty_truncated_and_invalid_files_are_refused(tmp_path: Path, name: str, content: bytes, problem: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(CorpusError) as caught:
        list(lines(path))
    assert str(caught.value).startswith(f"{path}: {problem}")
    assert caught.value.remedy


def test_gzip_data_corrupt_in_the_middle_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.txt.gz"
    raw = bytearray(gzip.compress(bytes(range(256)) * 40))
    raw[20:40] = b"\xff" * 20
    path.write_bytes(raw)
    with pytest.raises(CorpusError, match=r"\.gz data"):
        list(lines(path))


def test_a_missing_file_and_a_directory_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match="there is no such file"):
        list(lines(tmp_path / "none.txt"))
    with pytest.raises(CorpusError, match=r"this is a directory\. Name the files in it"):
        list(lines(tmp_path))


def test_share_is_0_before_and_1_after_reading(tmp_path: Path) -> None:
    paths = []
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("One line.\n" * 3000)
        paths.append(tmp_path / name)
    corpus = read(*paths, format="lines")
    assert corpus.share == 0
    assert len(list(corpus)) == 2
    assert corpus.share == 1
    assert Corpus.of([]).share is None
