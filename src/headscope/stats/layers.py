"""In which layers something is found: Tenney et al.'s statistics of scores by layer and of mixing weights
(docs/edge-probing.md).

Scores are those of probes that use layers 0 to l, from l = 0 (the embeddings) to the last layer L. Weights are those
with which one probe mixes layers 0 to L. Leading axes are separate systems, such as seeds or replicates. Missing values
are NaN.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headscope.core.suggest import choose_from
from headscope.errors import MeasureError
from headscope.stats.choices import NEGATIVES, Negatives

if TYPE_CHECKING:
    from jaxtyping import Float, Float64

NOTHING = 1e-9  # a total gain below which there is no expected layer


def differentials(scores: Float[np.ndarray, "*system layer+1"], negatives: Negatives = "keep") -> Float64[np.ndarray, "*system layer"]:
    """The gain of each layer from 1 on: what it adds to the score. A negative gain is kept (as in the paper) or clipped
    at 0; with `running_max`, a gain is what exceeds the best score so far.
    """
    if negatives not in NEGATIVES:
        raise MeasureError(f"there is no treatment {negatives!r} of negative differences", choose_from(negatives, NEGATIVES))
    values = np.asarray(scores, dtype=np.float64)
    if values.shape[-1] < 2:
        raise MeasureError("there are no scores of two layers to compare", "Give those of the embeddings and of at least one layer")
    if negatives == "running_max":
        values = np.maximum.accumulate(values, axis=-1)
    steps: Float64[np.ndarray, "*system layer"] = np.diff(values, axis=-1)
    return np.maximum(steps, 0.0) if negatives == "clip" else steps


def expected_layer(scores: Float[np.ndarray, "*system layer+1"], negatives: Negatives = "keep") -> Float64[np.ndarray, "*system"]:
    """The mean layer, weighted by the gains of layers. With negative gains it can lie outside 1 to L."""
    steps = differentials(scores, negatives)
    total = steps.sum(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = steps @ np.arange(1.0, steps.shape[-1] + 1) / total
    return np.where(np.abs(total) < NOTHING, np.nan, mean)[()]


def trouble(scores: Float[np.ndarray, "layer+1"], negatives: Negatives = "keep") -> str | None:
    """Why the expected layer of these scores should not be trusted; None if there is no reason."""
    values = np.asarray(scores, dtype=np.float64)
    steps, layer = differentials(values, negatives), float(expected_layer(values, negatives))
    if not np.isfinite(values).all():
        return "there is no score for some layers"
    if abs(steps.sum()) < NOTHING:
        return "layers add nothing to the score, so that there is no expected layer"
    if steps.sum() < 0:
        return f"all layers together make the score worse by {-steps.sum():.3g}, so that the expected layer of {layer:.2f} means nothing"
    if not 1 <= layer <= len(steps):
        return f"the expected layer of {layer:.2f} lies outside 1 to {len(steps)}: layers that make the score worse outweigh the others"
    return None


def centre_of_gravity(weights: Float[np.ndarray, "*system layer+1"]) -> Float64[np.ndarray, "*system"]:
    """The mean layer, weighted by mixing weights, including layer 0."""
    values = np.asarray(weights, dtype=np.float64)
    return values @ np.arange(float(values.shape[-1]))


def divergence_from_even(weights: Float[np.ndarray, "*system layer"]) -> Float64[np.ndarray, "*system"]:
    """K: the Kullback-Leibler divergence of weights from even ones, in bits; NaN if there is no weight."""
    values = np.asarray(weights, dtype=np.float64)
    if (values < 0).any():
        raise MeasureError("weights below 0 have no divergence", "Clip them at 0")
    with np.errstate(invalid="ignore", divide="ignore"):
        shares = values / values.sum(-1, keepdims=True)
        terms = np.where(shares == 0, 0.0, shares * np.log2(shares * values.shape[-1]))
    bits: Float64[np.ndarray, "*system"] = terms.sum(-1)
    return bits


def differential_divergence(scores: Float[np.ndarray, "*system layer+1"]) -> Float64[np.ndarray, "*system"]:
    """K of the gains of layers: near 0 if all gain the same. Negative gains count as 0."""
    return divergence_from_even(differentials(scores, "clip"))


def shares_of_gain(scores: Float[np.ndarray, "*system layer+1"]) -> Float64[np.ndarray, "*system layer"]:
    """The gain of each layer, as a share of the best layer's gain over the embeddings, as in the paper's figures."""
    values = np.asarray(scores, dtype=np.float64)
    whole = values.max(-1, keepdims=True) - values[..., :1]
    with np.errstate(invalid="ignore", divide="ignore"):
        shares: Float64[np.ndarray, "*system layer"] = np.where(whole < NOTHING, np.nan, differentials(values) / whole)
    return shares
