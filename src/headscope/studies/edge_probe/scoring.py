"""What probes decide: right and wrong decisions by document, F1 of them, and beliefs (METHODS §8.2)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.studies.edge_probe.feeding import Feeder
from headscope.studies.edge_probe.probe import Probes

if TYPE_CHECKING:
    from jaxtyping import Bool, Float32, Float64, Int


@torch.no_grad()
def counts(
    probes: Probes,
    feeder: Feeder,
    variant: Int[torch.Tensor, "probe"],
    counted: Bool[np.ndarray, "label"],
    units: Int[np.ndarray, "target"],
) -> Float64[np.ndarray, "seed probe unit 3"]:
    """Labels found rightly, found wrongly, and missed, summed over the targets of each unit: 0 to the last of
    `units`.
    """
    seen = probes.seen
    which = torch.from_numpy(counted).to(seen.device)
    place = torch.from_numpy(units).to(seen.device)
    shape = len(probes.seeds), len(seen), int(units.max(initial=-1)) + 1
    total = torch.zeros(3, *shape, dtype=torch.float64, device=seen.device)
    for batch in feeder.steady(len(probes.seeds)):
        found = (probes(batch) >= 0) & which
        true = (batch.labels[:1].index_select(1, variant) > 0) & which
        for number, labels in enumerate((found & true, found & ~true, ~found & true)):
            total[number].index_add_(2, place[batch.targets[0]], labels.sum(-1).double())
    return total.permute(1, 2, 3, 0).cpu().numpy()


def f1(sums: Float64[np.ndarray, "*system 3"]) -> Float64[np.ndarray, "*system"]:
    """Micro-averaged F1 of sums of decisions; 0 where nothing is found and nothing is there, as in the paper's code."""
    right, wrong, missed = np.moveaxis(np.asarray(sums, dtype=np.float64), -1, 0)
    whole = 2 * right + wrong + missed
    score: Float64[np.ndarray, "*system"] = np.where(whole > 0, 2 * right / np.where(whole > 0, whole, 1), 0.0)[()]
    return score


@torch.no_grad()
def beliefs(probes: Probes, feeder: Feeder) -> Float32[np.ndarray, "seed probe target label"]:
    """How likely each probe holds each label to be for each target."""
    believed = np.zeros((len(probes.seeds), len(probes.seen), len(feeder), len(feeder.items.names)), dtype=np.float32)
    for batch in feeder.steady(len(probes.seeds)):
        believed[:, :, batch.targets[0].cpu().numpy()] = probes(batch).sigmoid().float().cpu().numpy()
    return believed
