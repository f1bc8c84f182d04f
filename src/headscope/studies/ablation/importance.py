"""Importance of heads I_h with intervals, and how well it predicts what switching them off does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.heads import HeadLayout
from headscope.models.importance import normalised
from headscope.models.importance_choices import Normalise
from headscope.results.table import Table
from headscope.stats.bootstrap import document_weights
from headscope.stats.correlation import pearson, spearman
from headscope.stats.inference import Support, interval
from headscope.studies.ablation.tables import Scores

if TYPE_CHECKING:
    from jaxtyping import Float64


def replicated(
    sizes: Float64[np.ndarray, "part head"],
    weight: Float64[np.ndarray, "part head"],
    layout: HeadLayout,
    documents: Sequence[str],
    normalise: Normalise,
    replicates: int,
    seed: int,
) -> Float64[np.ndarray, "replicate+1 head"]:
    """I_h over all parts and in each replicate of the documents: sums divided by weights, then normalised."""
    units, drawn = document_weights(documents, replicates, seed)
    sums, counts = np.zeros((2, len(drawn), sizes.shape[1]))
    np.add.at(sums, units, sizes)
    np.add.at(counts, units, weight)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = (drawn.T @ sums) / (drawn.T @ counts)
    return np.stack([normalised(row, layout, normalise) for row in np.nan_to_num(means)])


def importance_table(weights: Float64[np.ndarray, "replicate+1 head"], layout: HeadLayout, n: int, documents: int) -> Table:
    """`importance`: one row per head."""
    low, high = interval(weights[0], weights[1:], Support.alike(documents), (0, np.inf))
    ids = layout.ids()
    ranks = np.empty(layout.size, dtype=np.int64)
    ranks[np.argsort(-weights[0], kind="stable")] = np.arange(1, layout.size + 1)
    return Table.of(
        {
            "kind": [head.kind for head in ids],
            "layer": [head.layer + 1 for head in ids],
            "head": [head.head + 1 for head in ids],
            "importance": weights[0].tolist(),
            "low": low.tolist(),
            "high": high.tolist(),
            "rank": ranks.tolist(),
            "n": [n] * layout.size,
            "documents": [documents] * layout.size,
        }
    )


def importance_correlation_table(weights: Float64[np.ndarray, "head"], scores: Scores) -> Table:
    """`importance_correlation`: correlation of importance with the loss without the head, by kind and overall."""
    harm = scores.harm("heads", np.ones(len(scores.documents), dtype=bool))
    kinds = scores.layout.by_kind()
    groups: dict[str, list[int]] = {str(kind): places for kind, places in kinds.items()}
    if len(kinds) > 1:
        groups["all"] = [*range(scores.layout.size)]
    rows = [
        (kind, method, *(float(part) for part in correlate(weights[places], harm[places])))
        for kind, places in groups.items()
        for method, correlate in (("pearson", pearson), ("spearman", spearman))
    ]
    columns = ("kind", "method", "value", "n")
    return Table.of({name: [row[place] for row in rows] for place, name in enumerate(columns)})
