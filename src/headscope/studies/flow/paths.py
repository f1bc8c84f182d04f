"""Dependency trees as distances: how many arcs lie between two words, and which words are above which."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from headscope.core.annotation import NONE, ROOT

if TYPE_CHECKING:
    from jaxtyping import Float64, Int64

Chain = Literal["next word", "previous word"]
CHAINS: tuple[Chain, ...] = get_args(Chain)
Variant = Literal["undirected", "undirected with diagonal", "directed", "directed with diagonal"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)
ARGUMENTS = "verbs and core arguments"  # a class of words whose distances are measured
POSITION = "position"  # distance in the sentence in place of a measure: the baseline


def descents(heads: Sequence[int] | Int64[np.ndarray, "word"]) -> Float64[np.ndarray, "word word"]:
    """Arcs down from word i to word j: 0 to itself, NaN if j is not below i. `heads` are indices, ROOT or NONE.

    Words in a cycle have no place in a tree, and nothing is above them.
    """
    size = len(heads)
    steps_down = np.full((size, size), np.nan)
    for word in range(size):
        above, steps = word, 0
        while above >= 0 and steps <= size:
            steps_down[above, word] = steps
            above, steps = int(heads[above]), steps + 1
        if steps > size:
            steps_down[:, word] = np.nan
        steps_down[word, word] = 0
    return steps_down


def path_lengths(heads: Sequence[int] | Int64[np.ndarray, "word"]) -> Float64[np.ndarray, "word word"]:
    """The number of arcs between two words, in any direction; NaN between words of different trees."""
    down = descents(heads)
    size = len(down)
    lengths = np.full((size, size), np.inf)
    for above in range(size):  # the path leads over the lowest word that is above both, or equal to one of them
        steps = np.where(np.isnan(down[above]), np.inf, down[above])
        np.minimum(lengths, steps[:, None] + steps[None, :], out=lengths)
    return np.where(np.isinf(lengths), np.nan, lengths)


def distances(heads: Sequence[int] | Int64[np.ndarray, "word"], variant: Variant) -> Float64[np.ndarray, "word word"]:
    """Distance from source i to target j in one of four variants; NaN for pairs that the variant excludes.

    Directed variants have only distances from a word down to those below it. Without the diagonal, no distance is 0.
    """
    lengths = descents(heads) if variant.startswith("directed") else path_lengths(heads)
    if not variant.endswith("with diagonal"):
        np.fill_diagonal(lengths, np.nan)
    return lengths


def chain(size: int, name: Chain) -> list[int]:
    """Heads of a chain of words: the head of every word is the `next word`, or the `previous word`.

    Westera's LEFT baseline, arcs i -> i-1, is "next word"; his RIGHT one, arcs i-1 -> i, is "previous word", which
    he calls right-branching. Clark et al. call "next word" right-branching. The names here say where the head is.
    """
    if name == "next word":
        return [*range(1, size), ROOT][:size]
    return [ROOT, *range(size - 1)][:size]


def sentence_chain(sentences: Sequence[int], name: Chain) -> list[int]:
    """Heads of one chain per sentence, for words of these sentences: no arc leads from one sentence to another."""
    size = len(sentences)
    return [head if head >= 0 and sentences[head] == sentences[word] else ROOT for word, head in enumerate(chain(size, name))]


def restricted(heads: Sequence[int], kept: Sequence[int]) -> list[int]:
    """Heads of some of the words, as places among these words; NONE if the head is not one of them."""
    place = {word: number for number, word in enumerate(kept)}
    return [place.get(heads[word], NONE) if heads[word] >= 0 else heads[word] for word in kept]
