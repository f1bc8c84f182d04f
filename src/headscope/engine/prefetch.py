"""Prefetching: separate processes read and encode the files of a corpus; their texts are joined in the order of the
corpus.

One process reads some hundred thousand tokens a second, and GPUs compute faster than that. A corpus of several files
can be read by several processes: each takes every n-th file, and its texts stay packed in this process, which cuts them
into shards by their recorded sizes. The texts, their order and the counts are the same as if one process had read them.
If a document's name depends on earlier files, because another document has the same name, this process reads the rest
of its file.
"""

from __future__ import annotations

import gc
import multiprocessing
import os
import queue
import threading
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import NamedTuple, overload

from headscope.core.allocation import rare_collections
from headscope.core.document import Document
from headscope.core.hashing import Unique
from headscope.core.paths import kind_of
from headscope.core.tally import Tally
from headscope.corpora import Corpus
from headscope.corpora.readers.folders import KEYS
from headscope.encoding.packing import pack, unpack
from headscope.encoding.texts import Encoded, Encoder
from headscope.engine.child_processes import end_with_parent, uninterrupted
from headscope.errors import HeadscopeError
from headscope.results.counts import Sizes

HELD = 256 << 20  # bytes of packed texts that may wait here, for all files together
PARCEL = 1 << 18  # bytes that are sent at a time
MOST = 4  # readers by default, at most


class PackedNumbers(NamedTuple):
    """The numbers that are known of a packed text."""

    id: str
    target: int  # tokens that a decoder reads; -1 if there is none
    sizes: Sizes
    slice: str

    @classmethod
    def of(cls, text: Encoded) -> PackedNumbers:
        """The numbers of a text."""
        return cls(text.id, -1 if text.target is None else len(text.target), Sizes.of(text), text.slice)


class PackedDocument(NamedTuple):
    """A packed document: its name in the file, the name its reader gave it, the numbers of its texts, and the packed
    texts.
    """

    name: str
    document: str
    texts: list[PackedNumbers]
    packed: bytes


@dataclass(frozen=True, slots=True)
class PackedText:
    """A packed text with the fields that this process needs."""

    document: str
    numbers: PackedNumbers
    packed: bytes
    place: int  # its index among the texts of the document

    def __len__(self) -> int:
        return self.numbers.sizes.tokens

    @property
    def id(self) -> str:
        """The text's id."""
        return self.numbers.id

    @property
    def cost(self) -> int:
        """Tokens of the longer side."""
        return max(len(self), self.numbers.target)

    @property
    def target(self) -> range | None:
        """An object with the length of the text that the decoder reads."""
        return range(self.numbers.target) if self.numbers.target >= 0 else None

    def whole(self) -> Encoded:
        """The unpacked text."""
        return unpack(self.packed)[self.place]


class PackedShard(Sequence[Encoded]):
    """The texts of a shard, which are unpacked on first access."""

    def __init__(self, briefs: Sequence[PackedText]) -> None:
        self._parts: list[tuple[bytes, list[int]]] = []
        for brief in briefs:
            if not self._parts or self._parts[-1][0] is not brief.packed:
                self._parts.append((brief.packed, []))
            self._parts[-1][1].append(brief.place)
        self._size = len(briefs)
        self._texts: list[Encoded] | None = None

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, place: int) -> Encoded: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Encoded]: ...
    def __getitem__(self, place: int | slice) -> Encoded | Sequence[Encoded]:
        if self._texts is None:
            opened = ((unpack(packed), places) for packed, places in self._parts)
            self._texts = [texts[place] for texts, places in opened for place in places]
        return self._texts[place]

    def __getstate__(self) -> dict[str, object]:
        return {"_parts": self._parts, "_size": self._size, "_texts": None}


