"""The control for trees: every sentence gets trees of other sentences of the same length, one per draw.

What a head still gets right with these trees is due to typical positions of words, not to the words themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, pairwise

import numpy as np
from numpy.typing import NDArray

from headscope.core.document import Document, Sentence, Word
from headscope.core.hashing import hash64
from headscope.core.trees import TreeArrays
from headscope.stats.bootstrap import GOLDEN, mix

DRAWS = 8  # permutations of the trees
LOOK = 100_000  # sentences whose trees are permuted: later sentences also get a tree of these


class Trees:
    """The trees of a corpus, permuted within each length: per draw, every tree goes to exactly one other sentence.

    A draw puts the trees of one length in the order of a hash of their sentences' names, and gives each sentence the
    next tree in that circle. So a draw depends only on the set of sentences and the seed, not on their order. A tree
    that is the only one of its length is permuted with those of the nearest length, if that is near enough.
    """

    def __init__(self, documents: Iterable[Document], seed: int = 0) -> None:
        keyed: dict[int, list[tuple[int, TreeArrays]]] = {}
        named = ((name, sentence.words) for document in documents for name, sentence in _named(document))
        for name, sentence in islice(named, LOOK):
            if _is_tree(sentence):
                keyed.setdefault(len(sentence), []).append((hash64(name), TreeArrays.of([sentence], len(sentence))))
        self._circles: dict[int, _Circle] = {}
        for lengths in _together({size: len(trees) for size, trees in keyed.items()}):
            circle = _Circle([tree for size in lengths for tree in keyed[size]], seed)
            self._circles.update(dict.fromkeys(lengths, circle))

    def partners(self, document: Document) -> list[TreeArrays]:
        """Trees of other sentences for each sentence, one per draw, cut or padded to its length; None if there is
        none.
        """
        return [self._partners(name, sentence.words) for name, sentence in _named(document)]

    def _partners(self, name: str, words: Sequence[Word]) -> TreeArrays:
        circle = self._circles.get(len(words))
        if circle is None or not _is_tree(words):
            return TreeArrays.silent(0, len(words))
        return circle.partners(hash64(name)).within(len(words))


class _Circle:
    """Trees that are permuted among each other."""

    def __init__(self, keyed: Sequence[tuple[int, TreeArrays]], seed: int) -> None:
        self._trees = TreeArrays.silent(len(keyed), max(tree.size for _, tree in keyed))
        for row, (_, tree) in enumerate(keyed):
            self._trees.tags[row, : tree.size] = tree.tags[0]
            self._trees.heads[row, : tree.size] = tree.heads[0]
        self._number = {key: number for number, (key, _) in enumerate(keyed)}
        salts = np.arange(1, DRAWS + 1, dtype=np.uint64)[:, None] * GOLDEN + np.uint64(hash64(f"permutation {seed}"))
        order = mix(np.array([key for key, _ in keyed], dtype=np.uint64) ^ mix(salts)).argsort(1)
        self._next: NDArray[np.int64] = np.empty_like(order)
        np.put_along_axis(self._next, order, np.roll(order, -1, 1), 1)

    def partners(self, key: int) -> TreeArrays:
        """The trees that the sentence of this key gets, one per draw; a sentence outside the circle shares those of a
        sentence inside.
        """
        chosen = self._next[:, self._number.get(key, key % len(self._trees))]
        return TreeArrays(self._trees.tags[chosen], self._trees.heads[chosen])


def _together(counts: Mapping[int, int]) -> list[list[int]]:
    """Groups of lengths whose trees are permuted together: one length, or near ones if a tree would be alone."""

    def alone(lengths: list[int]) -> bool:
        return sum(counts[size] for size in lengths) == 1

    joined: list[list[int]] = []
    for size in sorted(counts):  # a single tree joins the next length
        if joined and alone(joined[-1]) and _near(joined[-1][-1], size):
            joined[-1].append(size)
        else:
            joined.append([size])
    for before, lengths in pairwise(joined):  # or the previous one
        if alone(lengths) and _near(before[-1], lengths[0]):
            before += lengths
    return [lengths for lengths in joined if not alone(lengths)]


def _near(size: int, longer: int) -> bool:
    return longer - size <= max(1, size // 10)


def _is_tree(words: Sequence[Word]) -> bool:
    return bool(words) and all(word.head is not None and word.relation is not None for word in words)


def _named(document: Document) -> Iterable[tuple[str, Sentence]]:
    return ((f"{document.id}/{number}", sentence) for number, sentence in enumerate(document.sentences))
