"""Draws that depend on names alone: hashes in place of a random state, so that order, shards and workers change
nothing.
"""

from __future__ import annotations

import hashlib


def digest(*parts: object, size: int = 64) -> bytes:
    """The BLAKE2b hash of a key, such as a seed and a name: its parts, bytes or texts, separated by U+001F. Names
    sorted by their hashes are in random order.
    """
    key = b"\x1f".join(part if isinstance(part, bytes) else str(part).encode() for part in parts)
    return hashlib.blake2b(key, digest_size=size).digest()


def hash64(*parts: object) -> int:
    """A random number of 64 bits, at least 0, that depends on the key alone (`digest`)."""
    return int.from_bytes(digest(*parts, size=8), "little")
