"""Training of many probes at once, each with a separate Adam, learning rate and early stopping."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.core.hashing import hash64
from headscope.stats.bootstrap import GOLDEN, mix
from headscope.studies.patience import Patience, keep_best
from headscope.studies.structural_probe.features import Features, batches
from headscope.studies.structural_probe.probe import Gold, Segments, losses, squared_distances
from headscope.studies.structural_probe.trees import Tree

if TYPE_CHECKING:
    from jaxtyping import Float

    Each = Float[torch.Tensor, "feature segment"]

BETAS, EPSILON = (0.9, 0.999), 1e-8
POOL = 25  # batches among which sentences of similar length are put together
READ = 64  # sentences of a batch that is only evaluated


@dataclass(frozen=True)
class StructuralRecipe:
    """How probes are trained."""

    rate: float = 1e-3
    batch: int = 20
    epochs: int = 40
    patience: int = 5  # epochs without gain before training stops
    least: float = 1e-4  # least decrease of the loss that counts as a gain
    factor: float = 0.1  # of the rate, after an epoch without a gain
    reset: bool = False  # whether Adam is reset then
    sorted: bool = True  # whether sentences of similar length are put together
    seed: int = 0


@dataclass(frozen=True)
class SentenceVectors:
    """Sentences to train or to test probes on."""

    features: Features
    trees: Sequence[Tree]
    ids: Sequence[str]


@dataclass
class Fit:
    """Probes in training; `patience` has the epoch of each probe's least held-out loss, `best` its matrices then."""

    matrices: Float[torch.Tensor, "feature row d"]
    segments: Segments
    patience: Patience
    tensors: dict[str, torch.Tensor]
    epoch: int = 0

    @classmethod
    def begin(cls, matrices: Float[torch.Tensor, "feature row d"], segments: Segments) -> Fit:
        """Probes before their first step."""
        shape = len(matrices), len(segments.every)
        each = torch.zeros(shape, dtype=torch.float64)
        tensors = {
            "first": torch.zeros_like(matrices), "second": torch.zeros_like(matrices), "best": matrices.clone(),
            "steps": each.clone(), "rate": each + 1, "plateau": each + torch.inf, "epochs": each.clone(),
        }  # fmt: skip
        return cls(matrices, segments, Patience.begin(*shape), tensors)

    @property
    def running(self) -> tuple[list[int], list[int]]:
        """The features and the segments that have a probe that has not stopped."""
        running = self.patience.running
        return running.any(1).nonzero()[:, 0].tolist(), running.any(0).nonzero()[:, 0].tolist()

    def rows(self, each: Each) -> torch.Tensor:
        """One number per probe as one per row, [feature, row, 1]."""
        ranks = torch.tensor([segment.rank for segment in self.segments.every])
        return each.repeat_interleave(ranks, 1)[..., None].to(self.matrices.device, self.matrices.dtype)

    def state(self) -> dict[str, torch.Tensor]:
        """Everything that is needed to continue."""
        known = self.patience
        judged = {"loss": known.loss, "best_epoch": known.best, "stale": known.stale, "running": known.running.double()}
        return {"matrices": self.matrices, "epoch": torch.tensor(self.epoch), **self.tensors, **judged}

    @classmethod
    def again(cls, state: Mapping[str, torch.Tensor], segments: Segments, device: torch.device) -> Fit:
        """Probes from `state`."""
        wide = {"matrices", "first", "second", "best"}
        tensors = {name: tensor.to(device) if name in wide else tensor for name, tensor in state.items()}
        loss, best, stale, running = (tensors.pop(name) for name in ("loss", "best_epoch", "stale", "running"))
        return cls(tensors.pop("matrices"), segments, Patience(loss, best, stale, running > 0), tensors, int(tensors.pop("epoch")))


def train(
    fit: Fit,
    train: SentenceVectors,
    held_out: SentenceVectors,
    recipe: StructuralRecipe,
    after: Callable[[Fit], None] = lambda fit: None,
    progress: Callable[[float], None] = lambda share: None,
) -> Fit:
    """Train until all probes stop or epochs end; `after` is called after each epoch, `progress` within."""
    while fit.epoch < recipe.epochs and fit.running[0]:
        _epoch(fit, train, shuffled(train.ids, recipe.seed, fit.epoch), recipe, progress)
        fit.epoch += 1
        _judge(fit, mean_losses(fit.matrices, fit.segments, held_out, *fit.running), recipe)
        after(fit)
    return fit


def shuffled(ids: Sequence[str], seed: int, epoch: int) -> list[int]:
    """The numbers of sentences in random order, by name, so that the order of documents does not matter."""
    keys = np.array([hash64(seed, name) for name in ids], dtype=np.uint64)
    order: list[int] = np.argsort(mix(keys + np.array([epoch + 1], dtype=np.uint64) * GOLDEN), kind="stable").tolist()
    return order


