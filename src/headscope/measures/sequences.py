"""Heads that follow repeated tokens: induction, duplicate token, previous token (Elhage et al. 2021, Olsson et al.
2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

import numpy as np

from headscope.core.batch import IS_WORD, MapBatch
from headscope.core.rows import RowNeeds
from headscope.core.transfer import to_device
from headscope.encoding.choices import Overlong, Unit
from headscope.errors import MeasureError
from headscope.measures.means import HeadMeans
from headscope.measures.weights.blocks import pair_weights
from headscope.measures.weights.names import capitalised_names, seldom
from headscope.stats.bootstrap import GOLDEN, keys_of, mix

if TYPE_CHECKING:
    import torch
    from jaxtyping import Bool, Float64, Int, Int64

    from headscope.measures.means import Counts, Sums

_COPIES = ("induction", "duplicate", "name_induction", "name_copy")
QUANTITIES = (*_COPIES[:2], "previous_token", *_COPIES[2:], *(f"{name}_shuffled" for name in _COPIES))


class TokenPairs(NamedTuple):
    """Pairs of a row and an earlier key in a batch of texts, and the number of rows of each text that have a pair."""

    text: Int64[np.ndarray, "pair"]
    row: Int64[np.ndarray, "pair"]
    column: Int64[np.ndarray, "pair"]
    rows: Float64[np.ndarray, "batch"]

    def after(self) -> TokenPairs:
        """The same rows, each paired with the key after its key."""
        return self._replace(column=self.column + 1)

    def before(self) -> TokenPairs:
        """The same keys, each paired with the row before its row: the token that a repeated token follows."""
        return self._replace(row=self.row - 1)


class PairIndex(NamedTuple):
    """The pairs of all quantities on a device, sorted by quantity and text, and their number per quantity and text."""

    text: Int[torch.Tensor, "pair"]
    row: Int[torch.Tensor, "pair"]
    column: Int[torch.Tensor, "pair"]
    sizes: Int[torch.Tensor, "quantity*batch"]
    rows: Float64[np.ndarray, "batch quantity"]


@dataclass(frozen=True, kw_only=True)
class Sequences(HeadMeans):
    """Mean weight on earlier copies of a token (`duplicate`), on the tokens after them (`induction`), and on the
    previous token. Rows are the tokens that occurred before in the text.

    On sequences that are written twice, these are the scores of the second copy. `name_induction` is induction at names
    that occurred before; `name_copy` is the weight of the token before such a name on the earlier copies of the name.
    Names are capitalised tokens that the text has at most `rare` times and never in lower case. `…_shuffled` are the
    same weights at the pairs found in another order of the text's words, drawn by `seed` and the document. Special
    tokens belong to no pair.
    """

    name: ClassVar[str] = "sequences"
    summary: ClassVar[str] = "induction, duplicate-token and previous-token scores, on repeated sequences or any text"
    within: ClassVar[tuple[float, float]] = (0.0, 1.0)
    natural: ClassVar[tuple[Unit, Overlong] | None] = ("document", "window")

    seed: int = 0
    rare: int = 5

    def __post_init__(self) -> None:
        if self.rare < 2:
            raise MeasureError(f"sequences: rare is {self.rare}", "Use 2 or more: a name that occurs once has no earlier copy")

    def quantities(self) -> tuple[str, ...]:
        """`induction`, `duplicate`, `previous_token`, `name_induction`, `name_copy`; all but the third `…_shuffled`."""
        return QUANTITIES

    def defined(self, kind: str, quantity: str) -> bool:
        """Whether rows and keys are those of one text, which excludes cross-attention."""
        return kind != "cross"

    def row_needs(self) -> RowNeeds | None:
        """The scores, from which single weights are computed."""
        return RowNeeds(scores=True) if self.level == "token" else None

    def observe(self, batch: MapBatch) -> tuple[Sums, Counts]:
        """The weights of the pairs of each quantity, summed over each text."""
        import torch

        pairs = batch.once((self, "pairs", batch.device), lambda: self._pairs(batch))
        weights = pair_weights(batch, pairs.text, pairs.row, pairs.column)
        sums = torch.segment_reduce(weights, "sum", lengths=pairs.sizes, axis=0, initial=0)
        return sums.view(len(QUANTITIES), len(pairs.rows), -1).transpose(0, 1), pairs.rows

    def _pairs(self, batch: MapBatch) -> PairIndex:
        """The pairs of each quantity, in the order of `quantities`."""
        tokens, words = batch.queries.positions, batch.queries.chosen("word", IS_WORD)
        names = capitalised_names(batch.queries) & seldom(tokens, self.rare)
        order = shuffled_places(words, batch.documents, self.seed)
        own = self._copies(tokens, words, names)
        shuffled = self._copies(*(np.take_along_axis(array, order, 1) for array in (tokens, words, names)))
        quantities = (*own[:2], _previous(batch.queries.roles >= 0), *own[2:], *shuffled)
        sizes = np.concatenate([np.bincount(pairs.text, minlength=len(tokens)) for pairs in quantities])
        columns = (np.concatenate(part) for part in list(zip(*quantities, strict=True))[:3])
        text, row, column, number = (to_device(part, batch.device) for part in (*columns, sizes))
        return PairIndex(text, row, column, number, np.stack([pairs.rows for pairs in quantities], 1))

    @staticmethod
    def _copies(
        tokens: Int[np.ndarray, "batch position"], words: Bool[np.ndarray, "batch position"], names: Bool[np.ndarray, "batch position"]
    ) -> tuple[TokenPairs, ...]:
        """The pairs of `_COPIES`."""
        earlier, earlier_names = earlier_copies(tokens, words), earlier_copies(tokens, names)
        return earlier.after(), earlier, earlier_names.after(), earlier_names.before()


def earlier_copies(tokens: Int[np.ndarray, "batch position"], words: Bool[np.ndarray, "batch position"]) -> TokenPairs:
    """All pairs of a word and an earlier copy of it, sorted by text."""
    text, place = words.nonzero()
    key = text * (int(tokens.max(initial=0)) + 1) + tokens[text, place]
    order = np.argsort(key, kind="stable")  # copies are adjacent, in the order of the text
    number = np.arange(len(order))
    first = np.ones(len(order), dtype=bool)
    first[1:] = np.diff(key[order]) != 0
    start = np.maximum.accumulate(np.where(first, number, 0))
    before = number - start  # copies before this one
    row = np.repeat(number, before)
    column = start[row] + np.arange(len(row)) - np.repeat(np.cumsum(before) - before, before)
    row, column = order[row], order[column]
    counted = np.bincount(text[order[before > 0]], minlength=len(words)).astype(np.float64)
    return TokenPairs(text[row], place[row], place[column], counted)


def shuffled_places(words: Bool[np.ndarray, "batch position"], documents: Sequence[str], seed: int) -> Int64[np.ndarray, "batch position"]:
    """For each position, the one whose token takes its place when the words of each text are put in another order,
    drawn by the seed and the document.
    """
    text, place = words.nonzero()
    salt = mix(keys_of(documents).view(np.uint64) ^ mix(np.array([seed], dtype=np.uint64) + GOLDEN))
    draws = mix(salt[text] + place.astype(np.uint64) * GOLDEN)
    order = np.lexsort((draws, text))
    places = np.tile(np.arange(words.shape[1]), (len(words), 1))
    places[text, place] = place[order]
    return places


def _previous(valid: Bool[np.ndarray, "batch position"]) -> TokenPairs:
    """Every token from the third on, paired with the one before it."""
    text, place = valid[:, 2:].nonzero()
    return TokenPairs(text, place + 2, place + 1, np.bincount(text, minlength=len(valid)).astype(np.float64))
