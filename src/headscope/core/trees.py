"""Dependency trees as arrays: for each word the number of its tag, and its governor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headscope.core.document import Word
from headscope.core.numbering import Numbering

if TYPE_CHECKING:
    from jaxtyping import Int

ROOT, NONE = -1, -2  # in place of a governor: the word is the root; it has none, or one that this text does not hold


class Tag(NamedTuple):
    """The labels of a word in a tree, apart from its governor."""

    relation: str | None = None
    upos: str | None = None
    xpos: str | None = None


TAGS = Numbering(Tag())  # number 0: a word without annotation


@dataclass(frozen=True, eq=False)
class TreeArrays:
    """Trees over the same words, one row per tree: for each word the number of its tag in `TAGS`, and its governor, an
    index into the words, ROOT or NONE.

    Other processes number tags differently, so the pickled form holds the tags themselves.
    """

    tags: Int[np.ndarray, "tree word"]
    heads: Int[np.ndarray, "tree word"]

    @classmethod
    def of(cls, trees: Sequence[Sequence[Word | None]], size: int) -> TreeArrays:
        """Trees over `size` words, each given by the words of a sentence; None is a word without annotation."""
        found = cls.silent(len(trees), size)
        for row, words in enumerate(trees):
            found.tags[row] = [0 if word is None else TAGS.number(Tag(word.relation, word.upos, word.xpos)) for word in words]
            found.heads[row] = [NONE if word is None or word.head is None else word.head - 1 for word in words]
        return found.within(size)

    @classmethod
    def of_sentences(cls, sentences: Sequence[Sequence[Word]]) -> TreeArrays:
        """The one tree of each sentence, as a tree over the words of all."""
        words = list(chain.from_iterable(sentences))
        sizes = np.array([len(sentence) for sentence in sentences], dtype=np.int32)
        size, start = np.repeat(sizes, sizes), np.repeat(np.cumsum(sizes) - sizes, sizes)
        tags = np.array([TAGS.number(Tag(word.relation, word.upos, word.xpos)) for word in words], dtype=np.int32)
        heads = np.array([NONE if word.head is None else word.head - 1 for word in words], dtype=np.int32)
        heads[(heads < NONE) | (heads >= size)] = NONE
        return cls(tags[None], np.where(heads >= 0, heads + start, heads).astype(np.int32)[None])

    @classmethod
    def silent(cls, trees: int, size: int) -> TreeArrays:
        """Trees in which no word is annotated."""
        return cls(np.zeros((trees, size), dtype=np.int32), np.full((trees, size), NONE, dtype=np.int32))

    @classmethod
    def beside(cls, parts: Iterable[TreeArrays]) -> TreeArrays:
        """The trees of consecutive sentences, as trees over the words of all. If a sentence has fewer trees, its words
        have no annotation there.
        """
        parts = list(parts)
        count = max((len(part) for part in parts), default=0)
        starts = np.cumsum([0, *(part.size for part in parts)])
        found = cls.silent(count, int(starts[-1]))
        for part, start in zip(parts, starts.tolist(), strict=False):
            found.tags[: len(part), start : start + part.size] = part.tags
            found.heads[: len(part), start : start + part.size] = np.where(part.heads >= 0, part.heads + start, part.heads)
        return found

    def __len__(self) -> int:
        return len(self.tags)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TreeArrays) and np.array_equal(self.tags, other.tags) and np.array_equal(self.heads, other.heads)

    def __hash__(self) -> int:
        return hash((self.tags.tobytes(), self.heads.tobytes()))

    @property
    def size(self) -> int:
        """The number of words."""
        return int(self.tags.shape[1])

    def filled(self, count: int) -> TreeArrays:
        """Exactly `count` trees; missing trees are filled up with trees without annotation."""
        return self if len(self) == count else TreeArrays.joined([self, TreeArrays.silent(count - len(self), self.size)])

    @classmethod
    def joined(cls, trees: Sequence[TreeArrays]) -> TreeArrays:
        """All trees as one; they must be over the same words."""
        return cls(np.concatenate([one.tags for one in trees]), np.concatenate([one.heads for one in trees]))

    def within(self, size: int) -> TreeArrays:
        """The trees over the first `size` words; those whose governor is not among them have none."""
        heads = self.heads[:, :size]
        return TreeArrays(self.tags[:, :size], np.where((heads < NONE) | (heads >= size), np.int32(NONE), heads))

    def select(self, places: Int[np.ndarray, "kept"]) -> TreeArrays:
        """The trees over the words at these positions, in ascending order; words whose governor is not among them have
        none.
        """
        heads = self.heads[:, places]
        if not len(places):
            return TreeArrays(self.tags[:, places], heads)
        place = np.searchsorted(places, heads).clip(max=len(places) - 1)
        inside = np.where(places[place] == heads, place, NONE)
        return TreeArrays(self.tags[:, places], np.where(heads >= 0, inside, heads).astype(np.int32))

    def __reduce__(self) -> tuple[object, ...]:
        used, numbers = np.unique(self.tags, return_inverse=True)
        tags = tuple(TAGS.items[number] for number in used.tolist())
        return _restored, (tags, numbers.reshape(self.tags.shape).astype(np.int32), self.heads)


def _restored(tags: Sequence[Tag], numbers: Int[np.ndarray, "tree word"], heads: Int[np.ndarray, "tree word"]) -> TreeArrays:
    here = np.array([TAGS.number(Tag(*tag)) for tag in tags], dtype=np.int32)
    return TreeArrays(here[numbers], heads)
