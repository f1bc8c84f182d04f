"""Divergences of all pairs of heads of two models over the texts that both read, in one stream."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.core.batch import Side
from headscope.core.heads import HeadLayout, Kind
from headscope.encoding.batches import grouped, token_side
from headscope.encoding.choices import Rows
from headscope.encoding.words import WordGroups
from headscope.engine.accumulate import BatchView
from headscope.engine.compute import explain
from headscope.engine.plan import Plan
from headscope.errors import HeadscopeError
from headscope.measures.base import Level
from headscope.measures.distances import groups
from headscope.measures.groups import group
from headscope.measures.weights.gathered import MOST
from headscope.models.model import Model
from headscope.stats.bootstrap import group_of, poisson_weights
from headscope.stats.divergence import RowStack
from headscope.studies.base import layer_weights
from headscope.studies.twins.states import Sums
from headscope.studies.twins.texts import Shared, rows_of

if TYPE_CHECKING:
    from jaxtyping import Float, Int64

TERM = 17  # multiplications of matrices in the time of one term (p + q)·log(p + q)


@dataclass(frozen=True)
class Watched:
    """A model, the kind of its attention that is compared, and which of the two inputs of a text it reads."""

    model: Model
    kind: Kind
    reading: int

    @property
    def plan(self) -> Plan:
        """The sites of the kind, and no measures."""
        chosen = tuple(index for index, site in enumerate(self.model.sites) if site.kind == self.kind)
        return Plan((), chosen, HeadLayout(tuple(self.model.sites[index] for index in chosen)))


class SideBySide:
    """Adds texts to the `sums` of two models, and to those with their untrained copies, if there are any."""

    def __init__(
        self,
        first: Watched,
        second: Watched,
        level: Level,
        word_rows: Rows,
        batch_tokens: int,
        copies: tuple[Watched, Watched] | None = None,
    ) -> None:
        self._watched = [first, second, *(copies or ())]
        self._plans = [watched.plan for watched in self._watched]
        # The models that are compared: the two, the first and the copy of the second, the copy of the first and the
        # second.
        self._couples = [(0, 1), (0, 3), (2, 1)] if copies is not None else [(0, 1)]
        self._level: Level = level
        self._word_rows: Rows = word_rows
        self._batch_tokens = batch_tokens
        self._device = first.model.device
        a, b = self._sizes = first.plan.layout.size, second.plan.layout.size
        count = groups(a + b)
        self.sums = Sums(np.zeros(count, dtype=np.int64), np.zeros((count, a + b)), np.zeros((count, (a + b) * (a + b - 1) // 2)))
        if copies is not None:
            self.sums.untrained = np.zeros((count, a, b)), np.zeros((count, a, b))

    def add(self, texts: Iterable[Shared], progress: Callable[[float], None] | None = None) -> None:
        """Compare the heads on some texts; texts of similar length are read together. `progress` receives the share of
        the work that is done.
        """
        ordered = sorted(texts, key=lambda text: (text.cost, text.inputs[0].id))
        whole, done = sum(map(self.cost, ordered)), 0.0
        for batch in self._batches(ordered):
            of = np.array([group_of(text.document, len(self.sums.rows)) for text in batch])
            order = np.argsort(of, kind="stable")  # rows of a group of documents are adjacent
            self._add([batch[place] for place in order], of[order])
            done += sum(map(self.cost, batch))
            if progress is not None:
                progress(done / whole)

    def cost(self, text: Shared) -> float:
        """The multiplications for a text: a pass of every model, and all pairs of heads row by row."""
        passes = sum(len(text.inputs[watched.reading]) * weights for watched, weights in zip(self._watched, self._weights, strict=True))
        return passes + len(self._couples) * TERM * sum(self._sizes) ** 2 / 2 * text.size**2

    @cached_property
    def _weights(self) -> list[int]:
        return [layer_weights(watched.model.network) for watched in self._watched]

    def _bytes(self, rows: int, keys: int) -> int:
        return 4 * rows * keys * sum(self._sizes) * len(self._couples)

    def _batches(self, texts: Sequence[Shared]) -> Iterator[list[Shared]]:
        """Batches of texts, sorted by length, whose tokens and rows fit; or of one text."""

        def full(batch: list[Shared], text: Shared) -> bool:
            sizes = [part.size for part in (*batch, text)]
            return len(sizes) * text.cost > self._batch_tokens or self._bytes(sum(sizes), max(sizes)) > self._most

        return grouped(texts, full)

    @property
    def _most(self) -> int:
        return MOST.get(self._device.type, MOST["cpu"])

    def _add(self, batch: Sequence[Shared], of: Int64[np.ndarray, "text"]) -> None:
        """Add a batch that fits in memory; a long text takes several blocks of rows, each with a pass of the models."""
        sizes = np.array([text.size for text in batch])
        texts = np.repeat(np.arange(len(batch)), sizes)
        rows = np.concatenate([np.arange(size) for size in sizes])
        step = max(1, self._most // self._bytes(1, int(sizes.max())))
        views = [_View(watched, batch, self._level, self._word_rows, self._device) for watched in self._watched]
        for start in range(0, len(rows), step):
            part = slice(start, start + step)
            self._count(batch, views, _Block(texts[part], rows[part], of[texts[part]], sizes[texts[part]]))

    def _count(self, batch: Sequence[Shared], views: Sequence[_View], block: _Block) -> None:
        number = np.arange(len(block.rows))
        heads = [[site.heads for site in plan.layout.sites] for plan in self._plans]
        keys = max(text.size for text in batch)
        stacks = [
            RowStack(number, np.zeros_like(number), [*heads[first], *heads[second]], keys, self._device) for first, second in self._couples
        ]
        for place, (watched, view) in enumerate(zip(self._watched, views, strict=True)):
            inputs = [text.inputs[watched.reading] for text in batch]
            sites = {site: index for index, site in enumerate(self._plans[place].chosen)}
            shares: list[torch.Tensor] = []
            take = partial(self._take, place, sites, view, block, stacks, shares)
            try:
                watched.model.stream(watched.model.inputs(inputs), take, frozenset(sites))
            except HeadscopeError:
                raise
            except (RuntimeError, IndexError, ValueError) as error:
                raise explain(watched.model, inputs, error) from error
            if place < len(self._sizes):
                first = place * self._sizes[0]
                words = torch.cat(shares, 1).double().cpu().numpy()
                np.add.at(self.sums.words[:, first : first + self._sizes[place]], block.of, words)
        np.add.at(self.sums.rows, block.of, 1)
        self._divergences(stacks, block)

    def _take(
        self,
        place: int,
        sites: Mapping[int, int],
        view: _View,
        block: _Block,
        stacks: Sequence[RowStack],
        shares: list[torch.Tensor],
        site: int,
        weights: Float[torch.Tensor, "text head query key"],
        *_: object,
    ) -> None:
        """Add one site of the model at a place to the stacks, and keep the attention of its heads to words."""
        plan, index = self._plans[place], sites[site]
        rows, words = view.rows(plan, index, weights, block)
        for stack, (first, second) in zip(stacks, self._couples, strict=True):
            if place in (first, second):
                stack.put(index + (len(self._plans[first].chosen) if place == second else 0), rows[:, :, None])
        shares.append(words)

    def _divergences(self, stacks: Sequence[RowStack], block: _Block) -> None:
        numbers, starts = np.unique(block.of, return_index=True)
        starts = np.append(starts, len(block.of))
        causal = all(watched.kind == "decoder" for watched in self._watched)
        a = self._sizes[0]
        for couple, stack in enumerate(stacks):
            divergences = stack.divergences(starts, stack.ends() if causal else block.sizes)
            if couple == 0:
                first, second = torch.triu_indices(divergences.shape[1], divergences.shape[2], 1)
                self.sums.pairs[numbers] += divergences[:, first, second].cpu().numpy()
            else:
                assert self.sums.untrained is not None
                self.sums.untrained[couple - 1][numbers] += divergences[:, :a, a:].cpu().numpy()


@dataclass(frozen=True)
class _Block:
    """Some rows of a batch: for each its text, its number among the shared rows, its group, and its columns."""

    texts: Int64[np.ndarray, "row"]
    rows: Int64[np.ndarray, "row"]
    of: Int64[np.ndarray, "row"]
    sizes: Int64[np.ndarray, "row"]


class _View:
    """One model's view of a batch: which rows and columns of its maps both models have."""

    def __init__(self, watched: Watched, batch: Sequence[Shared], level: Level, word_rows: Rows, device: torch.device) -> None:
        self._level = level
        self._device = device
        inputs = [text.inputs[watched.reading] for text in batch]
        self._view = BatchView(inputs, word_rows, partial(poisson_weights, replicates=0))
        sides = [rows_of(text, watched.kind) for text in inputs]
        side: Side = token_side(sides) if level == "token" else WordGroups.build(sides, torch.device("cpu")).side
        word = side.chosen("word", group("word"))
        sizes = [text.size for text in batch]
        self._columns = np.zeros((len(batch), max(sizes)), dtype=np.int64)
        inside = np.arange(max(sizes)) < np.array(sizes)[:, None]
        for number, text in enumerate(batch):
            places = np.array(text.places[watched.reading])
            self._columns[number, : sizes[number]] = places if level == "token" else np.flatnonzero(word[number])[places]
        words = inside & np.take_along_axis(word, self._columns, 1)
        self._tables = [torch.from_numpy(table).to(watched.model.device) for table in (self._columns, inside, words)]

    def rows(
        self, plan: Plan, index: int, weights: Float[torch.Tensor, "text head query key"], block: _Block
    ) -> tuple[Float[torch.Tensor, "row head shared"], Float[torch.Tensor, "row head"]]:
        """Rows of one site over the shared columns, and how much of each row goes to words."""
        maps = self._view.tokens(plan, index, weights, None)
        if self._level == "word":
            maps = self._view.words(maps)
        device = maps.weights.device
        texts, rows = (torch.from_numpy(numbers).to(device) for numbers in (block.texts, self._columns[block.texts, block.rows]))
        columns, inside, words = (table[texts] for table in self._tables)
        chosen = maps.weights[texts, :, rows]
        shared = chosen.gather(2, columns[:, None].expand(-1, chosen.shape[1], -1)) * inside[:, None]
        return shared.to(self._device), (shared * words[:, None]).sum(-1)
