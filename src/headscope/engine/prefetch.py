"""Prefetching: separate processes read and encode a corpus; their texts are joined in the order of the corpus.

One process encodes some hundred thousand tokens per second, and GPUs compute faster than that. Encoding is nearly all
of the work on plain text, so every reader reads all of it and encodes every n-th document. Annotated files also take
long to read: if there are several, they are divided among the readers. Texts stay packed in this process, which cuts
them into shards by their recorded sizes. The texts, their order and the counts are the same as if one process had read
them. If a document has the name of a document in an earlier file, this process reads the rest of the file itself,
since the names of later documents then depend on other files.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import queue
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple

from headscope.core.allocation import rare_collections
from headscope.core.hashing import Unique
from headscope.core.paths import kind_of
from headscope.core.tally import Tally
from headscope.corpora import Corpus
from headscope.corpora.files import Meter
from headscope.corpora.formats import PAIRED, PLAIN
from headscope.corpora.readers.folders import KEYS
from headscope.encoding.texts import Encoder
from headscope.engine.child_processes import end_with_parent, uninterrupted
from headscope.engine.packed_texts import PackedDocument, PackedTexts
from headscope.errors import HeadscopeError

HELD = 256 << 20  # bytes of packed texts that may wait here, from all readers together
PARCEL = 1 << 18  # bytes that are sent at a time
MOST = 8  # readers by default, at most
LEAST = 1 << 20  # bytes of a corpus that is worth starting readers by default
QUICK = {*PLAIN, *PAIRED}  # formats that are read much faster than they are encoded


class _Documents(NamedTuple):
    """Documents of one file, and the share of the file that was read when they were sent."""

    documents: list[PackedDocument]
    share: float


class _EndOfFile(NamedTuple):
    """The end of a file, and what its reader skipped."""

    skipped: Tally


class _Failure(NamedTuple):
    """An error that ended a reader."""

    problem: str
    remedy: str


class Prefetcher:
    """The texts of a corpus of files, read by several processes."""

    def __init__(self, corpus: Corpus, readers: int) -> None:
        self._corpus = corpus
        self._readers = readers
        self.share = 0.0

    @staticmethod
    def can(corpus: Corpus, readers: int) -> bool:
        """Whether a corpus can be prefetched: it must consist of files, none of which is a folder."""
        return readers > 0 and bool(corpus.paths) and corpus.format not in KEYS

    @staticmethod
    def usual(corpus: Corpus, device: str) -> int:
        """The default number of readers: none on a CPU, whose cores are busy, or for a small corpus; with a GPU, one
        fewer than there are cores, at most MOST.
        """
        worth = device != "cpu" and Prefetcher.can(corpus, 1) and sum(_sizes(corpus)) >= LEAST
        return min(MOST, (os.cpu_count() or 1) - 1) if worth else 0

    def documents(self, encoder: Encoder, dropped: Tally) -> Iterator[PackedTexts]:
        """The texts of each document, in order. Skipped texts are counted in `dropped`, and what the readers of files
        skip in the corpus's tally.
        """
        corpus = self._corpus
        corpus.skipped = skipped = corpus.new_tally()
        sizes = _sizes(corpus)
        total, passed, names = max(1, sum(sizes)), 0, Unique()
        for path in corpus.paths:
            corpus.check(path)  # its current state, before any process reads it
        apart = 1 if corpus.format in QUICK else min(self._readers, len(corpus.paths))  # files that are read side by side
        groups = [_Group(corpus, encoder, first, apart, self._readers) for first in range(apart)]
        try:
            for number, (path, size) in enumerate(zip(corpus.paths, sizes, strict=True)):
                group = groups[number % apart]
                for document in self._file(path, group, encoder, names, skipped):
                    if document.dropped is not None:
                        dropped.update(document.dropped)
                    self.share = (passed + group.share * size) / total
                    yield PackedTexts.of(document)
                passed += size
                self.share = passed / total
        finally:
            for group in groups:
                group.end()

    def _file(self, path: Path, group: _Group, encoder: Encoder, names: Unique, skipped: Tally) -> Iterator[PackedDocument]:
        """The documents of one file, from its readers."""
        taken, renamed = 0, None
        for packed in group.documents(lambda: self._corpus.check(path)):  # the file has not changed since it was first read
            if renamed is None and (name := names.of(packed.name)) != packed.document:
                renamed = name
            if renamed is None:
                taken += 1
                yield packed
        if renamed is None:
            skipped.update(group.skipped)
            return
        for document in islice(self._corpus.read_one(path, skipped), taken, None):
            yield PackedDocument.of(document, renamed or names.of(document.id), encoder)
            renamed = None


def _sizes(corpus: Corpus) -> list[int]:
    """The size of each path of a corpus in bytes; 0 for what is not a file."""
    return [path.stat().st_size if kind_of(path) == "file" else 0 for path in corpus.paths]


@dataclass(frozen=True)
class _Part:
    """The part of one process: it reads these files, and encodes the documents whose number leaves this remainder."""

    files: tuple[Path, ...]
    remainder: int
    divisor: int


class _Group:
    """Processes that read every `apart`-th file together: each encodes every n-th document."""

    def __init__(self, corpus: Corpus, encoder: Encoder, first: int, apart: int, readers: int) -> None:
        files, size = corpus.paths[first::apart], len(range(first, readers, apart))
        held = max(2, HELD // readers // PARCEL)
        self._readers = [_Reader(corpus, encoder, _Part(files, number, size), held) for number in range(size)]
        self._turn = 0  # the reader that encodes the next document
        self.share = 0.0  # of the current file
        self.skipped = Tally()  # of the file that was read last

    def documents(self, check: Callable[[], None]) -> Iterator[PackedDocument]:
        """The documents of the next file, in order. `check` is called when some arrive, before they are used."""
        self.share = 0.0
        while (document := (reader := self._readers[self._turn]).document(check)) is not None:
            self._turn = (self._turn + 1) % len(self._readers)  # continues in the next file: files may have one document each
            self.share = reader.share
            yield document
        for other in self._readers:
            if other is not reader and other.document(check) is not None:
                raise AssertionError("the processes that read a file found different documents in it")
        self.skipped = reader.skipped

    def end(self) -> None:
        """End all processes."""
        for reader in self._readers:
            reader.end()


class _Reader:
    """A process that reads its part of a corpus, and a thread that receives its documents."""

    def __init__(self, corpus: Corpus, encoder: Encoder, part: _Part, held: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._task = (part, corpus.format, corpus.on_error, corpus.columns, encoder)
        self._process = context.Process(target=_read, args=(theirs,), daemon=True)
        with uninterrupted():
            self._process.start()
        theirs.close()
        self._arrived: queue.Queue[_Documents | _EndOfFile | _Failure] = queue.Queue(held)
        self._documents: deque[PackedDocument] = deque()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()
        self.share = 0.0  # of the current file
        self.skipped = Tally()  # of the file that was read last

    def _take(self) -> None:
        """Send the process its task when it listens, so that no reader waits for another to start; then receive its
        messages.
        """
        with suppress(OSError):  # it died: the next message reports it
            self._pipe.send(self._task)
        while not self._ended.is_set():
            try:
                message = self._pipe.recv()
            except (EOFError, OSError):
                message = _Failure("a process that reads the corpus died", "If memory ran out, use fewer --readers")
            while not self._ended.is_set():
                try:
                    self._arrived.put(message, timeout=0.2)
                    break
                except queue.Full:
                    continue
            if isinstance(message, _Failure):
                return

    def document(self, check: Callable[[], None]) -> PackedDocument | None:
        """The next document of the current file that this process encodes; None at the end of the file."""
        while not self._documents:
            message = self._arrived.get()
            check()
            if isinstance(message, _Failure):
                raise HeadscopeError(*message)
            if isinstance(message, _EndOfFile):
                self.skipped = message.skipped
                return None
            self._documents.extend(message.documents)
            self.share = message.share
        return self._documents.popleft()

    def end(self) -> None:
        """End the process and the thread."""
        self._ended.set()
        self._process.kill()
        self._process.join()
        self._thread.join()
        self._pipe.close()


def _read(pipe: Connection) -> None:
    """The main function of a reading process."""
    end_with_parent()
    part, format, on_error, columns, encoder = pipe.recv()
    gc.freeze()  # imported objects stay: the garbage collector can ignore them
    with rare_collections():
        _send(pipe, Corpus(part.files, format, on_error, columns), encoder, part)


def _send(pipe: Connection, corpus: Corpus, encoder: Encoder, part: _Part) -> None:
    """Send the documents of a part of a corpus and, at the end of each file, what was skipped in it."""
    parcels: list[PackedDocument] = []
    number = -1  # of the document, among those of all files
    try:
        for path in corpus.paths:
            skipped, names, meter = Tally(), Unique(), Meter((path,))
            size = 0
            for document in corpus.read_one(path, skipped, meter):
                number += 1
                name = names.of(document.id)
                if number % part.divisor != part.remainder:
                    continue
                parcels.append(PackedDocument.of(document, name, encoder))
                size += len(parcels[-1].packed)
                if size >= PARCEL:
                    pipe.send(_Documents(parcels, meter.share))
                    parcels, size = [], 0
            pipe.send(_Documents(parcels, 1.0))
            pipe.send(_EndOfFile(skipped))
            parcels = []
    except HeadscopeError as error:
        pipe.send(_Documents(parcels, 1.0))
        pipe.send(_Failure(error.problem, error.remedy))
