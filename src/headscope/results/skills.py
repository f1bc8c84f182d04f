"""What each head is best at, from the tables of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headscope.core.heads import HeadId, HeadLayout
from headscope.measures import Measure
from headscope.measures.contests import ALL
from headscope.measures.tokens import FLOWS
from headscope.results.table import Table

SURFACE = ("positions", "tokens")  # count as one skill of a head; entropy does not belong here, since it is not a share


def is_significant(row: Mapping[str, Any]) -> bool:
    """Whether the best head of a label is significantly above its baseline; False without an interval."""
    return bool(row["lift"] > 0 and row["lift_low"] > 0)


@dataclass(frozen=True)
class Skill:
    """What a head, by its number on the head axis, is best at within one measure, or within the surface measures."""

    head: int
    measure: str
    quantity: str
    label: str  # the relation or kind of mention; else the quantity
    contest: bool
    lift: float
    examples: int  # number of example texts to show


def opening_kinds(table: Table, quantity: str) -> set[str]:
    """The kinds of attention in which `to_first` repeats `to_cls`, since texts begin with a special token; none for
    other quantities.
    """
    return {row["kind"] for row in table.where(quantity="to_cls") if row["n"]} if quantity == "to_first" else set()


def skilled(measure: Measure, tables: Mapping[str, Table]) -> bool:
    """Whether a measure shows skills of heads: surface measures, sequences, retrieval, and contests, with labels."""
    return measure.name in (*SURFACE, "sequences", "retrieval") or "label" in tables[measure.name].columns


def skills(measures: Sequence[Measure], tables: Mapping[str, Table], layout: HeadLayout) -> list[Skill]:
    """The skills of all heads: each head's two best get two examples, others one."""
    number = {id: place for place, id in enumerate(layout.ids())}
    best: dict[tuple[str, int], Skill] = {}
    for measure in measures:
        if skilled(measure, tables):
            for skill in _lifts(measure.name, tables[measure.name], number):
                key = ("surface" if measure.name in SURFACE else measure.name, skill.head)
                if key not in best or skill.lift > best[key].lift:
                    best[key] = skill
    ranked: dict[int, int] = {}
    chosen = []
    for skill in sorted(best.values(), key=lambda candidate: (-candidate.lift, candidate.head)):
        ranked[skill.head] = rank = ranked.get(skill.head, 0) + 1
        chosen.append(Skill(**{**vars(skill), "examples": 2 if rank <= 2 else 1}))
    return chosen


def _lifts(measure: str, table: Table, number: Mapping[HeadId, int]) -> list[Skill]:
    """Everything that heads of a table do better than the baseline, without flows, which are parts of `to_sep`;
    `to_first` where it repeats `to_cls`; scores of names, which are parts of other scores; and scores of shuffled
    texts.
    """
    left_out = {quantity for quantity in table["quantity"] if quantity.endswith("_shuffled") or quantity.startswith("name_")}
    opening = opening_kinds(table, "to_first")
    contest = "label" in table.columns
    names = zip(table["kind"], table["layer"], table["head"], table["quantity"], table["label" if contest else "quantity"], strict=True)
    # Rounded, so that the order does not depend on the last bits of a sum, which depend on the size of batches.
    lifts = np.round(np.array(table["value"]) - np.array(table["baseline"]), 6)
    return [
        Skill(number[HeadId(kind, layer - 1, head - 1)], measure, quantity, label, contest, float(lift), 0)
        for (kind, layer, head, quantity, label), lift in zip(names, lifts, strict=True)
        if lift > 0
        and quantity not in FLOWS
        and quantity not in left_out
        and not (quantity == "to_first" and kind in opening)
        and not (contest and label == ALL)
    ]
