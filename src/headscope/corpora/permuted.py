"""The control for trees: every sentence gets the tree of another sentence of the same length.

What a head still gets right then, it gets right because of where words tend to stand, not because of which words they are.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from heapq import nsmallest
from itertools import islice

from headscope.core.document import Document, Sentence, Word

POOL = 16  # trees kept of each length
LOOK = 100_000  # sentences looked at: a longer corpus needs no more to choose from


class Trees:
    """Trees to choose from by length: those whose sentences have the smallest hashes, whatever their order in the corpus."""

    def __init__(self, documents: Iterable[Document]) -> None:
        pool: dict[int, list[tuple[int, str, tuple[Word, ...]]]] = {}
        named = ((name, sentence.words) for document in documents for name, sentence in _named(document))
        for name, words in islice(named, LOOK):
            if words and all(word.head is not None and word.relation is not None for word in words):
                kept = pool.setdefault(len(words), [])
                kept.append((_hash(name), name, words))
                if len(kept) > 4 * POOL:
                    kept[:] = nsmallest(POOL, kept, key=lambda tree: tree[:2])
        self._pool = {size: nsmallest(POOL, kept, key=lambda tree: tree[:2]) for size, kept in pool.items()}

    def partners(self, document: Document) -> list[tuple[Word, ...] | None]:
        """For each sentence the words of another one that is as long; None where there is none."""
        return [self._partner(name, len(sentence)) for name, sentence in _named(document)]

    def _partner(self, name: str, size: int) -> tuple[Word, ...] | None:
        others = [words for _, other, words in self._pool.get(size, []) if other != name]
        return others[_hash(f"partner of {name}") % len(others)] if others else None


def _named(document: Document) -> Iterable[tuple[str, Sentence]]:
    return ((f"{document.id}/{number}", sentence) for number, sentence in enumerate(document.sentences))


def _hash(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest(), "little")
