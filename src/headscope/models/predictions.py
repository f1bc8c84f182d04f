"""The predictions that a model makes in a text: masked pieces, drawn from the text and a seed alone; each next piece;
its class; or tags.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
import torch

from headscope.core.batch import WORD
from headscope.core.hashing import hash64
from headscope.encoding.texts import Encoded
from headscope.errors import ModelError
from headscope.stats.bootstrap import GOLDEN, mix

if TYPE_CHECKING:
    from jaxtyping import Float, Int64, UInt64

Objective = Literal["masked", "causal", "classes", "tags"]
MASK, RANDOM = 0.8, 0.1  # of the masked pieces, the share that becomes [MASK], and the share that becomes a random piece; the rest stays


@dataclass(frozen=True)
class Predictions:
    """The inputs of a batch and the targets of its predictions: piece `labels[k]` at position `places[k]` of text
    `texts[k]`.

    For classes there is one per text, and `places` is not used.
    """

    ids: tuple[Int64[np.ndarray, "token"], ...]
    texts: Int64[np.ndarray, "n"]
    places: Int64[np.ndarray, "n"]
    labels: Int64[np.ndarray, "n"]

    def loss(self, logits: Float[torch.Tensor, "n piece"], reduction: str) -> Float[torch.Tensor, ""]:
        """The sum over texts of each text's loss, so that the composition of batches has no effect."""
        losses = torch.nn.functional.cross_entropy(logits.float(), torch.from_numpy(self.labels).to(logits.device), reduction="none")
        shares = np.ones(len(self.texts)) if reduction == "sum" else 1 / np.bincount(self.texts)[self.texts]
        return (losses * torch.from_numpy(shares).to(losses.device, losses.dtype)).sum()


def predictions(texts: Sequence[Encoded], objective: Objective, mask: int | None, vocabulary: int, share: float, key: str) -> Predictions:
    """The predictions of a masked model, for `share` of the pieces of each text, at least one; or of a causal model,
    for every piece but the first.
    """
    parts = [_masked(text, mask, vocabulary, share, key) if objective == "masked" else _next(text) for text in texts]
    numbers = np.repeat(np.arange(len(texts)), [len(places) for _, places, _ in parts])
    places, labels = (np.concatenate([part[side] for part in parts]) for side in (1, 2))
    return Predictions(tuple(ids for ids, _, _ in parts), numbers, places, labels)


def classes(texts: Sequence[Encoded], known: Mapping[str, int]) -> Predictions:
    """The class of each text."""
    numbers = np.array([class_number(text.label, known) for text in texts if text.label is not None], dtype=np.int64)
    return Predictions(tuple(text.ids for text in texts), np.arange(len(texts)), np.zeros_like(numbers), numbers)


def tags(texts: Sequence[Encoded], known: Mapping[str, int]) -> Predictions:
    """The tag of each word that has one, at the first token of the word."""
    parts = [text.tagged() for text in texts]
    numbers = np.repeat(np.arange(len(texts)), [len(places) for places, _ in parts])
    found = {name: class_number(name, known) for name in {name for _, names in parts for name in names}}
    labels = np.array([found[name] for _, names in parts for name in names], dtype=np.int64)
    return Predictions(tuple(text.ids for text in texts), numbers, np.concatenate([places for places, _ in parts]), labels)


def class_number(label: str, known: Mapping[str, int]) -> int:
    """The number of a class, given by its name in any case or by the number itself."""
    if label in known:
        return known[label]
    alike = {number for name, number in known.items() if name.casefold() == label.casefold()}
    if len(alike) == 1:
        return alike.pop()
    if label.isdecimal() and int(label) in known.values():
        return int(label)
    raise ModelError(
        f"the label {label!r} is not one of the model's: {', '.join(known)}",
        "Name labels as the model's config.json does (id2label), or number them from 0",
    )


def _next(text: Encoded) -> tuple[Int64[np.ndarray, "token"], Int64[np.ndarray, "n"], Int64[np.ndarray, "n"]]:
    read = text if text.target is None else text.target
    return text.ids, np.arange(len(read) - 1), read.ids[1:].astype(np.int64)


def _masked(
    text: Encoded, mask: int | None, vocabulary: int, share: float, key: str
) -> tuple[Int64[np.ndarray, "token"], Int64[np.ndarray, "n"], Int64[np.ndarray, "n"]]:
    pieces = np.flatnonzero(np.array(text.roles) == WORD)
    chosen, fate, other = _random_numbers(text, key, 3)
    places = np.sort(pieces[np.argsort(chosen[pieces], kind="stable")[: max(1, round(share * len(pieces)))]])
    ids = text.ids.astype(np.int64).copy()
    labels = ids[places]
    shares = fate[places] / 2.0**64
    replaced = np.where(shares < MASK + RANDOM, (other[places] % np.uint64(vocabulary)).astype(np.int64), labels)
    ids[places] = replaced if mask is None else np.where(shares < MASK, mask, replaced)
    return ids, places, labels


def _random_numbers(text: Encoded, key: str, count: int) -> UInt64[np.ndarray, "number token"]:
    """`count` pseudo-random numbers for each token."""
    start = np.uint64(hash64(key.encode() + text.ids.astype(np.int64).tobytes()))
    steps = np.arange(1, count * len(text.ids) + 1, dtype=np.uint64) * GOLDEN
    return mix(start + steps).reshape(count, -1)
