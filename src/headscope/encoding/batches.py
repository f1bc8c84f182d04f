"""Cutting a stream of inputs into shards (what is computed and kept at once) and batches (what the model sees at
once).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, Protocol, TypeVar

import numpy as np

from headscope.core.batch import SPECIAL, Side
from headscope.encoding.texts import Encoded

_ROLES = SPECIAL + 1  # how many roles there are


class Costs(Protocol):
    """What a shard is made of: something of so many tokens."""

    @property
    def cost(self) -> int:
        """Tokens of the longer side."""


Text = TypeVar("Text", bound=Costs)
Item = TypeVar("Item")


def shards(texts: Iterable[Text], tokens: int) -> Iterator[list[Text]]:
    """Consecutive runs of texts of about `tokens` tokens each; where a shard ends depends on the texts alone."""
    shard: list[Text] = []
    size = 0
    for text in texts:
        shard.append(text)
        size += text.cost
        if size >= tokens:
            yield shard
            shard, size = [], 0
    if shard:
        yield shard


def batches(texts: Sequence[Encoded], tokens: int) -> Iterator[list[Encoded]]:
    """The texts sorted by length and grouped so that a padded batch holds at most `tokens` tokens (or one text)."""
    ordered = sorted(texts, key=lambda text: (text.cost, text.id))
    return grouped(ordered, lambda batch, text: (len(batch) + 1) * text.cost > tokens)


def grouped(items: Iterable[Item], full: Callable[[list[Item], Item], bool]) -> Iterator[list[Item]]:
    """Consecutive items in batches. `full` says that a batch has no room for the item that follows."""
    batch: list[Item] = []
    for item in items:
        if batch and full(batch, item):
            yield batch
            batch = []
        batch.append(item)
    if batch:
        yield batch


def pooled(order: Sequence[int] | np.ndarray, size: int, pool: int, key: Callable[[int], Any]) -> Iterator[list[list[int]]]:
    """Batches of `size` items, `pool` of them at a time: items that follow each other are sorted by a key, such as
    their length, to pad less.
    """
    for start in range(0, len(order), pool * size):
        items = sorted(order[start : start + pool * size], key=key)
        yield [items[first : first + size] for first in range(0, len(items), size)]


def token_side(texts: Sequence[Encoded]) -> Side:
    """What the token-level rows or columns of these texts' maps are. Equal ids have equal forms, so only different
    ones are looked at.
    """
    pairs = np.concatenate([text.ids * _ROLES + np.array(text.roles) for text in texts])
    _, first, numbers = np.unique(pairs, return_index=True, return_inverse=True)
    pieces = list(chain.from_iterable(text.pieces for text in texts))
    roles = list(chain.from_iterable(text.roles for text in texts))
    lengths = np.array([len(text) for text in texts])
    positions = np.full((len(texts), lengths.max()), -1)
    positions[np.arange(lengths.max()) < lengths[:, None]] = numbers
    return Side(positions, tuple((pieces[at], roles[at]) for at in first))
