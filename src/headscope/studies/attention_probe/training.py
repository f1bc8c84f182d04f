"""Training probes: all probes and seeds in one pass over the sentences, each with its own loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import torch

from headscope.core.hashing import digest
from headscope.encoding.batches import pooled
from headscope.studies.attention_probe.maps import SPECIALS, ParsedSentence, SentenceBatch, Store, pieces
from headscope.studies.attention_probe.probes import Probe
from headscope.studies.attention_probe.spec import Decay, Optimiser, Order

if TYPE_CHECKING:
    from jaxtyping import Float

    from headscope.studies.attention_probe.maps import Map

Name = TypeVar("Name", bound=str)
# Numbers of a batch that are computed at once: small enough for a CPU's caches, large enough to keep a GPU busy.
CELLS, GPU_CELLS = 2**21, 2**27
_SAMPLE = 500  # sentences by which maps are standardised
_BUCKET = 16  # batches whose sentences are sorted by length together, so that little is padding


@dataclass(frozen=True)
class AttentionRecipe:
    """How probes are trained. `batch` is the number of sentences per step; `rate` is by default that of each probe."""

    optimiser: Optimiser = "adam"
    rate: float | None = 0.002
    decay: Decay = "none"
    epochs: int = 1
    batch: int = 1
    order: Order = "file"
    patience: int = 0
    seed: int = 0


@dataclass(frozen=True)
class SentenceMaps:
    """Sentences to learn from or to test on, their names, and their maps if any probe uses attention."""

    names: Sequence[str]
    trees: Sequence[ParsedSentence]
    store: Store | None
    device: torch.device

    def batches(
        self, steps: Sequence[Sequence[int]], each: int, cells: int | None = None
    ) -> Iterator[tuple[int, Sequence[int], SentenceBatch]]:
        """Each step in pieces that fit, if a pair of words takes `each` numbers: the number of the step, the
        sentences of the piece, and their tensors.
        """
        most = cells or (CELLS if self.device.type == "cpu" else GPU_CELLS)
        for number, (step, maps) in enumerate(self._maps(steps)):
            for piece in pieces([len(self.trees[place]) for place in step], most, each):
                chosen_maps = None if maps is None else [maps[place] for place in piece]
                chosen = [step[place] for place in piece]
                yield number, chosen, SentenceBatch.of([self.trees[place] for place in chosen], chosen_maps, self.device)

    def _maps(self, steps: Sequence[Sequence[int]]) -> Iterator[tuple[Sequence[int], list[Map] | None]]:
        if self.store is not None:
            yield from self.store.ahead(steps)
        else:
            yield from ((step, None) for step in steps)


def steps(trees: Sequence[ParsedSentence], names: Sequence[str], recipe: AttentionRecipe, epoch: int) -> list[list[int]]:
    """The sentences of each step of an epoch: in order, or shuffled by name with similar lengths together."""
    if recipe.order == "file":
        return [list(range(start, min(start + recipe.batch, len(trees)))) for start in range(0, len(trees), recipe.batch)]
    lot = {place: digest(f"{recipe.seed}/{epoch}", names[place]) for place in range(len(trees))}
    order = sorted(lot, key=lot.__getitem__)
    pools = pooled(order, recipe.batch, _BUCKET, lambda place: (len(trees[place]), lot[place]))
    return [step for batches in pools for step in sorted(batches, key=lambda step: min(lot[place] for place in step))]


def train(
    probes: Mapping[Name, Probe],
    learned: SentenceMaps,
    recipe: AttentionRecipe,
    held: SentenceMaps | None = None,
    progress: Callable[[float], None] | None = None,
) -> dict[Name, list[int]]:
    """Train the probes in place, and return the best epoch of each seed of each probe.

    With patience, a probe is tested on `held` after each epoch, and the weights of each seed are those of its best
    epoch.
    """
    rates = [recipe.rate or probe.rate for probe in probes.values()]
    groups = [{"params": list(probe.parameters()), "lr": rate} for probe, rate in zip(probes.values(), rates, strict=True)]
    optimiser = torch.optim.Adam(groups) if recipe.optimiser == "adam" else torch.optim.SGD(groups)
    best = {name: _Best(probe) for name, probe in probes.items()}
    total = recipe.epochs * math.ceil(len(learned.trees) / recipe.batch)
    done, each = 0, each_of(probes)
    for epoch in range(recipe.epochs):
        plan = steps(learned.trees, learned.names, recipe, epoch)
        last = -1
        for number, _, batch in learned.batches(plan, each):
            if number != last:
                if last >= 0:
                    optimiser.step()
                last = number
                share = (done + number) / total
                for group, rate in zip(optimiser.param_groups, rates, strict=True):
                    group["lr"] = rate * (1 - share if recipe.decay == "linear" else 1)
                optimiser.zero_grad(set_to_none=True)
                if progress is not None:
                    progress(share)
            words = sum(len(learned.trees[place]) for place in plan[number]) if recipe.optimiser == "sgd" else 1
            loss = torch.stack([probe.losses(batch).sum() / words for probe in probes.values()]).sum()
            torch.autograd.backward(loss)
        optimiser.step()
        done += len(plan)
        if recipe.patience and held is not None:
            losses = evaluate(probes, held)
            hopeful = [best[name].take(probe, losses[name], epoch + 1, recipe.patience) for name, probe in probes.items()]
            if not any(hopeful):
                break
    if recipe.patience and held is not None:
        for name, probe in probes.items():
            best[name].put_back(probe)
        return {name: kept.epochs for name, kept in best.items()}
    return {name: [recipe.epochs] * len(probe.seeds) for name, probe in probes.items()}


@torch.no_grad()
def evaluate(probes: Mapping[Name, Probe], held: SentenceMaps) -> dict[Name, Float[torch.Tensor, "seed"]]:
    """The loss of each seed of each probe over some sentences."""
    losses = {name: torch.zeros(len(probe.seeds), dtype=torch.float64) for name, probe in probes.items()}
    for _, _, batch in held.batches(in_order(held), each_of(probes)):
        for name, probe in probes.items():
            losses[name] += probe.losses(batch).double().cpu()
    return losses


def each_of(probes: Mapping[Name, Probe]) -> int:
    """The most numbers that any of these probes needs for a pair of words."""
    return max(probe.each for probe in probes.values())


def in_order(some: SentenceMaps, size: int = 32) -> list[list[int]]:
    """All sentences in order, in steps of `size`."""
    return [list(range(start, min(start + size, len(some.trees)))) for start in range(0, len(some.trees), size)]


def standard_scale(learned: SentenceMaps) -> Float[torch.Tensor, "k"]:
    """Factors that give all maps the mean deviation over pairs of words; estimated from some sentences."""
    total = square = torch.zeros(())
    n = 0
    chosen = sorted(range(len(learned.trees)), key=lambda place: learned.names[place])[:: max(1, len(learned.trees) // _SAMPLE)]
    for _, _, batch in learned.batches([[place] for place in chosen], 1):
        pairs = batch.given[0, SPECIALS:, SPECIALS:].double().flatten(0, 1)
        total, square = total + pairs.sum(0).cpu(), square + (pairs**2).sum(0).cpu()
        n += len(pairs)
    deviation = (square / n - (total / n) ** 2).clamp_min(0).sqrt().repeat(2)  # the same in either direction
    return (deviation.mean() / deviation.clamp_min(1e-3 * float(deviation.mean()))).float()


class _Best:
    """The weights of each seed at its best epoch so far."""

    def __init__(self, probe: Probe) -> None:
        self.losses = torch.full((len(probe.seeds),), math.inf, dtype=torch.float64)
        self.epochs = [0] * len(probe.seeds)
        self._kept = [parameter.detach().clone() for parameter in probe.parameters()]

    def take(self, probe: Probe, losses: Float[torch.Tensor, "seed"], epoch: int, patience: int) -> bool:
        """Keep the seeds that are better than before, and return whether any was within the last `patience` epochs."""
        better = losses < self.losses
        self.losses = torch.where(better, losses, self.losses)
        for seed in better.nonzero()[:, 0].tolist():
            self.epochs[seed] = epoch
            for kept, parameter in zip(self._kept, probe.parameters(), strict=True):
                kept[seed] = parameter.detach()[seed]
        return epoch - max(self.epochs) < patience

    @torch.no_grad()
    def put_back(self, probe: Probe) -> None:
        """Give the probe its best weights."""
        for kept, parameter in zip(self._kept, probe.parameters(), strict=True):
            parameter.copy_(kept)
