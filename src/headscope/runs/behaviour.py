"""One word for what a head does, read off the tables of a run (Clark et al. §6, Figure 6)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from headscope.core.heads import HeadId, HeadLayout
from headscope.measures.contests import ALL
from headscope.runs.table import Table

# The released notebook's thresholds on mean attention; a share of all attention.
SHARES = {
    ("positions", "next"): ("next", 0.5),
    ("positions", "previous"): ("previous", 0.5),
    ("tokens", "to_cls"): ("[CLS]", 0.6),
    ("tokens", "to_sep"): ("[SEP]", 0.6),
    ("tokens", "to_punct"): ("punctuation", 0.6),
}
# Its threshold for a broad head is 3.8 nats, in texts of 128 tokens: as a share of even attention's entropy it fits any length.
BROAD = 3.8 / math.log(128)
CONTESTS = {"relations_best": "", "coreference_best": "coreference", "pronouns_best": "pronouns"}


def surely(row: Mapping[str, Any]) -> bool:
    """Whether the best head of a label is surely above its baseline; without intervals, where the bound is NaN, nothing is sure."""
    return bool(row["lift"] > 0 and row["lift_low"] > 0)


def behaviours(tables: Mapping[str, Table], layout: HeadLayout) -> list[str]:
    """A label a head, "" for none. The best head of a relation, or of coreference, is called by it (by the one with the largest lift);
    others by where most of their attention goes, if it is enough; others are broad, if they are.
    """
    found: dict[HeadId, tuple[int, float, str]] = {}  # the last kind of label wins, and in it the largest number

    def claim(head: HeadId, rank: int, strength: float, label: str) -> None:
        found[head] = max(found.get(head, (0, 0.0, "")), (rank, strength, label))

    for head, quantity, value, baseline in _rows(tables, "entropy"):
        if quantity == "entropy" and value > BROAD * baseline > 0:
            claim(head, 1, value, "broad")
    for measure in ("positions", "tokens"):
        for head, quantity, value, _ in _rows(tables, measure):
            label, least = SHARES.get((measure, quantity), ("", math.inf))
            if value > least:
                claim(head, 2, value, label)
    for name in filter(tables.__contains__, CONTESTS):
        for row in tables[name]:
            if row["label"] != ALL and surely(row):
                for head in filter(None, row["heads"].split(" | ")):
                    claim(HeadId.parse(head), 3, row["lift"], CONTESTS[name] or row["label"])
    return [found.get(head, (0, 0.0, ""))[2] for head in layout.ids()]


def _rows(tables: Mapping[str, Table], name: str) -> list[tuple[HeadId, str, float, float]]:
    if name not in tables:
        return []
    columns = (tables[name][column] for column in ("kind", "layer", "head", "quantity", "value", "baseline"))
    return [(HeadId(kind, layer - 1, head - 1), *rest) for kind, layer, head, *rest in zip(*columns, strict=True)]
