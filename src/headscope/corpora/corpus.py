"""A corpus: documents that can be iterated as often as needed without being held in memory."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import astuple, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from headscope.core.document import Document
from headscope.core.hashing import Unique
from headscope.core.paths import printable
from headscope.core.tally import Tally
from headscope.corpora.automatic import SOUGHT, marks, summed_up
from headscope.corpora.files import Meter, digest, joint_hash
from headscope.corpora.formats import PAIRED, PLAIN, READERS
from headscope.corpora.inputs import with_columns
from headscope.corpora.readers.folders import KEYS, folder_hash, listing, stems
from headscope.corpora.source import Source
from headscope.corpora.spool import MEMORY, ONCE, spool_of
from headscope.errors import CorpusError, HeadscopeError

OnError = Literal["raise", "skip"]
_MARKED = ("conllu", "conllx")  # formats that can mark automatic annotation
_Stamp = tuple[int, int, int, int]
_REMEDY = "Read it again when it no longer changes; work already begun on it must be restarted with --overwrite"


class Corpus:
    """Documents from files, or from memory. Ids are unique: the second document `x` is named `x#2`.

    `skipped` counts what the last iteration, complete or not, skipped.
    """

    def __init__(self, paths: tuple[Path, ...], format: str, on_error: OnError = "raise", columns: Mapping[str, str] | None = None) -> None:
        """`columns` are the names that tables have for `text`, `id` and others."""
        if on_error not in ("raise", "skip"):
            raise HeadscopeError(f"on_error is {on_error!r}", "Use raise or skip")
        if columns and format not in PAIRED:
            problem = f"columns are named ({', '.join(columns)}), and {format} has no columns to name"
            raise HeadscopeError(problem, f"Name columns of {', '.join(PAIRED)} files, or of tables in memory")
        self.paths = paths
        self.format = format
        self.on_error = on_error
        self.columns = dict(columns or {})
        self.passed_over: tuple[Path, ...] = ()  # files of a folder that are not corpora
        self.skipped = Tally()
        self._spools = [spool for path in paths if (spool := spool_of(path)) is not None]  # temporary files are kept as long as the corpus
        self._memory: tuple[Document, ...] | None = None
        self._meter = Meter(())
        self._watch = Watch(self._as_hashed)

    @classmethod
    def of(cls, documents: Iterable[Document]) -> Corpus:
        """A corpus of documents in memory; its format is `memory`."""
        corpus = cls((), "memory")
        corpus._memory = tuple(documents)
        return corpus

    def __iter__(self) -> Iterator[Document]:
        # A separate tally for each iteration, so that an older iteration that still runs does not write into it.
        self.skipped = self.new_tally()
        self._meter = Meter(self._files)
        self._watch.begin(self._files)
        return _unique(self._read(self.skipped, self._meter) if self._memory is None else iter(self._memory))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the corpus in specifications: its files, `-` for standard input, or `memory`."""
        if self._memory is not None:
            return (MEMORY,)
        spools = ((path, spool_of(path)) for path in self.paths)
        return tuple(with_columns(str(path), self.columns) if spool is None else spool.called for path, spool in spools)

    def new_tally(self) -> Tally:
        """A tally for one pass, with what is known before the pass."""
        tally = Tally()
        for spool in self._spools:
            if spool.once:
                tally.add(ONCE, spool.whole, read=True)
        for path in self.passed_over:
            tally.add("files of a folder skipped: their names show no format, or another one", printable(path.name))
        return tally

    @property
    def share(self) -> float | None:
        """The share of the files that the last iteration has read so far, from 0 to 1; None in memory."""
        return self._meter.share if self._memory is None else None

    @cached_property
    def pairs(self) -> bool:
        """Whether each document is a pair of paragraphs: all files are JSONL or tables, and begin with a pair."""
        return self.format in PAIRED and all(PAIRED[self.format](path, self.columns) for path in self.paths)

    def layers(self, wanted: set[str]) -> set[str]:
        """The requested layers (`trees`, `mentions`, `labels`) that the corpus has; it is read until all are found."""
        present: set[str] = set()
        for document in () if self.format in PLAIN else self:
            present |= document.layers & wanted
            if present == wanted:
                break
        return present

    def hash(self) -> str:
        """SHA-256 of the content, the same for a file and its .gz or .xz; of a folder also of the names in it."""
        return self._hash

    @cached_property
    def _hash(self) -> str:
        if self._memory is None:
            if self.format not in KEYS:
                named = [json.dumps(self.columns, sort_keys=True)] if self.columns else []
                return joint_hash([*(self._digests[path][0] for path in self.paths), *named])
            self._watch.begin(self._files)
            digest_of_all = joint_hash([folder_hash(path, self.format) for path in self.paths])
            self._watch.begin(self._files)
            return digest_of_all
        sha = hashlib.sha256()
        for document in self._memory:
            # Without the last fields if they are empty: hashes from before these fields stay the same.
            older = 0 if document.metadata else 1 if document.automatic else 2
            fields = astuple(document)
            sha.update(json.dumps(fields[: len(fields) - older], sort_keys=True).encode() + b"\n")
        return sha.hexdigest()

    @cached_property
    def automatic(self) -> str | None:
        """The parser that made the annotation of all documents or of some; None if no document is marked so."""
        if self._memory is not None:
            return summed_up(document.automatic for document in self._memory)
        if self.format not in _MARKED:
            return None
        # Nearly all files have no mark, which is known from the pass that hashed them.
        return summed_up(mark for path in self.paths for mark in (marks(path) if self._digests[path][1] else (None,)))

    @cached_property
    def _digests(self) -> dict[Path, tuple[str, bool]]:
        """The hash of each file, and whether it may be marked as annotated by a parser."""
        self._watch.begin(self.paths)
        digests = {path: digest(path, SOUGHT) for path in self.paths}
        self._watch.begin(self.paths)
        return digests

    def _as_hashed(self, path: Path) -> bool:
        """Whether a file still has the content that was hashed; False if it was not hashed, or only together with
        others.
        """
        return path in self.__dict__.get("_digests", {}) and digest(path)[0] == self._digests[path][0]

    @property
    def _files(self) -> Sequence[Path]:
        return [file for path in self.paths for file in listing(path, self.format).files] if self.format in KEYS else self.paths

    def _read(self, tally: Tally, meter: Meter) -> Iterator[Document]:
        for path in self.paths:
            yield from self.read_one(path, tally, meter)

    def read_one(self, path: Path, tally: Tally, meter: Meter | None = None) -> Iterator[Document]:
        """The documents of one of the paths, with their ids there; what is skipped is counted in `tally`."""
        before = tally.counts.total()
        empty = True
        files = stems(path, self.format) if self.format in KEYS else {}
        with closing(Source(path, self.on_error == "skip", tally, meter, self.columns)) as source:
            for document in READERS[self.format](source):
                empty = False
                for file in files.get(document.id, (path,)):
                    self._watch.check(file)
                yield document
        if empty and tally.counts.total() == before:
            spool = spool_of(path)
            whole = path if spool is None else spool.whole
            raise CorpusError(whole, None, f"there is no document in it (read as {self.format})", "Check the file and its format")

    def check(self, path: Path) -> None:
        """Raise an error if a file has changed since it was first read."""
        self._watch.check(path)


