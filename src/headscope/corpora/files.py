"""Lines and content hashes of corpus files: plain, .gz or .xz, always streamed."""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import zipfile
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from operator import length_hint
from pathlib import Path
from typing import IO, NamedTuple, cast

from headscope.core.paths import kind_of, problem_of
from headscope.errors import CorpusError

COMPRESSIONS = (".gz", ".xz")
_BOM = b"\xef\xbb\xbf"
_CHUNK = 1 << 20
_READ = 1 << 16  # bytes that are split into lines together
LONGEST_LINE = 1 << 26  # bytes: whole books fit
_PIECE = 1 << 16  # bytes per read if lines may come in pieces
_LONGEST_WORD = 1 << 20  # bytes without white space, if lines may come in pieces
_ARRAYS = 1 << 28  # bytes to which any .npz may unpack
UNPACKED, RATIO = 1 << 24, 300  # bytes to which any compressed file may unpack; beyond them, the largest allowed ratio to its size


class Line(NamedTuple):
    """A numbered line without its line end. `invalid` names the byte that is not UTF-8."""

    number: int
    text: str
    invalid: str | None = None


_Raw = tuple[int, int, bytes]  # the number of a line, how many of its bytes came before, and those that come now


class Meter:
    """The progress of reading some files, in bytes on disk, for a progress bar."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._total = sum(path.stat().st_size for path in paths if kind_of(path) == "file")
        self._passed = 0.0
        self._current: IO[bytes] | None = None
        self._reached = 0  # in the file that is being read
        self._waiting: tuple[Iterator[Line], float] = (iter(()), 0.0)  # lines that were read but not used yet, and bytes of each

    def enter(self, raw: IO[bytes]) -> None:
        """Follow a file that is now being read."""
        self._current = raw
        self._reached = 0

    def wait(self, lines: Iterator[Line], count: int) -> None:
        """Note that this many lines were read together; they count as the iterator yields them."""
        if self._current is not None:
            before, self._reached = self._reached, self._current.tell()
            self._waiting = lines, (self._reached - before) / max(1, count)

    def leave(self) -> None:
        """Add the bytes that were read of the followed file."""
        if self._current is not None and not self._current.closed:
            self._passed += self._here(self._current)
        self._current = None
        self._waiting = iter(()), 0.0

    @property
    def share(self) -> float:
        """The share of the bytes that has been read, from 0 to 1."""
        here = self._here(self._current) if self._current is not None else 0
        return min(1.0, (self._passed + here) / self._total) if self._total else 0.0

    def _here(self, current: IO[bytes]) -> float:
        lines, size = self._waiting
        return current.tell() - length_hint(lines) * size


def require_file(path: Path) -> None:
    """Raise CorpusError unless `path` is a regular file: a corpus is read more than once."""
    if kind_of(path) == "folder":
        whole = "a folder is read as a whole if it contains texts (.txt) and their keys (.key, .uncontr, .contr or .ann)"
        raise CorpusError(path, None, "this is a directory", f"Name the files in it, for example {path}/*.conllu; {whole}")
    if problem := problem_of(path):
        raise CorpusError(path, None, *problem)


@contextmanager
def opened(path: Path, meter: Meter | None = None) -> Iterator[IO[bytes]]:
    """The decompressed bytes of a file; errors while reading them become a CorpusError."""
    require_file(path)
    try:
        with path.open("rb") as raw:
            if meter is not None:
                meter.enter(raw)
            try:
                yield _decompressed(raw, path)
            finally:
                if meter is not None:
                    meter.leave()
    except EOFError:
        raise CorpusError(path, None, f"the {path.suffix} data ends too early", "Copy or download the file again") from None
    except (gzip.BadGzipFile, zlib.error, lzma.LZMAError) as error:
        remedy = "Copy or download the file again, or remove the suffix from its name if it is not compressed"
        raise CorpusError(path, None, f"this is not valid {path.suffix} data ({error})", remedy) from None
    except OSError as error:
        raise CorpusError(path, None, f"the file cannot be read ({error.strerror or error})", "Check its permissions") from None


def lines(path: Path, meter: Meter | None = None, empty: bool = False, pieces: bool = False) -> Generator[Line]:
    """Every line of a file, numbered from 1; an empty file is a CorpusError unless it may be `empty`.

    With `pieces`, a long line comes as several of the same number, cut after white space, so that it may have any
    length.
    """
    blank = True
    with opened(path, meter) as stream:
        for some in _decoded_pieces(stream, path) if pieces else _whole(stream, path):
            blank = blank and not any(line.text.strip() for line in some)
            waiting = iter(some)
            if meter is not None and not pieces:
                meter.wait(waiting, len(some))
            yield from waiting
    if blank and not empty:
        raise CorpusError(path, None, "the file is empty", "Check that it was written or downloaded completely")


def _whole(stream: IO[bytes], path: Path) -> Iterator[list[Line]]:
    """All lines of a file, split in large chunks."""
    number, held, size = 1, list[bytes](), 0
    while chunk := stream.read1(_READ):  # type: ignore[attr-defined]  # all streams here are buffered
        end = chunk.rfind(b"\n") + 1
        held.append(chunk[:end] if end else chunk)
        size += len(held[-1])
        if end:
            found = _split(b"".join(held), number, path)
            yield found
            number += len(found)
            held, size = ([chunk[end:]], len(chunk) - end) if end < len(chunk) else ([], 0)
        elif size > LONGEST_LINE:
            raise _too_long(path, number)
    if held:
        yield _split(b"".join(held), number, path)


def _split(raw: bytes, number: int, path: Path) -> list[Line]:
    """The lines in some bytes, the first of which has that number."""
    if len(raw) > LONGEST_LINE and (raw.find(b"\n") + 1 or len(raw)) > LONGEST_LINE:  # later lines are shorter
        raise _too_long(path, number)
    if number == 1:
        raw = raw.removeprefix(_BOM)
    try:
        texts = raw.decode().split("\n")
    except UnicodeDecodeError:
        return [_decoded(number + place, line.rstrip(b"\r")) for place, line in enumerate(raw.removesuffix(b"\n").split(b"\n"))]
    if raw.endswith(b"\n"):
        del texts[-1]
    if b"\r" in raw:
        texts = [text.rstrip("\r") for text in texts]
    return list(map(Line, range(number, number + len(texts)), texts))


def _too_long(path: Path, number: int) -> CorpusError:
    return CorpusError(path, number, f"the line is longer than {LONGEST_LINE:,} bytes", "Check that this is a text file")


def _decoded_pieces(stream: IO[bytes], path: Path) -> Iterator[tuple[Line]]:
    """All lines of a file, long ones in pieces."""
    for number, before, raw in _pieces(stream, path):
        if number == 1 and not before:
            raw = raw.removeprefix(_BOM)
        yield (_decoded(number, raw.rstrip(b"\r\n"), before),)


def _pieces(stream: IO[bytes], path: Path) -> Iterator[_Raw]:
    """Lines in pieces. A piece that is only white space within a line is dropped: it would look like a blank line."""
    number, before, held, filled = 1, 0, b"", False
    for read in iter(partial(stream.readline, _PIECE), b""):
        held += read
        ends = held.endswith(b"\n")
        cut = len(held) if ends else max(held.rfind(b" "), held.rfind(b"\t")) + 1
        piece, held = held[:cut], held[cut:]
        if len(held) > _LONGEST_WORD:
            remedy = "Check that this is a text file, and put spaces between words"
            raise CorpusError(path, number, f"there is no white space in {_LONGEST_WORD:,} bytes", remedy)
        if (ends and not filled) or piece.decode(errors="replace").strip():
            yield number, before, piece
            filled = True
        before += len(piece)
        if ends:
            number, before, filled = number + 1, 0, False
    if held:
        yield number, before, held


def check_archive(path: Path) -> None:
    """Refuse an .npz whose arrays unpack to absurdly more than its size; files that are not archives pass."""
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(entry.file_size for entry in archive.infolist())
    except (OSError, ValueError, NotImplementedError, zipfile.BadZipFile):
        return
    if unpacked > max(_ARRAYS, RATIO * path.stat().st_size):
        raise CorpusError(path, None, f"its arrays would unpack to {unpacked:,} bytes", "Check that this is the right file")


def content_hash(paths: Iterable[Path]) -> str:
    """SHA-256 of the decompressed content of one file, or of the list of hashes of several."""
    return joint_hash([digest(path)[0] for path in paths])


def joint_hash(digests: Sequence[str]) -> str:
    """One hash for several: that of their list, or the hash itself if there is only one."""
    return digests[0] if len(digests) == 1 else hashlib.sha256("\n".join(digests).encode()).hexdigest()


def base_name(path: Path) -> str:
    """The file name without .gz or .xz, so that compressing a file changes no document id."""
    return path.stem if path.suffix in COMPRESSIONS else path.name


def _decompressed(raw: IO[bytes], path: Path) -> IO[bytes]:
    if path.suffix not in COMPRESSIONS:
        return raw
    inner = gzip.open(raw) if path.suffix == ".gz" else lzma.open(raw)  # noqa: SIM115 - `raw` is closed by whoever opened it
    return cast("IO[bytes]", io.BufferedReader(_Unpacking(cast("IO[bytes]", inner), raw, path), 1 << 16))


class _Unpacking(io.RawIOBase):
    """The decompressed stream of a file; an error if it is absurdly larger than the file."""

    def __init__(self, inner: IO[bytes], raw: IO[bytes], path: Path) -> None:
        self._inner, self._raw, self._path = inner, raw, path
        self._passed = 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        piece = self._inner.read(len(buffer))
        buffer[: len(piece)] = piece
        self._passed += len(piece)
        if self._passed > UNPACKED and self._passed > RATIO * self._raw.tell():
            problem = f"it unpacks to more than {RATIO} times its size, which no text does"
            raise CorpusError(self._path, None, problem, "Unpack it first if you trust it")
        return len(piece)


def _decoded(number: int, raw: bytes, before: int = 0) -> Line:
    try:
        return Line(number, raw.decode())
    except UnicodeDecodeError as error:
        invalid = f"byte 0x{raw[error.start]:02x} at position {before + error.start + 1} is not UTF-8"
        return Line(number, raw.decode(errors="replace"), invalid)


def digest(path: Path, sought: bytes = b"") -> tuple[str, bool]:
    """SHA-256 of the decompressed content, and whether it contains the bytes `sought`, in one pass."""
    sha, holds, end = hashlib.sha256(), False, b""
    with opened(path) as stream:
        while chunk := stream.read(_CHUNK):
            sha.update(chunk)
            holds = holds or sought in chunk or sought in end + chunk[: len(sought)]
            end = (end + chunk)[-len(sought) :] if len(chunk) < len(sought) else chunk[-len(sought) :]
    return sha.hexdigest(), holds
