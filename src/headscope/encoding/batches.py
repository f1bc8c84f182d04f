"""Cutting a stream of inputs into shards (what is computed and kept at once) and batches (what the model sees at
once).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from headscope.core.batch import ROLES, Forms, Side, pad
from headscope.encoding.texts import Encoded

if TYPE_CHECKING:
    from jaxtyping import Int


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
    roles = pad([text.arrays.roles for text in texts])
    annotations = tuple(text.annotation for text in texts)
    return Side(
        roles, lambda: _token_forms(texts, roles), annotations, make_word_of=lambda: pad([np.array(text.word_of) for text in texts])
    )


def _token_forms(texts: Sequence[Encoded], roles: Int[np.ndarray, "batch position"]) -> Forms:
    present = roles >= 0
    pairs = np.concatenate([text.ids for text in texts]) * ROLES + roles[present]
    place = np.full(int(pairs.max()) + 1, -1, dtype=np.int32)  # no larger than the vocabulary
    place[pairs[::-1]] = np.arange(len(pairs))[::-1]  # where each is met first: of several, the last one written stays
    used = np.flatnonzero(place >= 0)
    firsts = place[used]
    place[used] = np.arange(len(used))
    positions = np.full(roles.shape, -1)
    positions[present] = place[pairs]
    pieces = list(chain.from_iterable(text.pieces for text in texts))
    forms = map(pieces.__getitem__, firsts.tolist())
    return Forms(tuple(zip(forms, (used % ROLES).tolist(), strict=True)), positions)
