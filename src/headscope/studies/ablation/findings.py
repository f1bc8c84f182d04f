"""What a study of ablation found, in plain words."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headscope.core.heads import HeadId
from headscope.results.table import Table
from headscope.stats.inference import FEWEST, reason
from headscope.studies.ablation.summary import LOWER, SURE

LISTED = 6


def sentences(tables: Mapping[str, Table], score: str) -> list[str]:
    """The findings of each part."""
    sign = -1 if score in LOWER else 1
    makers = {"ablation": _heads, "ablation_all_but_one": _single, "importance_foretells": _foretold, "prunable": _prunable}
    return [line for name, make in makers.items() if name in tables for line in make(tables, score, sign)]


def _heads(tables: Mapping[str, Table], score: str, sign: int) -> Iterator[str]:
    rows = list(tables["ablation"])
    if all(math.isnan(row["p"]) for row in rows):
        yield f"Whether a head is missed was not tested: {_untested(rows)}."
        return
    harmed = sorted((row for row in rows if _sure(row) and row["difference"] * sign < 0), key=lambda row: row["difference"] * sign)
    helped = [row for row in rows if _sure(row) and row["difference"] * sign > 0]
    listed = ", ".join(f"{_head(row)} ({row['difference']:+.3g})" for row in harmed[:LISTED])
    told = f": {listed}" if harmed else ""
    more = f" and {len(harmed) - LISTED} more" if len(harmed) > LISTED else ""
    yield f"{len(harmed)} of {len(rows)} heads are missed when they alone are switched off (p < {SURE}, {score}){told}{more}."
    corrected = sum(row["p_holm"] < 0.05 for row in rows)
    others = "one other head" if len(helped) == 1 else f"{len(helped)} other heads"
    yield (
        f"Without {others} the model is better. Corrected for looking at {len(rows)} heads (Holm, p < .05), {corrected} make a difference."
    )


def _single(tables: Mapping[str, Table], score: str, sign: int) -> Iterator[str]:
    rows = list(tables["ablation_all_but_one"].where(selection="held-out"))
    if all(math.isnan(row["p"]) for row in rows):
        yield f"Whether a layer could do with a single head was not tested: {_untested(rows)}."
        return
    hurt = [row for row in rows if _sure(row) and row["difference"] * sign < 0]
    named = ", ".join(f"{row['kind']} layer {row['layer']}" for row in hurt)
    enough = f"{len(rows) - len(hurt)} of {len(rows)} layers could do with a single head, chosen on other documents (p < {SURE})"
    yield f"{enough}; not so {named}." if hurt else f"{enough}."


def _foretold(tables: Mapping[str, Table], score: str, sign: int) -> Iterator[str]:
    for row in tables["importance_foretells"].where(method="spearman"):
        kind = "" if row["kind"] == "encoder" else f" ({row['kind']})"
        yield f"Importance from gradients foretells what is lost without a head by a rank correlation of {row['value']:.2f}{kind}."


def _prunable(tables: Mapping[str, Table], score: str, sign: int) -> Iterator[str]:
    rows = {row["order"]: row for row in tables["prunable"]}
    chance = [row["share"] for name, row in rows.items() if name.startswith("random")]
    told = [
        f"{rows[name]['share']:.0%} by {what}" for name, what in (("importance", "importance"), ("drop", "measured loss")) if name in rows
    ]
    if chance:
        told.append(f"{sum(chance) / len(chance):.0%} in an order of chance")
    tolerance = next(iter(rows.values()))["tolerance"]
    yield f"Heads that can go together before {score} is worse by {tolerance:.0%} of itself: {', '.join(told)}."


def _untested(rows: Sequence[Mapping[str, Any]]) -> str:
    documents = rows[0].get("documents") if rows else None
    return "there are no p values" if documents is None or documents >= FEWEST else reason(documents)


def _sure(row: Mapping[str, Any]) -> bool:
    return bool(row["p"] < SURE)


def _head(row: Mapping[str, Any]) -> str:
    return str(HeadId(row["kind"], row["layer"] - 1, row["head"] - 1))
