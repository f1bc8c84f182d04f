"""The targets of a task, and batches of them for probes, with hidden states that are read from the cache on demand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.core.document import Edge
from headscope.encoding.batches import grouped, pooled
from headscope.encoding.texts import Encoded
from headscope.errors import RunError
from headscope.studies.edge_probe.probe import Spans, TargetBatch
from headscope.studies.hidden_states import HiddenStates

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

POOL = 16  # batches whose texts are sorted by length, so that little is padded
LARGEST = 2048  # targets, or padded tokens, of a batch that is only evaluated
PIECE = 1 << 25  # numbers that are copied to a device at a time
HELD = 0.4  # share of a GPU's free memory that states may take


@dataclass(frozen=True)
class Laid:
    """The targets of one text: the `tokens` of all spans, and the spans [start, end) in these tokens, for each slot."""

    text: int
    tokens: Int[np.ndarray, "token"]
    spans: tuple[Int[np.ndarray, "span 2"], ...]  # of each slot
    of: tuple[Int[np.ndarray, "target"], ...]  # of each slot: the span of each target
    targets: Int[np.ndarray, "target"]  # their numbers


@dataclass(frozen=True)
class Items:
    """All targets of a task in some texts. `edges` are given in words of their text, whose number is in `texts`;
    `labels` has one row per target.

    A label that is in `edges` but not in `names` has no column, because the probe could not learn it.
    """

    names: tuple[str, ...]
    edges: tuple[Edge, ...]
    texts: Int[np.ndarray, "target"]
    labels: Bool[np.ndarray, "target label"]
    slots: int
    sources: Sequence[Encoded]  # all texts

    def __len__(self) -> int:
        return len(self.edges)

    @cached_property
    def laid(self) -> list[Laid]:
        """The texts that have targets, in order."""
        starts = np.flatnonzero(np.diff(self.texts, prepend=-1))
        return [self._lay(range(start, stop)) for start, stop in zip(starts, [*starts[1:], len(self)], strict=True)]

    def _lay(self, numbers: range) -> Laid:
        text = self.sources[int(self.texts[numbers[0]])]
        pieces = _pieces(text)
        spans = [[(pieces[span[0]][0], pieces[span[1] - 1][1]) for span in _spans(self.edges[number])] for number in numbers]
        tokens = np.array(sorted({token for target in spans for span in target for token in range(*span)}), dtype=np.int64)
        place = {int(token): number for number, token in enumerate(tokens)}
        slots = []
        for slot in range(self.slots):
            known = {span: number for number, span in enumerate(dict.fromkeys(target[slot] for target in spans))}
            moved = np.array([(place[start], place[end - 1] + 1) for start, end in known], dtype=np.int64)
            slots.append((moved, np.array([known[target[slot]] for target in spans], dtype=np.int64)))
        return Laid(
            int(self.texts[numbers[0]]),
            tokens,
            tuple(s for s, _ in slots),
            tuple(of for _, of in slots),
            np.arange(numbers.start, numbers.stop),
        )

    def some(self, chosen: Int[np.ndarray, "some"]) -> Items:
        """Some of the targets, by their numbers in ascending order."""
        return Items(self.names, tuple(self.edges[n] for n in chosen), self.texts[chosen], self.labels[chosen], self.slots, self.sources)

    def of_texts(self, texts: Iterable[int]) -> Items:
        """The targets of some texts."""
        return self.some(np.flatnonzero(np.isin(self.texts, list(texts))))

    def relabelled(self, labels: Sequence[tuple[str, ...]]) -> Items:
        """The same targets with other labels."""
        return Items(self.names, self.edges, self.texts, _columns(labels, self.names), self.slots, self.sources)


def items(task: str, texts: Sequence[Encoded], edges: Sequence[Sequence[Edge]], names: Sequence[str] | None = None) -> Items:
    """The targets of a task, from the `edges` of each text; `names` are the labels, by default all, sorted."""
    targets = [(number, edge) for number, (_, edges_of_text) in enumerate(zip(texts, edges, strict=True)) for edge in edges_of_text]
    pairs = {edge.second is not None for _, edge in targets}
    if len(pairs) > 1:
        raise RunError(f"some targets of {task} have two spans and others one", "Give the two kinds different names")
    labels = [edge.labels for _, edge in targets]
    known = tuple(names) if names is not None else tuple(sorted({label for labels_of_edge in labels for label in labels_of_edge}))
    numbers = np.array([number for number, _ in targets], dtype=np.int64)
    return Items(known, tuple(edge for _, edge in targets), numbers, _columns(labels, known), 1 + (True in pairs), texts)


def _columns(labels: Sequence[tuple[str, ...]], names: Sequence[str]) -> Bool[np.ndarray, "target label"]:
    column: Mapping[str, int] = {name: number for number, name in enumerate(names)}
    columns = np.zeros((len(labels), len(names)), dtype=bool)
    for row, labels_of_target in zip(columns, labels, strict=True):
        row[[column[label] for label in labels_of_target if label in column]] = True
    return columns


def _spans(edge: Edge) -> list[tuple[int, int]]:
    return [edge.first] if edge.second is None else [edge.first, edge.second]


def _pieces(text: Encoded) -> dict[int, tuple[int, int]]:
    """The tokens [start, end) of each word."""
    tokens: dict[int, tuple[int, int]] = {}
    for token, word in enumerate(text.word_of):
        if word >= 0:
            tokens[word] = (tokens.get(word, (token, 0))[0], token + 1)
    return tokens


class StateRows:
    """All states as rows of `size` numbers: on the device if they fit there, else in the mapped file."""

    def __init__(self, states: HiddenStates, device: torch.device) -> None:
        self.states, self.device = states, device
        values = states.values
        fits = device.type == "cuda" and values.nbytes < HELD * torch.cuda.mem_get_info(device)[0]
        self._there = _uploaded(values, device).view(-1, states.size) if fits else None
        self._mapped = values.reshape(-1, states.size)

    def take(self, rows: Int[np.ndarray, "*shape"], dtype: torch.dtype) -> Float[torch.Tensor, "*shape d"]:
        """These rows."""
        if self._there is not None:
            taken = self._there.index_select(0, torch.from_numpy(rows.ravel()).to(self.device))
        else:
            taken = torch.from_numpy(self._mapped[rows.ravel()]).to(self.device)
        return taken.to(dtype).view(*rows.shape, -1)


def _uploaded(values: np.ndarray, device: torch.device) -> torch.Tensor:
    """A mapped file on a device, copied piece by piece, so that the whole file is never in memory."""
    uploaded = torch.empty(len(values), dtype=torch.from_numpy(np.zeros(1, values.dtype)).dtype, device=device)
    for start in range(0, len(values), PIECE):
        uploaded[start : start + PIECE] = torch.from_numpy(np.array(values[start : start + PIECE]))
    return uploaded


class Feeder:
    """Targets with their states; `variants` are their label sets: the true one first, then a control's."""

    def __init__(self, rows: StateRows, items: Items, variants: Sequence[Bool[np.ndarray, "target label"]], dtype: torch.dtype) -> None:
        self.items, self.dtype = items, dtype
        self._rows = rows
        self._labels = np.stack(variants)
        # By name, so that the order of documents in a corpus does not matter.
        self._texts = sorted(items.laid, key=lambda text: items.sources[text.text].id)

    def __len__(self) -> int:
        return len(self.items)

    def shuffled(self, seed: int, epoch: int, size: int) -> list[list[Laid]]:
        """The texts in batches of `size`, shuffled by seed and epoch, with similar lengths together."""
        drawn = np.random.default_rng((seed, epoch))
        texts = self._texts
        order = drawn.permutation(len(texts))
        batches = list(chain.from_iterable(pooled(order, size, POOL, lambda number: len(texts[number].tokens))))
        return [[texts[number] for number in batches[place]] for place in drawn.permutation(len(batches))]

    def steady(self, seeds: int) -> Iterator[TargetBatch]:
        """All texts, by length, the same for all seeds."""

        def full(batch: list[Laid], text: Laid) -> bool:
            size = sum(len(other.targets) for other in batch) + len(text.targets)
            return max(size, (len(batch) + 1) * len(text.tokens)) > LARGEST

        for batch in grouped(sorted(self.items.laid, key=lambda text: (len(text.tokens), text.text)), full):
            yield self.batch([batch]).repeated(seeds)

    def batch(self, texts: Sequence[Sequence[Laid]]) -> TargetBatch:
        """Texts as one batch, with separate texts for each seed."""
        states, device = self._rows.states, self._rows.device
        wide = max(len(text.tokens) for texts_of_seed in texts for text in texts_of_seed)
        many = max(sum(len(text.targets) for text in texts_of_seed) for texts_of_seed in texts)
        rows = np.zeros((len(texts), len(states.layers), max(map(len, texts)), wide), dtype=np.int64)
        numbers = np.full((len(texts), many), -1)
        for seed, texts_of_seed in enumerate(texts):
            for place, text in enumerate(texts_of_seed):
                start = states.places[text.text] // states.size + text.tokens
                length = states.lengths[text.text]
                rows[seed, :, place, : len(text.tokens)] = start + length * np.arange(len(states.layers))[:, None]
            targets = np.concatenate([text.targets for text in texts_of_seed])
            numbers[seed, : len(targets)] = targets
        real = numbers >= 0
        labels = self._labels[:, numbers].swapaxes(0, 1)
        slots = tuple(self._spans(texts, slot, wide, many) for slot in range(self.items.slots))
        return TargetBatch(
            self._rows.take(rows, self.dtype),
            slots,
            torch.from_numpy(labels).to(device, self.dtype),
            torch.from_numpy(real).to(device, self.dtype),
            torch.from_numpy(numbers).to(device),
        )

    def _spans(self, texts: Sequence[Sequence[Laid]], slot: int, wide: int, many: int) -> Spans:
        count = max(len(text.spans[slot]) for texts_of_seed in texts for text in texts_of_seed)
        bounds = np.zeros((len(texts), max(map(len, texts)), count, 2), dtype=np.int64)
        bounds[..., 1] = wide  # a span that is padding must not be empty
        of = np.zeros((len(texts), many), dtype=np.int64)
        for seed, texts_of_seed in enumerate(texts):
            for place, text in enumerate(texts_of_seed):
                bounds[seed, place, : len(text.spans[slot])] = text.spans[slot]
            spans = np.concatenate([place * count + text.of[slot] for place, text in enumerate(texts_of_seed)])
            of[seed, : len(spans)] = spans
        tokens = np.arange(wide)
        held = (bounds[..., :1] <= tokens) & (tokens < bounds[..., 1:])
        device = self._rows.device
        return Spans(torch.from_numpy(held).to(device), torch.from_numpy(of).to(device))
