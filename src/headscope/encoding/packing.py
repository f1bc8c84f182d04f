"""Serialise texts as bytes, to send them from one process to another.

The arrays of all texts of a document lie one after the other in three buffers, so that unpacking cuts them and copies
nothing. What a pass over the texts rarely needs (words, trees, pieces, tuples) is packed per text and unpacked only on
access.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from headscope.encoding.texts import Encoded, TokenArrays


class _Header(NamedTuple):
    """The fields of a packed text that can be read without unpacking it: small values, and the lengths of its
    arrays.
    """

    id: str
    document: str
    slice: str
    label: str | None
    tags: tuple[str | None, ...]
    unknown: int
    generated_from: int | None
    tokens: int
    groups: int
    target: bool  # whether the next header is that of its target
    pieces: bytes
    annotation: bytes


class UnpackedText(Encoded):
    """A text that was packed. Its annotation, pieces, roles and words are unpacked on first access."""

    @property
    def document(self) -> str:
        """The id of the document that the text is part of."""
        header: _Header | None = self.__dict__.get("_header")
        return super().document if header is None else header.document

    @property
    def slice(self) -> str:
        """The slice that the document belongs to."""
        header: _Header | None = self.__dict__.get("_header")
        return super().slice if header is None else header.slice

    def __getattr__(self, name: str) -> Any:
        """Unpack a field that is still packed."""
        own = self.__dict__
        if name in ("annotation", "pieces") and "_header" in own:
            own[name] = pickle.loads(getattr(own["_header"], name))
        elif name == "roles" and "arrays" in own:
            own["roles"] = tuple(own["arrays"].roles.tolist())
        elif name == "word_of" and "_word_of" in own:
            own["word_of"] = tuple(own["_word_of"].tolist())
        else:
            raise AttributeError(name)
        return own[name]


def pack(texts: Sequence[Encoded]) -> bytes:
    """The texts as bytes, which `unpack` reads."""
    sides = [side for text in texts for side in (text, text.target) if side is not None]
    headers = []
    for side in sides:
        large = [pickle.dumps(field, pickle.HIGHEST_PROTOCOL) for field in (side.pieces, side.annotation)]
        small = (side.id, side.document, side.slice, side.label, side.tags, side.unknown, side.generated_from)
        headers.append(_Header(*small, len(side), len(side.arrays.firsts), side.target is not None, *large))
    arrays = [side.arrays for side in sides]
    buffers = (
        _joined(np.int64, [array for side in sides for array in (side.ids, side.segments, side.arrays.firsts)]),
        _joined(np.int32, [array for side in sides for array in (side.arrays.groups, np.array(side.word_of, dtype=np.int32))]),
        _joined(np.int8, [array for part in arrays for array in (part.roles, part.group_roles)]),
    )
    return pickle.dumps(([tuple(header) for header in headers], buffers), pickle.HIGHEST_PROTOCOL)


def unpack(packed: bytes) -> list[Encoded]:
    """The texts that `pack` was given."""
    headers, (long, middle, short) = pickle.loads(packed)
    longs, middles, shorts = np.frombuffer(long, np.int64), np.frombuffer(middle, np.int32), np.frombuffer(short, np.int8)
    texts: list[Encoded] = []
    waiting: Encoded | None = None  # a text whose target comes next
    at = wide = narrow = 0
    for header in map(_Header._make, headers):
        tokens, groups = header.tokens, header.groups
        ends = at + tokens, at + 2 * tokens, at + 2 * tokens + groups
        text = UnpackedText.__new__(UnpackedText)
        text.__dict__.update(
            id=header.id,
            ids=longs[at : ends[0]],
            segments=longs[ends[0] : ends[1]],
            target=None,
            label=header.label,
            tags=header.tags,
            unknown=header.unknown,
            generated_from=header.generated_from,
            arrays=TokenArrays(
                shorts[narrow : narrow + tokens],
                middles[wide : wide + tokens],
                shorts[narrow + tokens : narrow + tokens + groups],
                longs[ends[1] : ends[2]],
            ),
            _word_of=middles[wide + tokens : wide + 2 * tokens],
            _header=header,
        )
        at, wide, narrow = ends[2], wide + 2 * tokens, narrow + tokens + groups
        if waiting is None:
            texts.append(text)
        else:
            waiting.__dict__["target"] = text
        waiting = text if header.target else None
    return texts


def _joined(kind: type[np.generic], arrays: Sequence[np.ndarray]) -> bytearray:
    """The arrays concatenated, in writable memory."""
    return bytearray(np.concatenate([np.empty(0, kind), *arrays]).astype(kind, copy=False).tobytes())
