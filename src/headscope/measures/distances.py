"""Distances between heads: the Jensen-Shannon divergence of all pairs of heads of a kind (Clark et al. §6, Figure
6; docs/alike.md).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from headscope.core.batch import MapBatch, Side
from headscope.core.hashing import hash64
from headscope.core.heads import HeadLayout
from headscope.core.rows import RowNeeds
from headscope.core.state import State
from headscope.core.transfer import to_device
from headscope.errors import MeasureError
from headscope.measures.base import Columns, Measure
from headscope.measures.groups import group
from headscope.measures.likeness import Likeness
from headscope.measures.weights.gathered import Gathered, RowBlock
from headscope.stats.bootstrap import GOLDEN, group_of, keys_of, mix
from headscope.stats.resampled import Resampled

if TYPE_CHECKING:
    import torch
    from jaxtyping import Bool, Float64, Int64

CONTENT = frozenset({"ADJ", "ADV", "INTJ", "NOUN", "PROPN", "VERB"})  # the open classes of Universal Dependencies
AT_ONCE = 1 << 22  # the most divergences in memory at once: pairs of heads times texts or rows


@dataclass(frozen=True, kw_only=True)
class Distances(Measure):
    """Mean divergence of pairs of heads, in nats, over rows of attention.

    `rows` are those of all positions, of a group of tokens (`word`: all but special tokens), or of `content` words,
    which are known by part of speech and require `level` word. `smoothing` mixes even attention in, as the released
    code does. `sample` compares that many rows of each text, drawn at random, and gives the resulting standard error.
    `normalise=False` gives sums over rows instead of means.
    """

    name: ClassVar[str] = "distances"
    summary: ClassVar[str] = "how differently heads attend: Jensen-Shannon divergence of all pairs of heads, nearest neighbours, layers"
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"reference": {"smoothing": 1e-3, "normalise": False}}

    rows: str = "all"
    smoothing: float = 0.0
    sample: int | None = None
    normalise: bool = True
    epsilons: tuple[float, ...] = (0.02, 0.05, 0.1)

    def __post_init__(self) -> None:
        if self.rows == "content":
            if self.level != "word":
                raise MeasureError("distances: content words are known per word, not per token", "Use level = word with rows = content")
        else:
            group(self.rows)
        if not 0 <= self.smoothing < 1:
            raise MeasureError(f"distances: smoothing is {self.smoothing!r}", "Use 0, or a share below 1 such as 0.001")
        if self.sample is not None and self.sample < 2:
            raise MeasureError(f"distances: a sample of {self.sample} rows of each text", "Use 2 or more: one row gives no standard error")
        if any(epsilon <= 0 for epsilon in self.epsilons):
            raise MeasureError(f"distances: epsilons are {self.epsilons!r}", "Name distances above 0, in nats")

    @property
    def needs(self) -> str | None:
        """Parts of speech if only rows of content words are compared; else None."""
        return "parts of speech" if self.rows == "content" else None

    def row_needs(self) -> RowNeeds | None:
        """The scores, from which all weights are computed; None (maps) if rows are of words or smoothed."""
        return RowNeeds(scores=True, all_weights=True) if self.level == "token" and not self.smoothing else None

    def start(self, layout: HeadLayout, replicates: int, seed: int = 0) -> State:
        """By kind of attention: sums of pairs per group of documents, the rows that they represent, the rows that were
        compared, and the variance of sampled sums.
        """
        return State(
            {"draws": np.array([replicates, seed])},
            {"draws": "max", "sum/": "sum", "rows/": "sum", "looked/": "sum", "variance/": "sum", "documents/": "keyed"},
        )

    def update(self, state: State, batch: MapBatch) -> None:
        """Gather the rows of a site. With the last site of a kind, compare all heads, if there are at least two."""
        if len(batch.layout.by_kind()[batch.site.kind]) < 2:
            return
        key = (self, batch.site.kind)
        if key not in batch.shared:
            batch.shared[key] = self._begin(batch, int(state.setting("draws")[1]))
        total, gathered = batch.shared[key]
        gathered.add(batch)
        if gathered.complete:
            del batch.shared[key]
            if len(gathered.texts):
                self._count(state, batch, total, gathered)

    def _begin(self, batch: MapBatch, seed: int) -> tuple[Int64[np.ndarray, "text"], Gathered]:
        """The number of rows of each text, and a collector of the rows that are compared."""
        chosen = _content(batch.queries) if self.rows == "content" else batch.queries.chosen(self.rows, group(self.rows))
        total = chosen.sum(1)
        if self.sample is not None:
            chosen = sampled(batch.queries, chosen, self.sample, seed)
        texts, places = chosen.nonzero()
        return total, Gathered(batch, texts, places, self.smoothing)

    def _count(self, state: State, batch: MapBatch, total: Int64[np.ndarray, "text"], gathered: Gathered) -> None:
        import torch

        kind, heads = batch.site.kind, len(batch.layout.by_kind()[batch.site.kind])
        sums, squares = _summed(gathered, len(total), heads, self.sample is not None)
        looked = np.bincount(gathered.texts, minlength=len(total))
        # The compared rows represent the whole text.
        sums *= to_device(total / np.maximum(looked, 1), sums.device)[:, None]
        count = groups(heads)
        of = np.array([group_of(document, count) for document in batch.documents])
        member = to_device((of == np.arange(count)[:, None]).astype(np.float64), sums.device)
        documents = np.column_stack([keys_of(batch.documents), total])
        # Of a sample without replacement of n of N: the variance of the estimated sum is N^2 (1 - n/N) s^2 / n.
        share = np.where(looked > 1, total**2 * (1 - looked / np.maximum(total, 1)) / np.maximum(looked * (looked - 1), 1), 0.0)
        for part, texts in state.split(batch.slices):
            if not looked[texts].any():  # no compared row of the batch is in this slice
                continue
            chosen = texts if isinstance(texts, slice) else to_device(texts, sums.device)
            pending = part.pending(self.name, _Pending)
            pending.add("sum/", kind, member[:, chosen] @ sums[chosen])
            for name, numbers in (("rows/", total), ("looked/", looked)):
                by_group = np.zeros(count, dtype=np.int64)
                np.add.at(by_group, of[texts], numbers[texts])
                pending.add(name, kind, torch.from_numpy(by_group))
            pending.add_documents(kind, documents[texts][total[texts] > 0])
            if squares is not None:
                pending.add("variance/", kind, to_device(share[texts], squares.device) @ squares[chosen])

    def tables(self, state: State, layout: HeadLayout) -> dict[str, Columns]:
        """`distances` and `distances_layers`: heads and layers. `distances_pairs`: every pair. `distances_structure`:
        distances within and between layers, and redundancy.
        """
        return Likeness(state, layout, self.normalise, self.epsilons).tables()

    def resampled(self, state: State, layout: HeadLayout, least: int | None = None) -> Iterator[Resampled]:
        """The quantities of the table of heads."""
        return Likeness(state, layout, self.normalise, self.epsilons).resampled()

    def expected(self, state: State, layout: HeadLayout) -> dict[str, Float64[np.ndarray, "head"]]:
        """The mean of all pairs, the baseline of distances within the layer and to other layers."""
        return Likeness(state, layout, self.normalise, self.epsilons).expected()


class _Pending:
    """Numbers that are not yet added to a state. They stay on their device, since fetching them at once would make it
    wait.
    """

    def __init__(self) -> None:
        self._sums: dict[tuple[str, str], torch.Tensor] = {}
        self._documents: dict[str, list[Int64[np.ndarray, "document 2"]]] = {}

    def add(self, family: str, kind: str, values: torch.Tensor) -> None:
        """Add numbers to the pending ones of an array."""
        key = (family, kind)
        self._sums[key] = self._sums[key] + values if key in self._sums else values

    def add_documents(self, kind: str, rows: Int64[np.ndarray, "document 2"]) -> None:
        """Add the keys of documents and the number of rows of each."""
        self._documents.setdefault(kind, []).append(rows)

    def settle(self, state: State) -> None:
        """Add everything to the arrays."""
        for (family, kind), values in self._sums.items():
            numbers = values.cpu().numpy()
            state.member(family, kind, partial(np.zeros_like, numbers))[...] += numbers
        for kind, rows in self._documents.items():
            state.member("documents/", kind, lambda: np.zeros((0, 2), dtype=np.int64))
            state.add(f"documents/{kind}", np.concatenate(rows))


def groups(heads: int) -> int:
    """The number of groups of documents for which sums are kept; smaller if there are very many pairs of heads."""
    return int(min(32, max(8, (1 << 22) // max(1, heads * (heads - 1) // 2))))


def _content(side: Side) -> Bool[np.ndarray, "text position"]:
    """The positions of content words."""
    words = side.chosen("word", group("word"))
    chosen = words.copy()
    chosen[words] = [word.upos in CONTENT for text in side.texts for word in text.words]
    return chosen


def sampled(side: Side, chosen: Bool[np.ndarray, "text position"], size: int, seed: int) -> Bool[np.ndarray, "text position"]:
    """At most `size` of the chosen positions of each text. The draw depends only on the text and the seed."""
    steps = np.arange(1, side.width + 1, dtype=np.uint64) * GOLDEN
    forms = side.answers(f"bits of {seed}", lambda form, _: np.uint64(_bits(f"{seed}\x1f{form}")), np.uint64(0))
    texts = np.where(side.roles >= 0, mix(forms + steps), np.uint64(0)).sum(1, dtype=np.uint64)
    lots = np.where(chosen, mix(texts[:, None] + steps), np.uint64(2**64 - 1))  # one random number per position; the lowest win
    sample = np.zeros_like(chosen)
    np.put_along_axis(sample, np.argsort(lots, 1, kind="stable")[:, :size], True, 1)
    sample &= chosen
    return sample


def _bits(text: str) -> int:
    return hash64(text.encode("utf-8", "surrogatepass"))


def _summed(
    gathered: Gathered, texts: int, heads: int, squares: bool
) -> tuple[Float64[torch.Tensor, "text pair"], Float64[torch.Tensor, "text pair"] | None]:
    """The divergences of all pairs a < b, summed over the rows of each text; and, if `squares`, their squared
    deviations from the text's mean, summed likewise.
    """
    import torch

    upper = to_device(np.stack(np.triu_indices(heads, 1)), gathered.device)
    sums: torch.Tensor | None = None
    square: torch.Tensor | None = None
    for block in gathered.blocks():
        of = gathered.texts[block.rows]
        for at, found in _rows(block, heads) if squares else _texts(block, of, heads):
            pairs = found[:, upper[0], upper[1]]
            if sums is None:
                sums = pairs.new_zeros((texts, pairs.shape[1]))
                square = torch.zeros_like(sums) if squares else None
            numbers = at if not squares else of[at]
            member = to_device((np.arange(texts)[:, None] == numbers).astype(np.float64), pairs.device)
            sums += member @ pairs
            if square is not None:
                square += member @ pairs**2
    assert sums is not None, "there are no rows"
    if square is not None:
        n = to_device(np.bincount(gathered.texts, minlength=texts), sums.device)[:, None]
        square = (square - sums**2 / n.clamp_min(1)).clamp_min_(0)
    return sums, square


def _texts(
    block: RowBlock, of: Int64[np.ndarray, "row"], heads: int
) -> Iterator[tuple[Int64[np.ndarray, "text"], Float64[torch.Tensor, "text head head"]]]:
    """The sums of each text, a block of texts at a time."""
    numbers, starts = np.unique(of, return_index=True)
    starts, step = np.append(starts, len(of)), max(1, AT_ONCE // heads**2)
    for first in range(0, len(numbers), step):
        yield numbers[first : first + step], block.stack.divergences(starts[first : first + step + 1], block.ends)


def _rows(block: RowBlock, heads: int) -> Iterator[tuple[Int64[np.ndarray, "row"], Float64[torch.Tensor, "row head head"]]]:
    """Each row separately, a block of rows at a time."""
    step = max(1, AT_ONCE // heads**2)
    for start in range(0, len(block.rows), step):
        rows = np.arange(start, min(start + step, len(block.rows)))
        yield rows, block.stack.divergences(np.append(rows, rows[-1] + 1), block.ends)