def _epoch(fit: Fit, train: SentenceVectors, order: Sequence[int], recipe: StructuralRecipe, progress: Callable[[float], None]) -> None:
    features, which = fit.running
    steps = fit.tensors["steps"]
    running = fit.patience.running.double()
    total = -(-len(order) // recipe.batch)
    for turn, batch in enumerate(batches(train.features.lengths, order, recipe.batch, POOL if recipe.sorted else 1)):
        states = train.features.batch(batch, features, fit.matrices.dtype)
        gold = Gold.of([train.trees[number] for number in batch], states.device, states.dtype)
        matrices = fit.matrices[features].requires_grad_()
        vectors = torch.einsum("ftwd,frd->ftwr", states, matrices)
        (slope,) = torch.autograd.grad(losses(vectors, gold, fit.segments, which).mean(-1).sum(), matrices)
        steps += running
        with torch.no_grad():
            _adam(fit, features, slope, fit.tensors["rate"] * recipe.rate * running)
        progress((turn + 1) / total)


def _adam(fit: Fit, features: Sequence[int], slope: torch.Tensor, rate: Each) -> None:
    """One step of Adam for the rows of some features; a probe with rate 0 does not change."""
    first, second = fit.tensors["first"][features], fit.tensors["second"][features]
    first.lerp_(slope, 1 - BETAS[0])
    second.mul_(BETAS[1]).addcmul_(slope, slope, value=1 - BETAS[1])
    fit.tensors["first"][features], fit.tensors["second"][features] = first, second
    steps = fit.tensors["steps"][features].clamp_min(1)
    size, spread = fit.rows(rate[features] / (1 - BETAS[0] ** steps)), fit.rows((1 - BETAS[1] ** steps) ** 0.5)
    fit.matrices[features] = fit.matrices[features] - size * first / (second.sqrt() / spread + EPSILON)


def _judge(fit: Fit, loss: Each, recipe: StructuralRecipe) -> None:
    """After an epoch: keep the best, lower the rates of probes without a gain, stop those that ran out of patience."""
    known, running = fit.tensors, fit.patience.running
    known["epochs"][running] += 1
    better = fit.patience.check(loss, fit.epoch, recipe.least, recipe.patience)
    keep_best(known["best"], fit.matrices, fit.rows(better.double())[..., 0] > 0)
    gained = loss < known["plateau"] * (1 - recipe.least)  # of itself: the schedule of the released code
    known["plateau"] = torch.where(running & gained, loss, known["plateau"])
    slower = running & ~gained
    known["rate"][slower] *= recipe.factor
    if recipe.reset:
        known["steps"][slower] = 0
        kept = fit.rows((~slower).double())
        known["first"], known["second"] = known["first"] * kept, known["second"] * kept


@torch.no_grad()
def mean_losses(
    matrices: torch.Tensor, segments: Segments, sentences: SentenceVectors, features: Sequence[int], which: Sequence[int]
) -> Each:
    """The mean loss of each probe over sentences; infinity for probes that are not requested."""
    sums = torch.zeros(len(which), len(features), dtype=torch.float64)
    order = sorted(range(len(sentences.trees)), key=lambda number: sentences.features.lengths[number])
    for batch in batches(sentences.features.lengths, order, READ):
        states = sentences.features.batch(batch, features, matrices.dtype)
        gold = Gold.of([sentences.trees[number] for number in batch], states.device, states.dtype)
        vectors = torch.einsum("ftwd,frd->ftwr", states, matrices[features])
        sums += losses(vectors, gold, segments, which).double().sum(-1).cpu()
    means = torch.full((len(matrices), len(segments.every)), torch.inf, dtype=torch.float64)
    means[torch.tensor(features)[:, None], torch.tensor(which)] = (sums / len(sentences.trees)).T
    return means


@torch.no_grad()
def sized(matrices: torch.Tensor, segments: Segments, sentences: SentenceVectors, some: int = 256) -> torch.Tensor:
    """The initial matrices, each scaled so that its predictions are on average as large as their targets."""
    features = list(range(len(matrices)))
    order = sorted(range(len(sentences.trees)), key=lambda number: sentences.ids[number])[:some]
    wanted, predicted = (torch.zeros(len(segments.every), len(matrices), dtype=torch.float64) for _ in range(2))
    for batch in batches(sentences.features.lengths, sorted(order, key=lambda number: sentences.features.lengths[number]), READ):
        states = sentences.features.batch(batch, features, matrices.dtype)
        gold = Gold.of([sentences.trees[number] for number in batch], states.device, states.dtype)
        vectors = torch.einsum("ftwd,frd->ftwr", states, matrices)
        pairs = gold.words[:, :, None] & gold.words[:, None, :]
        for number, (segment, bounds) in enumerate(zip(segments.every, segments.bounds, strict=True)):
            projected = vectors[..., slice(*bounds)]
            distance = segment.kind == "distance"
            wanted[number] += float(gold.distances.double().sum() if distance else gold.depths.double().sum())
            sizes = squared_distances(projected, gold.words) * pairs if distance else (projected * projected).sum(-1)
            predicted[number] += sizes.double().flatten(1).sum(1).cpu()
    times = (wanted / predicted.clamp_min(1e-12)).clamp(1e-6, 1e6).sqrt().T
    ranks = torch.tensor([segment.rank for segment in segments.every])
    return matrices * times.repeat_interleave(ranks, 1)[..., None].to(matrices.device, matrices.dtype)
