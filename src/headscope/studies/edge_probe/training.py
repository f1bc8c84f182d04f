"""Training the probes of one task together, each with a separate learning rate, best state and end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.studies.edge_probe.feeding import Feeder, Laid
from headscope.studies.edge_probe.probe import Probes, TargetBatch
from headscope.studies.patience import Patience, keep_best

if TYPE_CHECKING:
    from jaxtyping import Float, Float64, Int, Int64

    Check = Callable[[], Float64[np.ndarray, "seed probe"]]
    StepProgress = Callable[[int, int], None]  # steps done, and at most to do

LEAST = 1e-4  # the least improvement that counts
MIN_STEPS = 25  # between two checks that follow epochs: with few texts an epoch is too short to improve the score


@dataclass(frozen=True)
class EdgeRecipe:
    """How probes are trained. After `check_every` steps (None: an epoch, and at least `MIN_STEPS`) they are scored on
    texts that are held out.

    The rate of a probe is halved after `halve_after` checks without improvement, and its training ends after
    `stop_after` of them, after `checks` checks, or when its rate falls below `least_rate`. The rate of mixing
    weights is `mix_rate` times as large: they are few and start equal, and would hardly change in a short training.
    """

    rate: float = 1e-3
    mix_rate: float = 10.0
    batch: int = 32
    dropout: float = 0.3
    clip: float = 5.0
    check_every: int | None = None
    checks: int = 10
    halve_after: int = 1
    stop_after: int = 3
    least_rate: float = 1e-6


class Adam:
    """Adam with a separate learning rate for each probe, and with gradients clipped by the norm of each probe."""

    def __init__(self, parameters: Mapping[str, torch.Tensor], clip: float, faster: Mapping[str, float]) -> None:
        """`faster` are factors for the rates of some parameters."""
        self._parameters, self._clip, self._faster = parameters, clip, faster
        self._mean, self._square = ({name: torch.zeros_like(value) for name, value in parameters.items()} for _ in range(2))
        self._step = 0

    def keep(self, chosen: Int[torch.Tensor, "some"], parameters: Mapping[str, torch.Tensor]) -> None:
        """Continue with some of the probes, which have these parameters."""
        self._parameters = parameters
        for moments in (self._mean, self._square):
            moments.update({name: value[:, chosen] for name, value in moments.items()})

    @torch.no_grad()
    def step(self, rate: Float[torch.Tensor, "seed probe"]) -> None:
        """Take one step along the gradients, and delete them."""
        self._step += 1
        slopes = {name: value.grad for name, value in self._parameters.items() if value.grad is not None}
        norm = torch.stack([slope.reshape(*rate.shape, -1).norm(dim=-1) for slope in slopes.values()]).norm(dim=0)
        factor = (self._clip / (norm + 1e-6)).clamp(max=1.0)
        rate = rate / (1 - 0.9**self._step)
        for name, slope in slopes.items():
            shape = [*rate.shape, *[1] * (slope.ndim - 2)]
            slope.mul_(factor.view(shape))
            self._mean[name].lerp_(slope, 0.1)
            self._square[name].mul_(0.999).addcmul_(slope, slope, value=0.001)
            width = (self._square[name] / (1 - 0.999**self._step)).sqrt_().add_(1e-8)
            pace = rate * self._faster.get(name, 1.0)
            self._parameters[name].sub_(torch.div(self._mean[name], width, out=width).mul_(pace.view(shape)))
            self._parameters[name].grad = None


@dataclass(frozen=True)
class TrainedProbes:
    """Probes in the state of their best check, with the score and the number of steps at that check."""

    probes: Probes
    score: Float64[np.ndarray, "seed probe"]
    steps: Int64[np.ndarray, "seed probe"]


def train(
    probes: Probes,
    feeder: Feeder,
    variant: Int[torch.Tensor, "probe"],
    check: Check,
    recipe: EdgeRecipe,
    progress: StepProgress | None = None,
) -> TrainedProbes:
    """Train all probes in place, each on the labels of its `variant`; `check` gives their held-out scores.

    A probe that is done in all seeds takes no further steps: the rest is trained without it.
    """
    adam = Adam(probes.parameters, recipe.clip, {"mix": recipe.mix_rate})
    some = next(iter(probes.parameters.values()))
    rate = torch.full((len(probes.seeds), len(variant)), recipe.rate, device=some.device, dtype=some.dtype)
    best = _Best(probes, recipe)
    every = steps_between(len(feeder.items.laid), recipe)
    noise = [torch.Generator(some.device).manual_seed(seed) for seed in probes.seeds]
    left, part = torch.arange(len(variant), device=some.device), probes  # the probes that are not done
    for step, texts in enumerate(_batches(feeder, probes.seeds, recipe.batch), 1):
        batch = feeder.batch(texts)
        kept = _kept(batch, texts, probes.shape.hidden, recipe.dropout, noise) if recipe.dropout else None
        loss(part(batch, kept), batch, variant[left]).sum().backward()  # type: ignore[no-untyped-call]
        adam.step(rate)
        if progress is not None:
            progress(step, every * recipe.checks)
        if step % every == 0:
            if part is not probes:
                probes.put(left, part)
            rate *= best.look(check(), step).to(rate)[:, left]
            running = torch.nonzero((rate > 0).any(0))[:, 0]
            if not len(running) or step == every * recipe.checks:
                break
            if len(running) < len(left):
                part = part.some(running)
                adam.keep(running, part.parameters)
                left, rate = left[running], rate[:, running]
    return best.trained()


def steps_between(texts: int, recipe: EdgeRecipe) -> int:
    """Steps from one check to the next."""
    return recipe.check_every or max(MIN_STEPS, -(-texts // recipe.batch))


def loss(
    logits: Float[torch.Tensor, "seed probe target label"], batch: TargetBatch, variant: Int[torch.Tensor, "probe"]
) -> Float[torch.Tensor, "seed probe"]:
    """Binary cross-entropy of each probe, averaged over targets and labels."""
    labels = batch.labels.index_select(1, variant) if batch.labels.shape[1] > 1 else batch.labels
    each = torch.nn.functional.softplus(logits) - labels * logits
    return (each.sum(-1) * batch.real[:, None]).sum(-1) / (batch.real.sum(-1, keepdim=True) * logits.shape[-1])


def _batches(feeder: Feeder, seeds: list[int], size: int) -> Iterator[list[list[Laid]]]:
    """Endless batches, with a separate order for each seed."""
    for epoch in count():
        yield from map(list, zip(*(feeder.shuffled(seed, epoch, size) for seed in seeds), strict=True))


def _kept(
    batch: TargetBatch, texts: list[list[Laid]], hidden: int, dropout: float, noise: list[torch.Generator]
) -> Float[torch.Tensor, "seed target hidden"]:
    """The scaled dropout mask. Nothing is drawn for padding, so that a seed's noise does not depend on its batch."""
    kept = torch.zeros(*batch.real.shape, hidden, device=batch.real.device, dtype=batch.real.dtype)
    for row, texts_of_seed, generator in zip(kept, texts, noise, strict=True):
        size = sum(len(text.targets) for text in texts_of_seed)
        row[:size] = torch.rand(size, hidden, device=row.device, generator=generator) >= dropout
    return kept / (1 - dropout)


