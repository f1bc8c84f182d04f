"""Training many probes of one task together; every probe has its own rate, its own best state, and its own end (METHODS §8.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.studies.edge_probe.feeding import Feeder
from headscope.studies.edge_probe.items import Laid
from headscope.studies.edge_probe.probe import Batch, Probes

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Float64, Int, Int64

    Check = Callable[[Probes], Float64[np.ndarray, "seed probe"]]
    Tell = Callable[[int, int], None]  # steps done, and at most to do

LEAST = 1e-4  # an improvement that counts
MIN_STEPS = 25  # between two checks that follow epochs: with few texts an epoch is too short to improve the score


@dataclass(frozen=True)
class Recipe:
    """How probes are trained. After `check_every` steps (None: an epoch, and at least `MIN_STEPS`) they are scored on texts that are
    held out.

    The rate of a probe is halved after `halve_after` checks without improvement, and its training ends after `stop_after` of them, after
    `checks` checks, or when its rate falls below `least_rate`. The rate of mixing weights is `mix_rate` times as large: they are few and
    begin alike, and would hardly move in a short training.
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
    """Adam whose rate is each probe's own, and which clips the gradient of each probe by its own norm."""

    def __init__(self, parameters: Mapping[str, torch.Tensor], clip: float, faster: Mapping[str, float]) -> None:
        """`faster` are factors for the rates of some parameters."""
        self._parameters, self._clip, self._faster = parameters, clip, faster
        self._mean, self._square = ({name: torch.zeros_like(value) for name, value in parameters.items()} for _ in range(2))
        self._step = 0

    @torch.no_grad()
    def step(self, rate: Float[torch.Tensor, "seed probe"]) -> None:
        """Follow the gradients one step, and forget them."""
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
class Trained:
    """Probes as they were at their best check, what they scored then, and after how many steps that was."""

    probes: Probes
    score: Float64[np.ndarray, "seed probe"]
    steps: Int64[np.ndarray, "seed probe"]


def train(
    probes: Probes, feeder: Feeder, variant: Int[torch.Tensor, "probe"], check: Check, recipe: Recipe, tell: Tell | None = None
) -> Trained:
    """Train all probes, each for the labels of its `variant`; `check` scores them on what is held out. They are changed in place."""
    adam = Adam(probes.parameters, recipe.clip, {"mix": recipe.mix_rate})
    some = next(iter(probes.parameters.values()))
    rate = torch.full((len(probes.seeds), len(variant)), recipe.rate, device=some.device, dtype=some.dtype)
    best = _Best(probes, recipe)
    every = recipe.check_every or max(MIN_STEPS, -(-len(feeder.items.laid) // recipe.batch))
    noise = [torch.Generator(some.device).manual_seed(seed) for seed in probes.seeds]
    for step, texts in enumerate(_batches(feeder, probes.seeds, recipe.batch), 1):
        batch = feeder.batch(texts)
        kept = _kept(batch, texts, probes.shape.hidden, recipe.dropout, noise) if recipe.dropout else None
        loss(probes(batch, kept), batch, variant).sum().backward()  # type: ignore[no-untyped-call]
        adam.step(rate)
        if tell is not None:
            tell(step, every * recipe.checks)
        if step % every == 0:
            rate *= best.look(check(probes), step).to(rate)
            if not bool((rate > 0).any()) or step == every * recipe.checks:
                break
    return best.trained()


def loss(
    logits: Float[torch.Tensor, "seed probe target label"], batch: Batch, variant: Int[torch.Tensor, "probe"]
) -> Float[torch.Tensor, "seed probe"]:
    """Binary cross-entropy of each probe, averaged over targets and labels."""
    labels = batch.labels.index_select(1, variant) if batch.labels.shape[1] > 1 else batch.labels
    each = torch.nn.functional.softplus(logits) - labels * logits
    return (each.sum(-1) * batch.real[:, None]).sum(-1) / (batch.real.sum(-1, keepdim=True) * logits.shape[-1])


def _batches(feeder: Feeder, seeds: list[int], size: int) -> Iterator[list[list[Laid]]]:
    """Batches without end, those of each seed in its own order."""
    for epoch in count():
        yield from map(list, zip(*(feeder.shuffled(seed, epoch, size) for seed in seeds), strict=True))


def _kept(
    batch: Batch, texts: list[list[Laid]], hidden: int, dropout: float, noise: list[torch.Generator]
) -> Float[torch.Tensor, "seed target hidden"]:
    """What dropout leaves, scaled. Padding draws nothing, so that a seed's noise is the same whatever it is trained beside."""
    kept = torch.zeros(*batch.real.shape, hidden, device=batch.real.device, dtype=batch.real.dtype)
    for row, own, generator in zip(kept, texts, noise, strict=True):
        size = sum(len(text.targets) for text in own)
        row[:size] = torch.rand(size, hidden, device=row.device, generator=generator) >= dropout
    return kept / (1 - dropout)


class _Best:
    """The best state of each probe so far, and how long ago that was."""

    def __init__(self, probes: Probes, recipe: Recipe) -> None:
        self._probes, self._recipe = probes, recipe
        shape = len(probes.seeds), len(probes.seen)
        self._score = np.full(shape, -np.inf)
        self._steps, self._waited, self._halved = (np.zeros(shape, dtype=np.int64) for _ in range(3))
        self._going = np.ones(shape, dtype=bool)
        self._rate = np.full(shape, recipe.rate)
        self._values = {name: value.detach().clone() for name, value in probes.parameters.items()}

    def look(self, score: Float64[np.ndarray, "seed probe"], step: int) -> torch.Tensor:
        """Take note of a check; what each probe's rate is to be multiplied by: 1, a half, or 0 when it is done."""
        better = self._going & (score > self._score + LEAST)
        self._score[better], self._steps[better] = score[better], step
        self._keep(better)
        self._waited[better] = self._halved[better] = 0
        self._waited[~better] += 1
        self._halved[~better] += 1
        halve = self._halved >= self._recipe.halve_after
        self._halved[halve] = 0
        self._rate[halve] /= 2
        self._going &= (self._waited < self._recipe.stop_after) & (self._rate >= self._recipe.least_rate)
        return torch.from_numpy(np.where(halve, 0.5, 1.0) * self._going)

    def _keep(self, better: Bool[np.ndarray, "seed probe"]) -> None:
        chosen = torch.from_numpy(better).to(self._probes.seen.device)
        for name, value in self._probes.parameters.items():
            self._values[name][chosen] = value.detach()[chosen]

    def trained(self) -> Trained:
        """The probes, put back to where they were best."""
        with torch.no_grad():
            for name, value in self._probes.parameters.items():
                value.copy_(self._values[name])
        return Trained(self._probes, self._score, self._steps)
