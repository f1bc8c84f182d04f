"""Early stopping of probes that are trained side by side: each is judged by its own losses on held-out data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Float64


@dataclass
class Patience:
    """The best check of each probe, and how many checks brought it no gain since.

    `loss` is the least loss so far and `best` the number of the check (an epoch or a step) that gave it, 0 before
    any; `stale` counts the checks after that one. A probe that is not `running` has stopped: it has no better check
    any more.
    """

    loss: Float64[torch.Tensor, "*probe"]
    best: Float64[torch.Tensor, "*probe"]
    stale: Float64[torch.Tensor, "*probe"]
    running: Bool[torch.Tensor, "*probe"]

    @classmethod
    def begin(cls, *shape: int) -> Patience:
        """Probes before their first check."""
        zeros = torch.zeros(shape, dtype=torch.float64)
        return cls(zeros + torch.inf, zeros.clone(), zeros.clone(), torch.ones(shape, dtype=torch.bool))

    def check(self, loss: Float64[torch.Tensor, "*probe"], number: int, least: float, patience: float) -> Bool[torch.Tensor, "*probe"]:
        """Take in the losses of a check and return which probes gained more than `least` by it; a probe stops after
        `patience` checks without a gain.
        """
        better = self.running & (loss < self.loss - least)
        self.loss = torch.where(better, loss, self.loss)
        self.best = torch.where(better, float(number), self.best)
        self.stale = torch.where(better, 0.0, self.stale + 1)
        self.running = self.running & (self.stale < patience)
        return better


def keep_best(best: Float[torch.Tensor, "*probe n"], now: Float[torch.Tensor, "*probe n"], better: Bool[torch.Tensor, "*probe"]) -> None:
    """Copy the parameters that the better probes have now into `best`, in place; the axes of probes come first."""
    chosen = better.to(best.device)
    best[chosen] = now.detach()[chosen]
