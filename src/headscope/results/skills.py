"""What each head is best at, read off the tables of a run."""

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

SURFACE = ("positions", "tokens")  # one skill of a head, not two; attention is a share here, which entropy is not


def surely(row: Mapping[str, Any]) -> bool:
    """Whether the best head of a label is surely above its baseline; without an interval nothing is sure."""
    return bool(row["lift"] > 0 and row["lift_low"] > 0)


@dataclass(frozen=True)
class Skill:
    """What a head, by its number on the head axis, is best at: of its measure, or of the surface measures."""

    head: int
    measure: str
    quantity: str
    label: str  # the relation or kind of mention; else the quantity
    contest: bool
    lift: float
    examples: int  # how many are worth showing


def opening_kinds(table: Table, quantity: str) -> set[str]:
    """The kinds of attention in which a quantity is `to_first` of texts that begin with a special token: `to_cls` says
    it.
    """
    return {row["kind"] for row in table.where(quantity="to_cls") if row["n"]} if quantity == "to_first" else set()


def skilled(measure: Measure, tables: Mapping[str, Table]) -> bool:
    """Whether a head can be good at what a measure measures: surface measures, sequences, retrieval, and contests,
    which have labels.
    """
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
    """All that heads of a table do better than its baseline. Flows are left out: they are parts of `to_sep`. So are
    `to_first` where it says what `to_cls` says, scores of names, which are few of the tokens of others, and scores of
    shuffled texts.
    """
    left_out = {quantity for quantity in table["quantity"] if quantity.endswith("_shuffled") or quantity.startswith("name_")}
    opening = opening_kinds(table, "to_first")
    contest = "label" in table.columns
    names = zip(table["kind"], table["layer"], table["head"], table["quantity"], table["label" if contest else "quantity"], strict=True)
    # Rounded, so that the last bits of a sum, which depend on the size of batches, decide nothing.
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
