"""Reading ahead: the files of a corpus are read and encoded by processes of their own, and come together in the order
of the corpus.

One process reads some hundred thousand tokens a second, and GPUs compute faster than that. A corpus of several files
can be read by several processes: each takes every n-th file, and its texts stay packed on their way through this
process, which cuts them into shards by what is said of them. The texts, their order and what is counted are the same
as if one process had read them. Where a document's name depends on the files before it, because another has the
same, the rest of its file is read here.
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

HELD = 256 << 20  # bytes of packed texts that may wait here, of all files together
PARCEL = 1 << 18  # bytes that are sent at a time
MOST = 4  # readers, where nobody says how many


class PackedNumbers(NamedTuple):
    """What is said of a text that is packed."""

    id: str
    target: int  # tokens that a decoder reads; -1 if there is none
    sizes: Sizes
    slice: str

    @classmethod
    def of(cls, text: Encoded) -> PackedNumbers:
        """Those of a text."""
        return cls(text.id, -1 if text.target is None else len(text.target), Sizes.of(text), text.slice)


class PackedDocument(NamedTuple):
    """A document: the name it has in its file, the one its reader gave it, what is said of its texts, and these."""

    name: str
    document: str
    texts: list[PackedNumbers]
    packed: bytes


@dataclass(frozen=True, slots=True)
class PackedText:
    """A text that is packed, as far as this process must know it."""

    document: str
    numbers: PackedNumbers
    packed: bytes
    place: int  # among the texts of its document

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
        """Something as long as what the decoder reads."""
        return range(self.numbers.target) if self.numbers.target >= 0 else None

    def whole(self) -> Encoded:
        """The text itself."""
        return unpack(self.packed)[self.place]


class PackedShard(Sequence[Encoded]):
    """The texts of a shard, which are unpacked where they are first looked at."""

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
        """Whether a corpus can be read so: it has several files, which are no folders."""
        return readers > 0 and len(corpus.paths) > 1 and corpus.format not in KEYS

    @staticmethod
    def usual(corpus: Corpus, device: str) -> int:
        """How many readers a run has where nobody says it: none on a CPU, whose cores have enough to do; beside a GPU
        as many as there are other cores, if the corpus can be read so.
        """
        return min(MOST, (os.cpu_count() or 1) - 1, len(corpus.paths)) if device != "cpu" and Prefetcher.can(corpus, 1) else 0

    def texts(self, encoder: Encoder, dropped: Tally) -> Iterator[PackedText]:
        """All texts in order; what is left out is counted in `dropped`, and what is passed over in the corpus's own
        tally.
        """
        corpus = self._corpus
        corpus.skipped = skipped = corpus.new_tally()
        sizes = [path.stat().st_size if kind_of(path) == "file" else 0 for path in corpus.paths]
        names, passed = Unique(), 0
        for path in corpus.paths:
            corpus.check(path)  # as it is now, before anybody reads it
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
        """The texts of one file, as its reader sends them."""
        taken, renamed = 0, None
        for parcel in reader.parcels():
            self._corpus.check(path)  # what was read of it is what it held when it was first looked at
            if renamed is None and (name := names.of(parcel.name)) != parcel.document:
                renamed = name
            if renamed is None:
                taken += 1
                yield from _briefs(parcel)
        if renamed is None:
            dropped.update(reader.dropped)
            skipped.update(reader.skipped)
            return
        # What its reader counted is of the file as it would be alone: all of it is counted anew.
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
    """A document of that name, encoded and packed."""
    texts = list(encoder.texts([document if name == document.id else replace(document, id=name)], dropped))
    return PackedDocument(document.id, name, [PackedNumbers.of(text) for text in texts], pack(texts))


class _Reader:
    """A process that reads every n-th file, and a thread that takes what it sends."""

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
        """Say what is to be read, when the process listens, so that none waits for another to start; then take what
        comes.
        """
        with suppress(OSError):  # it died: the next message says so
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
        """What the reader has of the next file."""
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
    """What a reading process does, once it is told what to read: documents in lists of some, and for each file, at its
    end, what was left out of it.
    """
    end_with_parent()
    files, format, on_error, columns, encoder = pipe.recv()
    gc.freeze()  # what is imported stays: it need not be looked through for what is no longer used
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
