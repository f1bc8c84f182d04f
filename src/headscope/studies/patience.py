"""Early stopping of probes that are trained in parallel: each is judged by its losses on held-out data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Float64


@dataclass
class Patience:
    """The best check of each probe, and the number of checks without a gain since.

    `loss` is the least loss so far, and `best` the number of its check (an epoch or a step), 0 before any check.
    `stale` counts the checks after it. A probe that is not `running` has stopped and is not improved any more.
    """

    loss: Float64[torch.Tensor, "*probe"]
    best: Float64[torch.Tensor, "*probe"]
    stale: Float64[torch.Tensor, "*probe"]
    running: Bool[torch.Tensor, "*probe"]

    @classmethod
    def begin(cls, *shape: int) -> Patience:
        """The state before the first check, for probes of this shape."""
        zeros = torch.zeros(shape, dtype=torch.float64)
        return cls(zeros + torch.inf, zeros.clone(), zeros.clone(), torch.ones(shape, dtype=torch.bool))

    def check(self, loss: Float64[torch.Tensor, "*probe"], number: int, least: float, patience: float) -> Bool[torch.Tensor, "*probe"]:
        """Record the losses of a check, and return which probes gained more than `least`; a probe stops after
        `patience` checks without a gain.
        """
        better = self.running & (loss < self.loss - least)
        self.loss = torch.where(better, loss, self.loss)
        self.best = torch.where(better, float(number), self.best)
        self.stale = torch.where(better, 0.0, self.stale + 1)
        self.running = self.running & (self.stale < patience)
        return better


def keep_best(best: Float[torch.Tensor, "*probe n"], now: Float[torch.Tensor, "*probe n"], better: Bool[torch.Tensor, "*probe"]) -> None:
    """Copy the current parameters of the better probes into `best`, in place; the axes of probes come first."""
    chosen = better.to(best.device)
    best[chosen] = now.detach()[chosen]