def _unique(documents: Iterator[Document]) -> Iterator[Document]:
    names = Unique()
    for document in documents:
        id = names.of(document.id)
        yield document if id == document.id else replace(document, id=id)


class Watch:
    """Detects changes of files. `same` tells whether a file that looks changed still has the same content."""

    def __init__(self, same: Callable[[Path], bool]) -> None:
        self._same = same
        self._stamps: dict[Path, _Stamp] = {}

    def begin(self, paths: Sequence[Path]) -> None:
        """Remember the files that are read now. Raise an error if a known one has changed, or if files were added or
        removed.
        """
        known = bool(self._stamps)
        for path in paths:
            if known and path not in self._stamps:
                raise CorpusError(path, None, "the file was not there before", _REMEDY)
            self.check(path)

    def check(self, path: Path) -> None:
        """Raise an error if a file has changed since it was first read."""
        now = _stamp(path)
        before = self._stamps.get(path, now)
        if now != before and (now is None or not self._same(path)):
            raise CorpusError(path, None, f"the file {'was removed' if now is None else 'has changed'} while it was being read", _REMEDY)
        if now is not None:
            self._stamps[path] = now


def _stamp(path: Path) -> _Stamp | None:
    try:
        status = path.stat()
    except OSError:  # opening it will raise the error
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def pick_sentence(corpus: Corpus, name: str) -> Document:
    """The sentence with this id, or with this number from 1 over the whole corpus, as a document."""
    count = 0
    numbered: Document | None = None
    for document in corpus:
        for place, sentence in enumerate(document.sentences):
            count += 1
            if sentence.id == name:
                return document.part(place, place + 1)
            if name == str(count):
                numbered = document.part(place, place + 1)
    if numbered is None:
        where = ", ".join(Path(name).name for name in corpus.names)
        raise HeadscopeError(f"{where} has no sentence {name!r}", f"Use its id (# sent_id) or a number from 1 to {count}")
    return numbered
