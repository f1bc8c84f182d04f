"""A study of ablation in one table, beside what Michel et al. published."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from headscope.results.table import Table
from headscope.stats.scores import Score

if TYPE_CHECKING:
    from headscope.results.results import Results

SURE = 0.01  # as in the paper's Table 1
LOWER = ("loss", "perplexity")  # scores of which less is better
_RANGES = {  # by the first word of a score's name; a score of the user's own can be anything
    **dict.fromkeys(("accuracy", "masked", "f1", "keyphrase"), (0.0, 1.0)),
    **{"matthews": (-1.0, 1.0), "bleu": (0.0, 100.0), "chrf": (0.0, 100.0), "loss": (0.0, inf), "perplexity": (1.0, inf)},
}
COLUMNS = ("what", "kind", "value", "n", "documents", "published")


def within(score: str) -> tuple[float, float]:
    """The lowest and the highest value that a score can have."""
    return _RANGES.get(score.partition("_")[0], (-inf, inf))


def base_score(results: Results) -> float:
    """The score of the model with all of its heads."""
    return float(results["summary"]["value"][0])


def summary(tables: Mapping[str, Table], score: Score, base: float, n: int, documents: int, losing: bool = True) -> Table:
    """How many heads matter, how layers do with a single head, what importance foretells, and how many heads can go.

    Of a model that has nothing to lose (`losing` is false) only the score has a value.
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
    for row in tables.get("importance_foretells", ()):
        rows.append((f"importance and loss without the head, {row['method']}", row["kind"], row["value"], int(row["n"]), None, None))
    for row in tables.get("prunable", ()):
        said = "20% (translation), 40% (BERT)" if row["order"] == "importance" else None
        rows.append((f"share of heads that can go, by {row['order']}", "", row["share"], n, documents, said))
    if not losing:
        rows = [rows[0], *((what, kind, math.nan, n, documents, said) for what, kind, _, n, documents, said in rows[1:])]
    return Table.of({name: [row[place] for row in rows] for place, name in enumerate(COLUMNS)})


def _count(sure: Sequence[Mapping[str, Any]], rows: Sequence[Mapping[str, Any]]) -> float:
    """How many rows are sure; NaN where nothing was tested."""
    return len(sure) if any(not math.isnan(row["p"]) for row in rows) else math.nan
