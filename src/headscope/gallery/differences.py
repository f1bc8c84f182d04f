"""How differently each head attends in two texts, such as the two sentences of a minimal pair.

Words are aligned first: shared words, and words that replace each other. A head's difference is the mean, over the
pairs of aligned words, of the total variation distance between their two rows of the word map. Weight on a word without
a counterpart counts fully as a difference, because the other text has no such column.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.batch import WORD
from headscope.core.heads import HeadId, Kind
from headscope.encoding.texts import Encoded
from headscope.encoding.words import group
from headscope.errors import RunError
from headscope.gallery.grids import between_words, sides

if TYPE_CHECKING:
    from jaxtyping import Float

LEAST = 0.5  # of the words of the longer text must have a counterpart


@dataclass(frozen=True)
class Alignment:
    """Words and special tokens of two texts that correspond, by place, and the runs of words that differ."""

    pairs: tuple[tuple[int, int], ...]
    rows: tuple[tuple[int, int], ...]  # the pairs that are words
    changed: tuple[tuple[str, str], ...]  # the words of each text; "" for none


@dataclass(frozen=True)
class HeadDifference:
    """A head's mean difference between two texts, and its largest one, with the words of these rows."""

    head: HeadId
    value: float
    largest: float
    words: tuple[str, str]


@dataclass(frozen=True)
class TextDifferences:
    """The differences of all heads, and how rows and columns correspond in each kind of attention."""

    heads: tuple[HeadDifference, ...]
    aligned: Mapping[Kind, tuple[Alignment, Alignment]]


def align(first: Encoded, second: Encoded) -> Alignment:
    """The words of two texts that correspond; an error if the texts share too few words."""
    one, two = _positions(first), _positions(second)
    pairs: list[tuple[int, int]] = []
    changed: list[tuple[str, str]] = []
    matcher = SequenceMatcher(None, [(role, form.casefold()) for form, role in one], [(role, form.casefold()) for form, role in two], False)
    for how, a, a_end, b, b_end in matcher.get_opcodes():
        if how != "equal":
            changed.append((" ".join(form for form, _ in one[a:a_end]), " ".join(form for form, _ in two[b:b_end])))
        if a_end - a == b_end - b:
            pairs += zip(range(a, a_end), range(b, b_end), strict=True)
    rows = [(a, b) for a, b in pairs if one[a][1] == two[b][1] == WORD]
    counts = [sum(role == WORD for _, role in side) for side in (one, two)]
    if len(rows) < LEAST * max(counts):
        problem = f"the texts have {counts[0]} and {counts[1]} words, and only {len(rows)} correspond, too few to compare heads"
        raise RunError(problem, "Compare texts that differ in a few words")
    return Alignment(tuple(pairs), tuple(rows), tuple(changed))


def differences(
    first: Encoded,
    second: Encoded,
    maps: Mapping[HeadId, Float[np.ndarray, "query key"]],
    others: Mapping[HeadId, Float[np.ndarray, "query key"]],
) -> TextDifferences:
    """The difference of every head of `maps`, in their order; `others` are the maps of the second text."""
    aligned: dict[Kind, tuple[Alignment, Alignment]] = {}
    found = []
    for head, weights in maps.items():
        one, two = sides(first, head.kind), sides(second, head.kind)
        if head.kind not in aligned:
            aligned[head.kind] = align(one[0], two[0]), align(one[1], two[1])
        rows, columns = aligned[head.kind]
        places = np.array(rows.rows)
        distances = _distances(
            between_words(*one, weights[None])[0][places[:, 0]],
            between_words(*two, others[head][None])[0][places[:, 1]],
            np.array(columns.pairs),
        )
        largest = int(distances.argmax())
        words = tuple(_positions(side)[place][0] for side, place in zip((one[0], two[0]), rows.rows[largest], strict=True))
        found.append(HeadDifference(head, float(distances.mean()), float(distances[largest]), (words[0], words[1])))
    return TextDifferences(tuple(found), aligned)


def _distances(
    first: Float[np.ndarray, "row column"], second: Float[np.ndarray, "row other"], pairs: np.ndarray
) -> Float[np.ndarray, "row"]:
    """Total variation distances between rows whose columns correspond as `pairs` says."""
    one, two = first[:, pairs[:, 0]], second[:, pairs[:, 1]]
    alone = first.sum(1) - one.sum(1) + second.sum(1) - two.sum(1)
    distances: Float[np.ndarray, "row"] = (np.abs(one - two).sum(1) + alone) / 2
    return distances


def _positions(side: Encoded) -> list[tuple[str, int]]:
    """Every word and special token with its role."""
    _, forms, roles = group(side.word_of, side.roles, [word.form for word in side.words], side.pieces)
    return list(zip(forms, roles, strict=True))
