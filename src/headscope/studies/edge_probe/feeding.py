"""Batches for probes: the states of some texts, taken from the cache as they are needed, and the targets in them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.encoding.batches import grouped, pooled
from headscope.studies.edge_probe.items import Items, Laid
from headscope.studies.edge_probe.probe import Spans, TargetBatch
from headscope.studies.hidden_states import HiddenStates

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int

POOL = 16  # batches whose texts are sorted by length, so that little is padded
LARGEST = 2048  # targets, or padded tokens, of a batch that is only looked at
PIECE = 1 << 25  # numbers that are brought to a device at a time
HELD = 0.4  # share of a GPU's free memory that states may take


class StateRows:
    """All states as rows of `size` numbers: on the device if they fit there, and else in the mapped file."""

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
    """All of a mapped file on a device, a piece at a time, so that it is never in memory as a whole."""
    uploaded = torch.empty(len(values), dtype=torch.from_numpy(np.zeros(1, values.dtype)).dtype, device=device)
    for start in range(0, len(values), PIECE):
        uploaded[start : start + PIECE] = torch.from_numpy(np.array(values[start : start + PIECE]))
    return uploaded


class Feeder:
    """Targets with their states. `variants` are labels of the same targets: the true ones first, then those of a
    control.
    """

    def __init__(self, rows: StateRows, items: Items, variants: Sequence[Bool[np.ndarray, "target label"]], dtype: torch.dtype) -> None:
        self.items, self.dtype = items, dtype
        self._rows = rows
        self._labels = np.stack(variants)
        # By name, so that the order of documents in a corpus does not matter.
        self._texts = sorted(items.laid, key=lambda text: items.sources[text.text].id)

    def __len__(self) -> int:
        return len(self.items)

    def shuffled(self, seed: int, epoch: int, size: int) -> list[list[Laid]]:
        """The texts in batches of `size`, in an order of chance that depends on seed and epoch; like lengths
        together.
        """
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
        """Texts as one batch, those of each seed by themselves."""
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
        bounds[..., 1] = wide  # of a span that is padding: it must hold something
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
