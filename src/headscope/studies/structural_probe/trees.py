"""Dependency trees as distances between words and as depths, and trees from distances."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.annotation import NONE, ROOT
from headscope.core.document import Word
from headscope.encoding.texts import Encoded
from headscope.measures.relations import is_punctuation
from headscope.studies.structural_probe.spec import Punct

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int64

Edge = tuple[int, int]
# Tags of the Penn Treebank that the released code does not score.
PTB = frozenset({"''", ",", ".", ":", "``", "-LRB-", "-RRB-"})
PUNCT: dict[Punct, Callable[[Word], bool]] = {"tag": is_punctuation, "ptb": lambda word: word.xpos in PTB}


@dataclass(frozen=True, slots=True)
class Tree:
    """The tree of a sentence. Punctuation is used in training, but not in spanning trees and in the search for the
    root.

    `edges` are those of the minimum spanning tree of `distances` over the words that are `scored`; if a word depends on
    punctuation, not all of them are arcs.
    """

    depths: Int64[np.ndarray, "word"]
    distances: Int64[np.ndarray, "word word"]
    scored: Bool[np.ndarray, "word"]
    edges: tuple[Edge, ...]
    root: int


def tree_of(text: Encoded, punct: Punct = "tag") -> Tree | None:
    """The tree of a sentence; None unless it has exactly one root above all words."""
    heads = text.annotation.heads
    above = ancestors(heads)
    if above is None:
        return None
    depths = above.sum(1) - 1
    distances = depths[:, None] + depths - 2 * (above.astype(np.int64) @ above.T.astype(np.int64) - 1)
    scored = np.array([not PUNCT[punct](word) for word in text.words])
    return Tree(depths, distances, scored, tuple(smallest_tree(distances, np.flatnonzero(scored).tolist())), heads.index(ROOT))


def ancestors(heads: Sequence[int]) -> Bool[np.ndarray, "word word"] | None:
    """True at [i, j] if j is i or governs it, directly or not. None if the heads are not a tree with one root."""
    if NONE in heads or list(heads).count(ROOT) != 1:
        return None
    above: Bool[np.ndarray, "word word"] = np.zeros((len(heads), len(heads)), dtype=bool)
    for word in range(len(heads)):
        place = word
        while place != ROOT:
            if above[word, place]:
                return None  # a cycle
            above[word, place] = True
            place = heads[place]
    return above


def smallest_tree(distances: Float[np.ndarray, "word word"], words: Sequence[int]) -> Iterable[Edge]:
    """The edges of the minimum spanning tree over some words (Kruskal); of equal distances the first pair is taken."""
    pairs = [(first, second) for place, first in enumerate(words) for second in words[place + 1 :]]
    group = {word: word for word in words}

    def find(word: int) -> int:
        while group[word] != word:
            group[word] = group[group[word]]
            word = group[word]
        return word

    for pair in sorted(pairs, key=lambda pair: distances[pair]):
        first, second = find(pair[0]), find(pair[1])
        if first != second:
            group[first] = second
            yield pair