class Prefetcher:
    """The texts of a corpus of several files, read by several processes."""

    def __init__(self, corpus: Corpus, readers: int) -> None:
        self._corpus = corpus
        self._readers = min(readers, len(corpus.paths))
        self.share = 0.0

    @staticmethod
    def can(corpus: Corpus, readers: int) -> bool:
        """Whether a corpus can be prefetched: it must have several files, none of which is a folder."""
        return readers > 0 and len(corpus.paths) > 1 and corpus.format not in KEYS

    @staticmethod
    def usual(corpus: Corpus, device: str) -> int:
        """The default number of readers: none on a CPU, whose cores are busy; with a GPU, the number of other cores, if
        the corpus can be prefetched.
        """
        return min(MOST, (os.cpu_count() or 1) - 1, len(corpus.paths)) if device != "cpu" and Prefetcher.can(corpus, 1) else 0

    def texts(self, encoder: Encoder, dropped: Tally) -> Iterator[PackedText]:
        """All texts in order. Skipped texts are counted in `dropped`, and what the readers of files skip in the
        corpus's tally.
        """
        corpus = self._corpus
        corpus.skipped = skipped = corpus.new_tally()
        sizes = [path.stat().st_size if kind_of(path) == "file" else 0 for path in corpus.paths]
        names, passed = Unique(), 0
        for path in corpus.paths:
            corpus.check(path)  # its current state, before any process reads it
        readers = [_Reader(corpus, encoder, number, self._readers) for number in range(self._readers)]
        try:
            for number, (path, size) in enumerate(zip(corpus.paths, sizes, strict=True)):
                yield from self._file(path, readers[number % self._readers], encoder, names, dropped, skipped)
                passed += size
                self.share = passed / max(1, sum(sizes))
        finally:
            for reader in readers:
                reader.end()

    def _file(self, path: Path, reader: _Reader, encoder: Encoder, names: Unique, dropped: Tally, skipped: Tally) -> Iterator[PackedText]:
        """The texts of one file, from its reader."""
        taken, renamed = 0, None
        for parcel in reader.parcels():
            self._corpus.check(path)  # the file has not changed since it was first read
            if renamed is None and (name := names.of(parcel.name)) != parcel.document:
                renamed = name
            if renamed is None:
                taken += 1
                yield from _briefs(parcel)
        if renamed is None:
            dropped.update(reader.dropped)
            skipped.update(reader.skipped)
            return
        # Its reader counted as if the file were the only one: all counts are made again.
        documents = self._corpus.read_one(path, skipped)
        again = Unique()
        for document in islice(documents, taken):
            _parcel(document, again.of(document.id), encoder, dropped)
        for document in documents:
            parcel = _parcel(document, renamed or names.of(document.id), encoder, dropped)
            renamed = None
            yield from _briefs(parcel)


def _briefs(parcel: PackedDocument) -> Iterator[PackedText]:
    return (PackedText(parcel.document, numbers, parcel.packed, place) for place, numbers in enumerate(parcel.texts))


def _parcel(document: Document, name: str, encoder: Encoder, dropped: Tally) -> PackedDocument:
    """A document with this name, encoded and packed."""
    texts = list(encoder.texts([document if name == document.id else replace(document, id=name)], dropped))
    return PackedDocument(document.id, name, [PackedNumbers.of(text) for text in texts], pack(texts))


class _Reader:
    """A process that reads every n-th file, and a thread that receives its documents."""

    def __init__(self, corpus: Corpus, encoder: Encoder, first: int, step: int) -> None:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._task = (corpus.paths[first::step], corpus.format, corpus.on_error, corpus.columns, encoder)
        self._process = context.Process(target=_read, args=(theirs,), daemon=True)
        with uninterrupted():
            self._process.start()
        theirs.close()
        self._arrived: queue.Queue[object] = queue.Queue(max(2, HELD // step // PARCEL))
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._take, daemon=True)
        self._thread.start()
        self.dropped, self.skipped = Tally(), Tally()  # of the file that was read last

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
                message = ("a process that reads the corpus died", "If memory ran out, use fewer --readers", None)
            while not self._ended.is_set():
                try:
                    self._arrived.put(message, timeout=0.2)
                    break
                except queue.Full:
                    continue
            if isinstance(message, tuple) and len(message) == 3:
                return

    def parcels(self) -> Iterator[PackedDocument]:
        """The documents that the reader sends for the next file."""
        while True:
            message = self._arrived.get()
            if isinstance(message, tuple) and len(message) == 3:
                raise HeadscopeError(*message[:2])
            if isinstance(message, tuple):
                self.dropped, self.skipped = message
                return
            assert isinstance(message, list)
            yield from message

    def end(self) -> None:
        """End the process and the thread."""
        self._ended.set()
        self._process.kill()
        self._process.join()
        self._thread.join()
        self._pipe.close()


def _read(pipe: Connection) -> None:
    """The main function of a reading process: sends lists of documents and, at the end of each file, the tally of what
    was skipped.
    """
    end_with_parent()
    files, format, on_error, columns, encoder = pipe.recv()
    gc.freeze()  # imported objects stay: the garbage collector can ignore them
    with rare_collections():
        _send_files(pipe, Corpus(tuple(files), format, on_error, columns), encoder)


def _send_files(pipe: Connection, corpus: Corpus, encoder: Encoder) -> None:
    """Send the texts of each file of a corpus, and what was omitted from it."""
    parcels: list[PackedDocument] = []
    try:
        for path in corpus.paths:
            dropped, skipped, names = Tally(), Tally(), Unique()
            parcels, size = [], 0
            for document in corpus.read_one(path, skipped):
                parcels.append(_parcel(document, names.of(document.id), encoder, dropped))
                size += len(parcels[-1].packed)
                if size >= PARCEL:
                    pipe.send(parcels)
                    parcels, size = [], 0
            pipe.send(parcels)
            pipe.send((dropped, skipped))
    except HeadscopeError as error:
        pipe.send(parcels)
        pipe.send((error.problem, error.remedy, None))
