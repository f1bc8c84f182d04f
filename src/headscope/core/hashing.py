"""Hashes of names, used in place of a random state so that results do not depend on order or shards; and sets of
names.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import Counter

_LEAST = 1 << 12
_FULL = 0.6  # share of places that are taken before their number is doubled


def digest(*parts: object, size: int = 64) -> bytes:
    """The BLAKE2b hash of a key: its parts, bytes or texts, separated by U+001F."""
    key = b"\x1f".join(part if isinstance(part, bytes) else str(part).encode() for part in parts)
    return hashlib.blake2b(key, digest_size=size).digest()


def hash64(*parts: object) -> int:
    """A pseudo-random 64-bit number, at least 0, that depends only on the key (`digest`)."""
    return int.from_bytes(digest(*parts, size=8), "little")


class DocumentNames:
    """A set of names, stored as 64-bit hashes: about 16 bytes per name. Collisions are very unlikely."""

    def __init__(self) -> None:
        self._places = array("Q", bytes(8 * _LEAST))  # 0: an empty place
        self._count = 0

    def add(self, name: str) -> bool:
        """Add a name. Return whether it is new."""
        if self._count >= _FULL * len(self._places):
            self._grow()
        return self._put(hash64(name.encode("utf-8", "surrogatepass")) or 1)

    def __len__(self) -> int:
        return self._count

    def _put(self, number: int) -> bool:
        places, last = self._places, len(self._places) - 1
        at = number & last
        while places[at]:
            if places[at] == number:
                return False
            at = (at + 1) & last
        places[at] = number
        self._count += 1
        return True

    def _grow(self) -> None:
        before, self._places, self._count = self._places, array("Q", bytes(16 * len(self._places))), 0
        for number in before:
            if number:
                self._put(number)


class Unique:
    """Makes names unique: the second `x` becomes `x#2`."""

    def __init__(self) -> None:
        self._taken = DocumentNames()
        self._repeated: Counter[str] = Counter()

    def of(self, name: str) -> str:
        """The name itself, or a numbered form if it was given before."""
        unique = name
        while not self._taken.add(unique):
            self._repeated[name] += 1
            unique = f"{name}#{self._repeated[name] + 1}"
        return unique
