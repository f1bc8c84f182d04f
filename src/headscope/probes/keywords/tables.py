"""Tables of a study of keywords: how good each way of finding them is, and which heads carry the weight."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.core.heads import HeadId
from headscope.probes.keywords.features import HOWS
from headscope.probes.keywords.learning import LEVELS
from headscope.runs.table import Table
from headscope.stats.bootstrap import poisson_weights
from headscope.stats.contrast import contrast
from headscope.stats.inference import Support, interval
from headscope.stats.keyphrases import KeyphraseF1
from headscope.stats.scores import ratio

if TYPE_CHECKING:
    from jaxtyping import Float64

BASE = "tf-idf"
NAMES = {"token": "words", "span": "phrases"}


def score_table(counted: Mapping[str, Float64[np.ndarray, "text level 3"]], documents: Sequence[str], replicates: int, seed: int) -> Table:
    """`keywords_scores`: precision, recall and F1 of each system over all texts, of words and of whole phrases, with intervals of F1 and
    of its difference to tf–idf, both by resampling documents.
    """
    units, weights = _units(documents, replicates, seed)
    rows: list[dict[str, Any]] = []
    for place, level in enumerate(LEVELS):
        score = KeyphraseF1(level)
        for name, numbers in counted.items():
            own = numbers[:, place]
            found, wrong, missed = own.sum(0)
            again = score.resampled(own, units, weights)
            low, high = interval(again[0], again[1:], Support.of(np.bincount(units)), (0, 1))
            against = contrast(score, counted[BASE][:, place], own, documents, "bootstrap", replicates, seed)
            rows.append(
                {
                    "level": NAMES[level],
                    "system": name,
                    "precision": float(ratio(found, found + wrong)),
                    "recall": float(ratio(found, found + missed)),
                    "f1": float(score.of(own)),
                    "low": float(low),
                    "high": float(high),
                    "above": float(against.difference),
                    "above_low": float(against.low),
                    "above_high": float(against.high),
                    "p": float(against.p),
                    "n": len(documents),
                    "documents": len(weights),
                }
            )
    return Table.of({name: [row[name] for row in rows] for name in rows[0]})


def _units(
    documents: Sequence[str], replicates: int, seed: int
) -> tuple[np.ndarray[Any, np.dtype[np.int64]], Float64[np.ndarray, "unit replicate"]]:
    number = {name: place for place, name in enumerate(dict.fromkeys(documents))}
    return np.array([number[name] for name in documents], dtype=np.int64), poisson_weights(list(number), replicates, seed)


def weight_table(weights: Mapping[str, Float64[np.ndarray, "fold how head"]], heads: Sequence[HeadId]) -> Table:
    """`keywords_weights`: the weight of each head's attention in a combination, its mean and spread over folds, and its share of all."""
    rows: list[dict[str, Any]] = []
    for name, folds in weights.items():
        mean = folds.mean(0)
        spread = folds.std(0, ddof=1) if len(folds) > 1 else np.full_like(mean, np.nan)
        total = np.abs(mean).sum()
        for how, head in np.argwhere(np.abs(mean) > 0):
            place = heads[int(head)]
            rows.append(
                {
                    "system": name,
                    "kind": place.kind,
                    "layer": place.layer + 1,
                    "head": place.head + 1,
                    "received": HOWS[int(how)],
                    "weight": float(mean[how, head]),
                    "spread": float(spread[how, head]),
                    "share": float(np.abs(mean[how, head]) / total),
                }
            )
    columns = ("system", "kind", "layer", "head", "received", "weight", "spread", "share")
    return Table.of({name: [row[name] for row in rows] for name in columns})


def summary(scores: Table, heads: Table) -> Table:
    """`summary`: what most readers want to know."""
    rows: list[tuple[str, str, float, float, float, int, int]] = []
    for row in scores:
        rows.append((f"F1 of {row['level']}", row["system"], row["f1"], row["low"], row["high"], row["n"], row["documents"]))
    for how in HOWS:
        best = max(heads.where(received=how), key=lambda row: np.nan_to_num(row["auc"], nan=-1.0))
        name = f"{best['layer']}-{best['head']}"
        rows.append((f"highest AUC of a head ({how})", name, best["auc"], np.nan, np.nan, best["n"], best["documents"]))
    columns = ("quantity", "which", "value", "low", "high", "n", "documents")
    return Table.of({name: [row[place] for row in rows] for place, name in enumerate(columns)})