class _Best:
    """The best state of each probe so far, and its current learning rate."""

    def __init__(self, probes: Probes, recipe: EdgeRecipe) -> None:
        self._probes, self._recipe = probes, recipe
        shape = len(probes.seeds), len(probes.seen)
        self._patience = Patience.begin(*shape)
        self._since_halved = torch.zeros(shape, dtype=torch.int64)  # checks without a gain since the rate was halved
        self._rate = torch.full(shape, recipe.rate, dtype=torch.float64)
        self._values = {name: value.detach().clone() for name, value in probes.parameters.items()}

    def look(self, score: Float64[np.ndarray, "seed probe"], step: int) -> Float64[torch.Tensor, "seed probe"]:
        """Record a check, and return the factor for the rate of each probe: 1, a half, or 0 when it is done."""
        better = self._patience.check(torch.from_numpy(-score), step, LEAST, self._recipe.stop_after)
        for name, value in self._probes.parameters.items():
            keep_best(self._values[name], value, better)
        self._since_halved = torch.where(better, 0, self._since_halved + 1)
        halve = self._since_halved >= self._recipe.halve_after
        self._since_halved[halve] = 0
        self._rate[halve] /= 2
        self._patience.running &= self._rate >= self._recipe.least_rate
        return torch.where(halve, 0.5, 1.0).double() * self._patience.running

    def trained(self) -> TrainedProbes:
        """The probes, restored to their best states."""
        with torch.no_grad():
            for name, value in self._probes.parameters.items():
                value.copy_(self._values[name])
        return TrainedProbes(self._probes, -self._patience.loss.numpy(), self._patience.best.numpy().astype(np.int64))
