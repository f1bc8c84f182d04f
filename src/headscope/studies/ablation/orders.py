"""Orders in which heads are switched off: by importance, by measured loss, by quantities of a run, by chance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.core.heads import HeadLayout
from headscope.models.gates import gated
from headscope.models.importance import importance
from headscope.results.columns import StateColumns
from headscope.results.quantities import by_head
from headscope.results.results import Results
from headscope.studies.ablation.pruning_curves import MOST_FIRST, step_sizes
from headscope.studies.ablation.systems import removal
from headscope.studies.ablation.trial import Trial

if TYPE_CHECKING:
    from jaxtyping import Float64


def ascending(values: Float64[np.ndarray, "head"]) -> list[int]:
    """Heads in the order in which they go: the smallest value first, of equals the lower layer and head, and NaN
    last.
    """
    return [int(place) for place in np.argsort(values, kind="stable")]


def shuffled(layout: HeadLayout, seed: int) -> list[int]:
    """Heads in an order of chance."""
    return [int(place) for place in np.random.default_rng(seed).permutation(layout.size)]


def quantity_values(run: Path, name: str, layout: HeadLayout) -> Float64[np.ndarray, "head"]:
    """A quantity of a run for each head, to be ordered by; the name begins with - if the highest are to go first."""
    values = by_head(Results.open_run(run), name.removeprefix("-"), layout)
    return -values if name.startswith("-") else values


def pruning_orders(trial: Trial, kept: StateColumns) -> dict[str, list[int]]:
    """The orders of a study by name, found on one half of the documents; `kept` is what `Trial.answer_systems` gave
    of all texts.
    """
    spec, layout = trial.spec, trial.model.layout
    scores = trial.scores(kept)
    half = scores.fold == 0 if trial.has_halves else np.ones(len(scores.documents), dtype=bool)
    orders = {"importance": ascending(trial.importance(kept, half, 0)[0])}
    if "heads" in spec.parts:
        orders["drop"] = ascending(scores.harm("heads", half))
    if spec.most_first:
        orders |= {f"{name}{MOST_FIRST}": order[::-1] for name, order in orders.items()}
    if spec.reestimate:
        orders["importance, estimated anew"] = _reestimated(trial)
    if spec.run is not None:
        orders |= {name: ascending(quantity_values(Path(spec.run), name, layout)) for name in spec.by}
    orders |= {f"random {number + 1}": shuffled(layout, spec.seed + number) for number in range(spec.orders)}
    return orders


def _reestimated(trial: Trial) -> list[int]:
    """Heads by an importance that is estimated anew after each step, with the heads gone that are gone already."""
    spec, layout, texts = trial.spec, trial.model.layout, trial.ordering_texts()
    gone: list[int] = []
    for size in step_sizes(layout.size, spec.steps):
        with gated(trial.model, {site: torch.from_numpy(gate).float() for site, gate in removal(layout, gone).items()}):
            slopes = importance(trial.model, texts, trial.batch_tokens, share=spec.mask_share, key=f"{spec.seed}/0")
        order = ascending(slopes.of(spec.abs_over, spec.normalise, spec.batch_texts))
        gone += [place for place in order if place not in gone][: size - len(gone)]
    return gone
