"""Texts that readers send packed. The process that cuts them into shards and counts them handles whole documents; texts
are unpacked where they are measured.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from headscope.core.document import Document
from headscope.core.hashing import hash64
from headscope.core.slices import NO_VALUE
from headscope.core.tally import Tally
from headscope.encoding.packing import pack, unpack
from headscope.encoding.texts import Encoded, Encoder
from headscope.results.counts import Sizes

# Columns of the numbers of a text: its sizes, the tokens that a decoder reads (-1: none), and the hash of its id.
_TOKENS, _TARGET, _HASH = Sizes._fields.index("tokens"), len(Sizes._fields), len(Sizes._fields) + 1


class PackedDocument(NamedTuple):
    """A document as its reader sends it: its name in the file, the name its reader gave it, its slice, the numbers of
    its texts, the packed texts, and what was omitted from it.
    """

    name: str
    document: str
    slice: str
    numbers: bytes
    packed: bytes
    dropped: Tally | None

    @classmethod
    def of(cls, document: Document, name: str, encoder: Encoder) -> PackedDocument:
        """A document with this name, encoded and packed."""
        dropped = Tally()
        texts = list(encoder.texts([document if name == document.id else replace(document, id=name)], dropped))
        rows = [(*Sizes.of(text), -1 if text.target is None else len(text.target), _signed(hash64(text.id))) for text in texts]
        slice, numbers = texts[0].slice if texts else NO_VALUE, np.array(rows, dtype=np.int64)
        return cls(document.id, name, slice, numbers.tobytes(), pack(texts), dropped if dropped.counts else None)


@dataclass(frozen=True, slots=True)
class PackedTexts:
    """Consecutive texts of a document, packed, with the numbers that this process needs of each. `first` is the place
    of the first of them among the texts of the document.
    """

    document: str
    slice: str
    numbers: NDArray[np.int64]  # [text, number]: its sizes, the tokens that a decoder reads (-1: none), and a hash of its id
    packed: bytes
    first: int = 0

    @classmethod
    def of(cls, sent: PackedDocument) -> PackedTexts:
        """All texts of a document."""
        return cls(sent.document, sent.slice, np.frombuffer(sent.numbers, np.int64).reshape(-1, len(Sizes._fields) + 2), sent.packed)

    def __len__(self) -> int:
        return len(self.numbers)

    def part(self, start: int, stop: int) -> PackedTexts:
        """The texts from `start` to `stop`."""
        return PackedTexts(self.document, self.slice, self.numbers[start:stop], self.packed, self.first + start)

    @property
    def costs(self) -> NDArray[np.int64]:
        """The number of tokens of the longer side of each text."""
        return np.maximum(self.numbers[:, _TOKENS], self.numbers[:, _TARGET])

    @property
    def hashes(self) -> NDArray[np.uint64]:
        """`hash64` of the id of each text."""
        return self.numbers[:, _HASH].view(np.uint64)

    @property
    def total(self) -> Sizes:
        """The summed sizes of the texts."""
        return Sizes(*self.numbers[:, :_TARGET].sum(0).tolist())

    def sizes(self) -> Iterator[Sizes]:
        """The sizes of each text."""
        return map(Sizes._make, self.numbers[:, :_TARGET].tolist())

    def __iter__(self) -> Iterator[PackedText]:
        """Each text."""
        return (PackedText(self, place) for place in range(len(self)))

    def whole(self) -> list[Encoded]:
        """The unpacked texts."""
        return unpack(self.packed)[self.first : self.first + len(self)]


@dataclass(frozen=True, slots=True)
class PackedText:
    """One of several packed texts."""

    texts: PackedTexts
    place: int

    def __len__(self) -> int:
        return int(self.texts.numbers[self.place, _TOKENS])

    @property
    def cost(self) -> int:
        """Tokens of the longer side."""
        return int(self.texts.costs[self.place])

    @property
    def target(self) -> range | None:
        """An object with the length of the text that the decoder reads."""
        tokens = int(self.texts.numbers[self.place, _TARGET])
        return range(tokens) if tokens >= 0 else None

    @property
    def id(self) -> str:
        """The text's id."""
        return self.whole().id

    @property
    def hash(self) -> int:
        """`hash64` of its id."""
        return int(self.texts.hashes[self.place])

    def whole(self) -> Encoded:
        """The unpacked text."""
        return self.texts.whole()[self.place]


class PackedShard(Sequence[Encoded]):
    """The texts of a shard, which are unpacked on first access."""

    def __init__(self, parts: Sequence[PackedTexts]) -> None:
        self._parts = [(part.packed, part.first, part.first + len(part)) for part in parts]
        self._size = sum(map(len, parts))
        self._texts: list[Encoded] | None = None

    def __len__(self) -> int:
        return self._size

    @overload
    def __getitem__(self, place: int) -> Encoded: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Encoded]: ...
    def __getitem__(self, place: int | slice) -> Encoded | Sequence[Encoded]:
        if self._texts is None:
            self._texts = [text for packed, first, end in self._parts for text in unpack(packed)[first:end]]
        return self._texts[place]

    def __getstate__(self) -> dict[str, object]:
        return {"_parts": self._parts, "_size": self._size, "_texts": None}


def packed_shards(documents: Iterable[PackedTexts], tokens: int) -> Iterator[PackedShard]:
    """The same shards as `shards` makes of the unpacked texts."""
    shard: list[PackedTexts] = []
    size = 0
    for texts in documents:
        ends = texts.costs.cumsum() + size
        start = 0
        while (last := int(np.searchsorted(ends, tokens))) < len(texts):  # the shard ends with this text
            yield PackedShard([*shard, texts.part(start, last + 1)])
            start, shard = last + 1, []
            ends -= ends[last]
        size = int(ends[-1]) if len(texts) else size
        if start < len(texts):
            shard.append(texts.part(start, len(texts)))
    if shard:
        yield PackedShard(shard)


def _signed(number: int) -> int:
    """A 64-bit number as a signed one with the same bits."""
    return number - (1 << 64) if number >> 63 else number
