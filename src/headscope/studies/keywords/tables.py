"""Tables of a study of keywords: the scores of each way to find them, and the weights of heads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.core.heads import HeadId
from headscope.results.columns import StateColumns
from headscope.results.results import Results
from headscope.results.table import Table, columns_of
from headscope.stats.bootstrap import document_weights
from headscope.stats.classification import KeyphraseF1
from headscope.stats.contrast import contrast
from headscope.stats.inference import Support, interval
from headscope.stats.scores import ratio
from headscope.studies.keywords.curves import THRESHOLDS, sizes
from headscope.studies.keywords.features import HOWS
from headscope.studies.keywords.learning import LEVELS
from headscope.studies.replicates import replicate_maker

if TYPE_CHECKING:
    from jaxtyping import Float64

    from headscope.studies.replicates import ReplicatedTables

BASE = "tf-idf"
NAMES = {"token": "words", "span": "phrases"}


def score_table(counted: Mapping[str, Float64[np.ndarray, "text level 3"]], documents: Sequence[str], replicates: int, seed: int) -> Table:
    """`keywords_scores`: precision, recall and F1 of each system over all texts, of words and of whole phrases, with
    intervals of F1 and of its difference from tf-idf, both by resampling documents.
    """
    units, weights = document_weights(documents, replicates, seed)
    rows: list[dict[str, Any]] = []
    for place, level in enumerate(LEVELS):
        score = KeyphraseF1(level)
        for name, numbers in counted.items():
            counts = numbers[:, place]
            against = contrast(score, counted[BASE][:, place], counts, documents, "bootstrap", replicates, seed)
            rows.append(
                {
                    "level": NAMES[level],
                    "system": name,
                    **_f1(score, counts, units, weights),
                    "above": float(against.difference),
                    "above_low": float(against.low),
                    "above_high": float(against.high),
                    "p": float(against.p),
                    "n": len(documents),
                    "documents": len(weights),
                }
            )
    return Table.from_rows(rows)


def _f1(
    score: KeyphraseF1, counts: Float64[np.ndarray, "text 3"], units: np.ndarray[Any, Any], weights: Float64[np.ndarray, "unit replicate"]
) -> dict[str, float]:
    """Precision, recall, and F1 with its interval, from what is found, wrongly found and missed in each text."""
    right, wrong, missed = counts.sum(0)
    again = score.resampled(counts, units, weights)
    low, high = interval(again[0], again[1:], Support.of(np.bincount(units)), (0, 1))
    numbers = (ratio(right, right + wrong), ratio(right, right + missed), score.of(counts), low, high)
    return {name: float(value) for name, value in zip(("precision", "recall", "f1", "low", "high"), numbers, strict=True)}


def curve_table(
    thresholds: Float64[np.ndarray, "text threshold level 3"],
    kept: Float64[np.ndarray, "text size level 3"],
    heads: int,
    documents: Sequence[str],
    replicates: int,
    seed: int,
) -> Table:
    """`keywords_curves`: precision, recall and F1 of the regression by `threshold`, with all heads, and by the
    number of `heads` kept, the best by cross-entropy first, with thresholds that were tuned.
    """
    units, weights = document_weights(documents, replicates, seed)
    rows: list[dict[str, Any]] = []
    for by, steps, numbers in (("threshold", THRESHOLDS.tolist(), thresholds), ("heads", sizes(heads), kept)):
        for place, level in enumerate(LEVELS):
            for step, value in enumerate(steps):
                at = {"threshold": value if by == "threshold" else None, "heads": heads if by == "threshold" else value}
                scores = _f1(KeyphraseF1(level), numbers[:, step, place], units, weights)
                rows.append({"by": by, "level": NAMES[level], **at, **scores, "n": len(documents), "documents": len(weights)})
    return Table.from_rows(rows)


def ranking_table(heads: Table) -> Table:
    """`keywords_ranking`: heads by the cross-entropy of a regression on one head, the lowest first, on held-out
    documents and in nats per word; and what it saves compared with `constant`, the cross-entropy if only the share of
    keywords is known.
    """
    rows = sorted(heads, key=lambda row: (row["loss"], row["layer"], row["head"], row["received"]))
    columns: dict[str, list[Any]] = {"rank": list(range(1, len(rows) + 1))}
    columns |= columns_of(rows, ("kind", "layer", "head", "received"))
    columns |= {
        "cross_entropy": [row["loss"] for row in rows],
        "low": [row["loss_low"] for row in rows],
        "high": [row["loss_high"] for row in rows],
        "constant": [row["loss"] + row["gain"] for row in rows],
    }
    rest = ("gain", "gain_low", "gain_high", "effect", "auc", "n", "documents")
    return Table.of(columns | columns_of(rows, rest))


def weight_table(weights: Mapping[str, Float64[np.ndarray, "fold how head"]], heads: Sequence[HeadId]) -> Table:
    """`keywords_weights`: the weight of each head in a combination, with its spread over folds and its share."""
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
    return Table.from_rows(rows, columns)


def summary(scores: Table, heads: Table) -> Table:
    """`summary`: the main results."""
    rows: list[tuple[str, str, float, float, float, int, int]] = []
    for row in scores:
        rows.append((f"F1 of {row['level']}", row["system"], row["f1"], row["low"], row["high"], row["n"], row["documents"]))
    for how in HOWS:
        best = max(heads.where(received=how), key=lambda row: np.nan_to_num(row["auc"], nan=-1.0))
        name = f"{best['layer']}-{best['head']}"
        rows.append((f"highest AUC of a head ({how})", name, best["auc"], np.nan, np.nan, best["n"], best["documents"]))
    columns = ("quantity", "which", "value", "low", "high", "n", "documents")
    return Table.of({name: [row[place] for row in rows] for place, name in enumerate(columns)})


def replicates(results: Results) -> ReplicatedTables:
    """The F1 of each system in `keywords_scores` with its replicates."""
    settings = results.manifest["settings"]
    kept = StateColumns(results.state("fold"))
    documents = kept.words("document")
    units, weights = document_weights(documents, settings["replicates"], settings["seed"])
    made = replicate_maker(documents, settings["seed"])
    return {
        "keywords_scores": {
            (NAMES[level], system): made(KeyphraseF1(level).resampled(kept.numbers(f"counts/{system}")[:, place], units, weights))
            for place, level in enumerate(LEVELS)
            for system in kept.under("counts/")
        }
    }
