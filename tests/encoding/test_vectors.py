"""Word vectors from files and from an installed package."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from headscope.encoding.vectors import installed_vectors, read_vectors
from headscope.errors import CorpusError

TEXT = "the 0.5 -1 2\ncat 1e-1 0 3\n, 4 5 6\ncat 9 9 9\n"


def test_text_files_are_read_with_a_header_without_one_and_compressed(tmp_path: Path) -> None:
    plain, with_header, compressed = tmp_path / "glove.txt", tmp_path / "w2v.txt", tmp_path / "glove.txt.gz"
    plain.write_text(TEXT)
    with_header.write_text(f"3 3\n{TEXT}")
    compressed.write_bytes(gzip.compress(TEXT.encode()))
    for path in (plain, with_header, compressed):
        found = read_vectors(path, {"cat", ",", "dog"})
        assert found.words == ("cat", ",")
        np.testing.assert_array_equal(found.vectors, np.array([[0.1, 0, 3], [4, 5, 6]], dtype=np.float32))
        assert (found.first.tolist(), found.size) == ([0.5, -1, 2], 3)


def test_npz_files_are_read_as_float32(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, words=np.array(["the", "cat"]), vectors=np.array([[1, 2], [3, 4]], dtype=np.float16))
    found = read_vectors(path, {"cat"})
    assert (found.words, found.vectors.tolist(), found.first.tolist()) == (("cat",), [[3, 4]], [1, 2])
    assert found.vectors.dtype == np.float32
    assert read_vectors(path, {"dog"}).vectors.shape == (0, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("the 1 2\ncat 1\n", r"line 2 of .*'cat' has 1 numbers where the first word has 2"),
        ("the 1 2\ncat 1 x\n", r"line 2 of .*no numbers after the word: '1 x'"),
        ("the\n", r"line 1 of .*no numbers after the word: ''"),
        ("the 1 nan\n", "a number is not finite"),
        ("5 2\n", "it has no vectors"),
        ("", "the file is empty"),
    ],
)
def test_invalid_text_files_are_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "bad.txt"
    path.write_text(text)
    with pytest.raises(CorpusError, match=message):
        read_vectors(path, {"cat"})


def test_missing_and_invalid_npz_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "bad.npz"
    with pytest.raises(CorpusError, match="no such file"):
        read_vectors(path, set())
    path.write_text("x")
    with pytest.raises(CorpusError, match="not an npz"):
        read_vectors(path, set())
    np.savez(path, words=np.array(["a"]))
    with pytest.raises(CorpusError, match="no array 'vectors"):
        read_vectors(path, set())
    np.savez(path, words=np.array(["a"]), vectors=np.zeros((2, 3)))
    with pytest.raises(CorpusError, match=r"strings \[n\] and numbers"):
        read_vectors(path, set())
    np.savez(path, words=np.array(["a"], dtype=object), vectors=np.zeros((1, 3)))
    with pytest.raises(CorpusError, match="not an npz of plain arrays"):  # nothing is unpickled
        read_vectors(path, set())


def test_vectors_of_an_installed_package_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headscope.encoding.vectors.PACKAGE", "glove_for_a_test")
    assert installed_vectors({"cat"}) is None
    data = tmp_path / "glove_for_a_test" / "data"
    data.mkdir(parents=True)
    (data.parent / "__init__.py").touch()
    pq.write_table(pa.table({"index": ["the", "cat"]}), data / "glove_6B_index.parquet")
    np.save(data / "glove_6B_50d_emb.npy", np.asfortranarray([[1.0, 2.0], [3.0, 4.0]], dtype=np.float32))
    monkeypatch.syspath_prepend(tmp_path)
    found = installed_vectors({"cat"})
    assert found is not None
    assert (found.words, found.vectors.tolist()) == (("cat",), [[3, 4]])
    (data / "glove_6B_50d_emb.npy").write_bytes(b"x")
    with pytest.raises(CorpusError, match="the vectors in the package cannot be read"):
        installed_vectors({"cat"})
