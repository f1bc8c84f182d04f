"""A corpus whose files change while it is read."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from headscope.corpora import read
from headscope.errors import CorpusError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(f'{{"text": "Text {number} is here."}}\n' for number in range(4)))
    return path


def appended(path: Path) -> None:
    with path.open("a") as stream:
        stream.write('{"text": "One more."}\n')


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def replaced(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes().replace(b"Text 3", b"Word 3"))  # the same size
    times = path.stat()
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))  # and the same time
    other.replace(path)


@pytest.mark.parametrize("change", [appended, truncated, replaced])
@pytest.mark.parametrize("hashed", [False, True])
def test_a_change_between_documents_is_detected_before_the_next(file: Path, change, hashed: bool) -> None:  # type: ignore[no-untyped-def]
    corpus = read(file)
    if hashed:
        corpus.hash()
    documents = iter(corpus)
    next(documents)
    change(file)
    with pytest.raises(CorpusError, match="has changed while it was being read"):
        next(documents)


@pytest.mark.parametrize("change", [appended, truncated, replaced])
def test_a_change_between_hashing_and_reading_is_detected(file: Path, change) -> None:  # type: ignore[no-untyped-def]
    corpus = read(file)
    corpus.hash()
    change(file)
    with pytest.raises(CorpusError, match="has changed"):
        list(corpus)


def test_a_change_between_reading_and_hashing_is_detected(file: Path) -> None:
    corpus = read(file)
    list(corpus)
    appended(file)
    with pytest.raises(CorpusError, match="has changed"):
        corpus.hash()


def test_a_removed_file_is_detected(file: Path) -> None:
    documents = iter(read(file))
    next(documents)
    file.unlink()
    with pytest.raises(CorpusError, match="was removed"):
        list(documents)


def test_an_identical_copy_of_a_file_is_not_a_change(file: Path) -> None:
    corpus = read(file)
    corpus.hash()
    documents = iter(corpus)
    next(documents)
    copy = file.with_name("copy")
    copy.write_bytes(file.read_bytes())
    copy.replace(file)
    assert len(list(documents)) == 3
    assert len(list(corpus)) == 4


def test_a_changed_folder_is_detected(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.txt").write_text(f"A text on cats, called {name}.")
        (tmp_path / f"{name}.key").write_text("cats\n")
    corpus = read(tmp_path)
    corpus.hash()
    (tmp_path / "b.key").write_text("texts\n")
    with pytest.raises(CorpusError, match=r"b\.key: the file has changed"):
        list(corpus)
    corpus = read(tmp_path)
    corpus.hash()
    (tmp_path / "c.txt").write_text("A third.")
    (tmp_path / "c.key").write_text("third\n")
    with pytest.raises(CorpusError, match="was not there before"):
        list(corpus)
