"""Cut a stream of inputs into shards (units of work whose results are stored together) and batches (texts of one
forward pass).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, overload

import numpy as np

from headscope.core.annotation import Annotation
from headscope.core.batch import ROLES, Forms, Side, pad
from headscope.encoding.texts import Encoded

if TYPE_CHECKING:
    from jaxtyping import Int


class Costs(Protocol):
    """An item of a shard, with its number of tokens."""

    @property
    def cost(self) -> int:
        """Tokens of the longer side."""


Text = TypeVar("Text", bound=Costs)
Item = TypeVar("Item")


def shards(texts: Iterable[Text], tokens: int) -> Iterator[list[Text]]:
    """Shards: consecutive texts of about `tokens` tokens each. The boundaries depend only on the texts."""
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
    ordered = sorted((text.cost, text.id, place) for place, text in enumerate(texts))
    for batch in grouped(ordered, lambda batch, item: (len(batch) + 1) * item[0] > tokens):
        yield [texts[place] for *_, place in batch]


def grouped(items: Iterable[Item], full: Callable[[list[Item], Item], bool]) -> Iterator[list[Item]]:
    """Consecutive items in batches. `full` tells whether a batch has no room for the next item."""
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


class Annotations(Sequence[Annotation]):
    """The annotation of each of some texts. The annotation of packed texts is unpacked only when it is read."""

    def __init__(self, texts: Sequence[Encoded]) -> None:
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts)

    @overload
    def __getitem__(self, place: int) -> Annotation: ...
    @overload
    def __getitem__(self, place: slice) -> Sequence[Annotation]: ...
    def __getitem__(self, place: int | slice) -> Annotation | Sequence[Annotation]:
        return Annotations(self._texts[place]) if isinstance(place, slice) else self._texts[place].annotation


def _word_of(texts: Sequence[Encoded]) -> Int[np.ndarray, "batch token"]:
    return pad([np.array(text.word_of) for text in texts])


class TokenForms:
    """The forms of the tokens of one tokenizer's texts. Equal ids have equal forms, so each is decoded once, for any
    number of batches.
    """

    def __init__(self) -> None:
        self._forms = Forms()
        self._numbers = np.full(0, -1, dtype=np.int32)  # by id and role; -1 is unknown
        self._lock = Lock()

    def side(self, texts: Sequence[Encoded]) -> Side:
        """The token-level rows or columns of these texts' maps."""
        roles = pad([text.arrays.roles for text in texts])
        word_of = partial(_word_of, texts)
        return Side(roles, lambda: self._numbered_forms(texts, roles), Annotations(texts), make_word_of=word_of)

    def _numbered_forms(
        self, texts: Sequence[Encoded], roles: Int[np.ndarray, "batch position"]
    ) -> tuple[Forms, Int[np.ndarray, "batch position"]]:
        present = roles >= 0
        pairs = np.concatenate([text.ids for text in texts]) * ROLES + roles[present]
        with self._lock:  # another thread may prepare batches
            if (size := int(pairs.max(initial=-1)) + 1) > len(self._numbers):
                self._numbers = np.concatenate([self._numbers, np.full(size - len(self._numbers), -1, dtype=np.int32)])
            if len(new := np.flatnonzero(self._numbers[pairs] < 0)):
                self._add(pairs, new, texts)
            positions = np.full(roles.shape, -1, dtype=np.int32)
            positions[present] = self._numbers[pairs]
        return self._forms, positions

    def _add(self, pairs: Int[np.ndarray, "token"], new: Int[np.ndarray, "new"], texts: Sequence[Encoded]) -> None:
        """Number the forms of the tokens at the places `new`, which may contain the same token several times."""
        different, first = np.unique(pairs[new], return_index=True)
        ends = np.cumsum([len(text) for text in texts])
        places = new[first]
        owners = np.searchsorted(ends, places, side="right")  # only their pieces are needed: those of others may be packed
        before = places - ends[owners]  # the place of each token before the end of its text
        pieces = [texts[owner].pieces[place] for owner, place in zip(owners.tolist(), before.tolist(), strict=True)]
        self._numbers[different] = np.arange(len(different)) + len(self._forms.kinds)
        self._forms.kinds += zip(pieces, (different % ROLES).tolist(), strict=True)


def token_side(texts: Sequence[Encoded]) -> Side:
    """The token-level rows or columns of these texts' maps, without a cache over batches."""
    return TokenForms().side(texts)
