"""Findings of a study of keywords, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from headscope.results.table import Table, interval
from headscope.studies.keywords.spec import BASELINES

LISTED = 5
_WHAT = {"words": "the words of keyphrases", "phrases": "whole keyphrases"}


def sentences(tables: Mapping[str, Table]) -> list[str]:
    """How well heads find keywords together and alone, and which have the largest weights, as sentences."""
    return [*_together(tables["keywords_scores"]), *_alone(tables["keywords_heads"]), *_weights(tables["keywords_weights"])]


def _together(scores: Table) -> Iterator[str]:
    for level in dict.fromkeys(scores["level"]):
        rows = {row["system"]: row for row in scores.where(level=level)}
        ours = rows["all heads"]
        base = max((rows[name] for name in BASELINES if name in rows), key=lambda row: row["f1"])
        yield (
            f"All heads together find {_WHAT[level]} with an F1 of {interval(ours['f1'], ours['low'], ours['high'])} on held-out "
            f"documents; the best baseline, {base['system']}, reaches {base['f1']:.2f} and the best single head "
            f"{rows['best head']['f1']:.2f}."
        )


def _alone(heads: Table) -> Iterator[str]:
    rows = list(heads.where(received="mean"))
    more = sum(row["p_holm"] < 0.05 and row["relative"] > 0 for row in rows)
    less = sum(row["p_holm"] < 0.05 and row["relative"] < 0 for row in rows)
    yield (
        f"{more} of {len(rows)} heads give significantly more attention to words of keyphrases than to other words, and {less} give "
        "significantly less (paired t-test over documents, Holm-corrected, p < .05)."
    )
    best = sorted(rows, key=lambda row: row["loss"])[:LISTED]
    listed = ", ".join(f"{row['layer']}-{row['head']} ({row['loss']:.4f}, AUC {row['auc']:.2f})" for row in best)
    yield f"The most informative single heads, by the loss of a regression on one head in nats per word, are {listed}."


def _weights(weights: Table) -> Iterator[str]:
    rows = sorted(weights.where(system="scalar mix"), key=lambda row: -row["share"])[:LISTED]
    if rows:
        listed = ", ".join(f"{row['layer']}-{row['head']} ({row['share']:.0%})" for row in rows)
        yield f"In a weighted mix of all heads, the largest weights are those of {listed}."
