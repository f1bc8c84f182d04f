"""Findings of a study of ablation: sentences, and a table with the values published by Michel et al."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from headscope.core.heads import HeadId
from headscope.results.table import Table
from headscope.stats.inference import FEWEST, reason
from headscope.stats.scores import Score

if TYPE_CHECKING:
    from headscope.results.results import Results

SURE = 0.01  # as in the paper's Table 1
LOWER = ("loss", "perplexity")  # scores for which lower is better
_RANGES = {  # by the first word of a score's name; a user's function can have any value
    **dict.fromkeys(("accuracy", "masked", "f1", "keyphrase"), (0.0, 1.0)),
    **{"matthews": (-1.0, 1.0), "bleu": (0.0, 100.0), "chrf": (0.0, 100.0), "loss": (0.0, inf), "perplexity": (1.0, inf)},
}
COLUMNS = ("what", "kind", "value", "n", "documents", "published")
LISTED = 6


def within(score: str) -> tuple[float, float]:
    """The lowest and the highest value that a score can have."""
    return _RANGES.get(score.partition("_")[0], (-inf, inf))


def base_score(results: Results) -> float:
    """The score of the model with all of its heads."""
    return float(results["summary"]["value"][0])


def summary(tables: Mapping[str, Table], score: Score, base: float, n: int, documents: int, losing: bool = True) -> Table:
    """How many heads matter, how many layers need more than one head, what importance predicts, and how many heads can
    be removed.

    For a model that is no better than the baseline (`losing` is false) only the score has a value.
    """
    rows: list[tuple[str, str, float, int, int | None, str | None]] = [(f"{score.name} of the whole model", "", base, n, documents, None)]
    sign = 1 if score.better == "higher" else -1
    if "ablation" in tables:
        for kind in dict.fromkeys(tables["ablation"]["kind"]):
            heads = list(tables["ablation"].where(kind=kind))
            for what, way, published in (("worse", -1, "4 of 96"), ("better", 1, "4 of 96")):
                sure = [row for row in heads if row["p"] < SURE and row["difference"] * sign * way > 0]
                rows.append((f"heads without which it is {what}, p < {SURE}", kind, _count(sure, heads), len(heads), documents, published))
            worst = min(heads, key=lambda row: row["difference"] * sign)
            rows.append((f"largest loss: head {worst['layer']}-{worst['head']}", kind, worst["difference"], n, documents, None))
    if "ablation_all_but_one" in tables:
        for kind in dict.fromkeys(tables["ablation_all_but_one"]["kind"]):
            layers = list(tables["ablation_all_but_one"].where(kind=kind, selection="held-out"))
            hurt = [row for row in layers if row["p"] < SURE and row["difference"] * sign < 0]
            rows.append((f"layers that one head is not enough for, p < {SURE}", kind, _count(hurt, layers), len(layers), documents, None))
    for row in tables.get("importance_correlation", ()):
        rows.append((f"importance and loss without the head, {row['method']}", row["kind"], row["value"], int(row["n"]), None, None))
    for row in tables.get("prunable", ()):
        published_share = "20% (translation), 40% (BERT)" if row["order"] == "importance" else None
        rows.append((f"share of heads that can go, by {row['order']}", "", row["share"], n, documents, published_share))
    if not losing:
        rows = [
            rows[0],
            *((what, kind, math.nan, n, documents, published_share) for what, kind, _, n, documents, published_share in rows[1:]),
        ]
    return Table.of({name: [row[place] for row in rows] for place, name in enumerate(COLUMNS)})


def _count(sure: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> float:
    """How many rows are significant; NaN if nothing was tested."""
    return len(sure) if any(not math.isnan(row["p"]) for row in rows) else math.nan


def sentences(tables: Mapping[str, Table], score: str) -> list[str]:
    """The findings of each part, as sentences."""
    sign = -1 if score in LOWER else 1
    makers = {"ablation": _heads, "ablation_all_but_one": _single, "importance_correlation": _importance_correlation, "prunable": _prunable}
    return [line for name, make in makers.items() if name in tables for line in make(tables, score, sign)]


def _heads(tables: Mapping[str, Table], score: str, sign: int) -> Iterator[str]:
    rows = list(tables["ablation"])
    if all(math.isnan(row["p"]) for row in rows):
        yield f"The effect of single heads was not tested: {_untested(rows)}."
        return
    harmed = sorted((row for row in rows if _sure(row) and row["difference"] * sign < 0), key=lambda row: row["difference"] * sign)
    helped = [row for row in rows if _sure(row) and row["difference"] * sign > 0]
    one_kind = _one_kind(tables["ablation"])
    listed = ", ".join(f"{HeadId.of_row(row, one_kind)} ({row['difference']:+.3g})" for row in harmed[:LISTED])
    listed_heads = f": {listed}" if harmed else ""
    more = f" and {len(harmed) - LISTED} more" if len(harmed) > LISTED else ""
    yield f"For {len(harmed)} of {len(rows)} heads, {score} is worse when the head alone is switched off (p < {SURE}){listed_heads}{more}."
    corrected = sum(row["p_holm"] < 0.05 for row in rows)
    others = "one other head" if len(helped) == 1 else f"{len(helped)} other heads"
    holm = f"After Holm's correction for {len(rows)} tests, the change is significant for {corrected} of {len(rows)} heads (p < .05)"
    yield f"For {others}, {score} is better (p < {SURE}). {holm}."


def _single(tables: Mapping[str, Table], score: str, sign: int) -> Iterator[str]:
    rows = list(tables["ablation_all_but_one"].where(selection="held-out"))
    if all(math.isnan(row["p"]) for row in rows):
        yield f"Whether one head per layer is enough was not tested: {_untested(rows)}."
        return
    hurt = [row for row in rows if _sure(row) and row["difference"] * sign < 0]
    one_kind = _one_kind(tables["ablation_all_but_one"])
    named = ", ".join(f"layer {row['layer']}" if one_kind else f"{row['kind']} layer {row['layer']}" for row in hurt)
    enough = f"In {len(rows) - len(hurt)} of {len(rows)} layers a single head, chosen on other documents, is enough"
    yield f"{enough}: without the others {score} is not significantly worse (p < {SURE})" + (f". The exceptions: {named}." if hurt else ".")


def _importance_correlation(tables: Mapping[str, Table], score: str, sign: int) -> Iterator[str]:
    for row in tables["importance_correlation"].where(method="spearman"):
        kind = "" if _one_kind(tables["importance_correlation"]) else f" ({row['kind']})"
        yield f"Importance from gradients and the measured loss without a head have a rank correlation of {row['value']:.2f}{kind}."


def _prunable(tables: Mapping[str, Table], score: str, sign: int) -> Iterator[str]:
    rows = {row["order"]: row for row in tables["prunable"]}
    chance = [row["share"] for name, row in rows.items() if name.startswith("random")]
    orders = [
        f"{rows[name]['share']:.0%} in order of {what}"
        for name, what in (("importance", "importance"), ("drop", "measured loss"))
        if name in rows
    ]
    if chance:
        orders.append(f"{sum(chance) / len(chance):.0%} in random order")
    tolerance = next(iter(rows.values()))["tolerance"]
    yield f"Share of heads that can be removed before {score} is worse by more than {tolerance:.0%} of its value: {', '.join(orders)}."


def _untested(rows: Sequence[Mapping[str, Any]]) -> str:
    documents = rows[0].get("documents") if rows else None
    return "there are no p values" if documents is None or documents >= FEWEST else reason(documents)


def _sure(row: Mapping[str, Any]) -> bool:
    return bool(row["p"] < SURE)


def _one_kind(table: Table) -> bool:
    return len(set(table["kind"])) == 1
