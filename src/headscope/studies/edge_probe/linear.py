"""A linear baseline for the probes of a task: one logistic regression per label on the mean state of each span, in one
layer.

A probe that sees the layer can learn whatever the regression learns. If it scores less, it was trained too briefly or
on too few texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.studies.edge_probe.feeding import Items, Laid, StateRows
from headscope.studies.hidden_states import HiddenStates

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Float64, Int

PENALTIES = (100.0, 30.0, 10.0, 3.0, 1.0, 0.3, 0.1)  # of half the squared weights, for vectors of standard deviation 1
STEPS = 50  # of L-BFGS for each penalty, at most; more change F1 by less than .001
LEAST = 1e-5  # least decrease of the mean loss per step
TEXTS = 256  # whose states are taken at a time


def linear_counts(
    rows: StateRows,
    parts: Mapping[str, Items],
    layer: int,
    counted: Bool[np.ndarray, "label"],
    units: Int[np.ndarray, "target"],
) -> Float64[np.ndarray, "unit 3"]:
    """Right, wrong and missed labels of the baseline in each unit of the part `dev`, in the format that probes have.

    Weights are fitted to the part `train`. The penalty decreases until the cross-entropy of the part `held` rises.
    """
    vectors = {name: span_vectors(rows, items, layer) for name, items in parts.items()}
    centre, scale = vectors["train"].mean(0), vectors["train"].std(0, correction=0).clamp(min=1e-6)
    for part in vectors.values():
        part.sub_(centre).div_(scale)
    labels = {name: torch.from_numpy(items.labels).to(centre) for name, items in parts.items()}
    weights = best = centre.new_zeros(len(centre) + 1, len(counted))
    least = np.inf
    which = torch.from_numpy(counted).to(centre.device)
    for penalty in PENALTIES:
        weights = fitted(vectors["train"], labels["train"], penalty, weights)
        held = float(_cross_entropy(vectors["held"], labels["held"], weights)[:, which].sum())
        if held >= least:
            break
        least, best = held, weights
    decided, true = (_logits(vectors["dev"], best) >= 0).cpu().numpy() & counted, parts["dev"].labels & counted
    sums = np.zeros((int(units.max(initial=-1)) + 1, 3))
    np.add.at(sums, units, np.stack([decided & true, decided & ~true, ~decided & true]).sum(2).T)
    return sums


def span_vectors(rows: StateRows, items: Items, layer: int) -> Float[torch.Tensor, "target d"]:
    """The mean state of each target's span in a layer; for targets of two spans, both means."""
    size = rows.states.size
    vectors = torch.empty(len(items), size * items.slots, device=rows.device)
    for first in range(0, len(items.laid), TEXTS):
        texts = items.laid[first : first + TEXTS]
        for slot in range(items.slots):
            tokens, lengths = (
                np.concatenate(arrays) for arrays in zip(*(_tokens(rows.states, text, layer, slot) for text in texts), strict=True)
            )
            means = torch.segment_reduce(rows.take(tokens, torch.float32), "mean", lengths=torch.from_numpy(lengths).to(rows.device))
            vectors[texts[0].targets[0] : texts[-1].targets[-1] + 1, slot * size : (slot + 1) * size] = means
    return vectors


def _tokens(states: HiddenStates, text: Laid, layer: int, slot: int) -> tuple[Int[np.ndarray, "token"], Int[np.ndarray, "target"]]:
    """The rows of the tokens of each target's span in a layer, target by target, and how many each has."""
    spans = text.spans[slot][text.of[slot]]
    start = states.places[text.text] // states.size + layer * states.lengths[text.text]
    return start + text.tokens[np.concatenate([np.arange(*span) for span in spans])], spans[:, 1] - spans[:, 0]


def fitted(
    vectors: Float[torch.Tensor, "target d"],
    labels: Float[torch.Tensor, "target label"],
    penalty: float,
    start: Float[torch.Tensor, "d+1 label"],
) -> Float[torch.Tensor, "d+1 label"]:
    """Weights (intercepts last) minimising binary cross-entropy plus penalty / 2 times their squares."""
    weights = start.clone().requires_grad_()
    optimiser = torch.optim.LBFGS([weights], max_iter=STEPS, tolerance_change=LEAST, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        mean = (_cross_entropy(vectors, labels, weights).sum() + penalty / 2 * weights[:-1].square().sum()) / len(vectors)
        mean.backward()  # type: ignore[no-untyped-call]
        return mean

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    return weights.detach()


def _logits(vectors: Float[torch.Tensor, "target d"], weights: Float[torch.Tensor, "d+1 label"]) -> Float[torch.Tensor, "target label"]:
    return torch.addmm(weights[-1], vectors, weights[:-1])


def _cross_entropy(
    vectors: Float[torch.Tensor, "target d"], labels: Float[torch.Tensor, "target label"], weights: Float[torch.Tensor, "d+1 label"]
) -> Float[torch.Tensor, "target label"]:
    logits = _logits(vectors, weights)
    return torch.nn.functional.softplus(logits) - labels * logits
