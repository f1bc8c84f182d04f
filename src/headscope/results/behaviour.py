"""What heads do, read off the tables of a run (Clark et al. §6, Figure 6), and what each is best at."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from headscope.core.heads import HeadId, HeadLayout
from headscope.measures import Measure
from headscope.measures.contests import ALL
from headscope.measures.entropy import BASES
from headscope.measures.tokens import FLOWS
from headscope.results.table import Table

# The released notebook's threshold for a broad head is 3.8 nats, in texts of 128 tokens: as a share of even attention's
# entropy it fits any length.
BROAD = 3.8 / math.log(128)
HALF = 0.5  # of a head's attention: from there on it does little else. Wherever heads are counted by a habit, this is the threshold
CONTESTS = {"relations_best": "", "coreference_best": "coreference", "pronouns_best": "pronouns"}
Labels = tuple[str, ...]
SURFACE = ("positions", "tokens")  # one skill of a head, not two; attention is a share here, which entropy is not


@dataclass(frozen=True)
class Thresholds:
    """Thresholds of labels: shares of a head's attention, and the entropy of a broad head as a share or in nats."""

    next: float = HALF
    previous: float = HALF
    broad: float = BROAD
    cls: float = HALF
    sep: float = HALF
    punct: float = HALF
    entropy: Literal["share", "nats"] = "share"


RECOMMENDED = Thresholds()
REFERENCE = Thresholds(broad=3.8, cls=0.6, sep=0.6, punct=0.6, entropy="nats")  # as released, for texts of about 128 tokens


def surely(row: Mapping[str, Any]) -> bool:
    """Whether the best head of a label is surely above its baseline; without an interval nothing is sure."""
    return bool(row["lift"] > 0 and row["lift_low"] > 0)


def behaviours(
    tables: Mapping[str, Table], layout: HeadLayout, thresholds: Thresholds = RECOMMENDED, base: Literal["nats", "bits"] = "nats"
) -> list[Labels]:
    """All labels of each head, on the run's head axis; the first says most, and `shown` gives it.

    First what takes most of its attention (next, previous, [CLS], [SEP], punctuation), the largest share first: a
    head that gives 80 % to the next token looks at the next token, whatever relation that suits. Then what it is the
    run's best head for, and surely better than a simple rule, the largest lift first. Then broad. `base` is that of
    the run's entropies.
    """
    labels_of: dict[HeadId, list[tuple[int, float, str]]] = {head: [] for head in layout.ids()}  # rank, size and name of each label
    for measure, quantity, label, least in (
        ("positions", "next", "next", thresholds.next),
        ("positions", "previous", "previous", thresholds.previous),
        ("tokens", "to_cls", "[CLS]", thresholds.cls),
        ("tokens", "to_sep", "[SEP]", thresholds.sep),
        ("tokens", "to_punct", "punctuation", thresholds.punct),
    ):
        for head, value, _ in _rows(tables, measure, quantity):
            if value > least:
                labels_of[head].append((0, value, label))
    for lift, head, label in _best(tables, layout):
        labels_of[head].append((1, lift, label))
    for head, value, baseline in _rows(tables, "entropy", "entropy"):
        scale = baseline if thresholds.entropy == "share" else 1 / BASES[base]
        if scale > 0 and value > thresholds.broad * scale:  # of one visible token even attention has an entropy of 0
            labels_of[head].append((2, value, "broad"))
    # Of coreference a head may be the best for several kinds of mentions: the label counts once.
    ranked = (sorted(labels, key=lambda label: (label[0], -label[1])) for labels in labels_of.values())
    return [tuple(dict.fromkeys(name for _, _, name in labels)) for labels in ranked]


def shown(labels: Labels) -> str:
    """The one label that a picture shows; "" for none."""
    return labels[0] if labels else ""


def _best(tables: Mapping[str, Table], layout: HeadLayout) -> list[tuple[float, HeadId, str]]:
    """The lift, the head and the label of whatever the run has a best head for."""
    first = layout.sites[0].kind
    return [
        (row["lift"], HeadId.parse(name, row.get("kind", first)), CONTESTS[contest] or row["label"])
        for contest in filter(tables.__contains__, CONTESTS)
        for row in tables[contest]
        if row["label"] != ALL and surely(row)
        for name in filter(None, row["heads"].split(" | "))
    ]


def _rows(tables: Mapping[str, Table], name: str, quantity: str) -> list[tuple[HeadId, float, float]]:
    """Each head with a value and its baseline."""
    if name not in tables:
        return []
    rows = tables[name].where(quantity=quantity)
    columns = (rows[column] for column in ("kind", "layer", "head", "value", "baseline"))
    return [(HeadId(kind, layer - 1, head - 1), *rest) for kind, layer, head, *rest in zip(*columns, strict=True)]


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


def is_opening(table: Table, quantity: str) -> bool:
    """Whether a quantity is `to_first` of texts that begin with a special token: `to_cls` says it."""
    return quantity == "to_first" and any(table.where(quantity="to_cls")["n"])


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
    left_out = {
        quantity
        for quantity in table["quantity"]
        if is_opening(table, quantity) or quantity.endswith("_shuffled") or quantity.startswith("name_")
    }
    contest = "label" in table.columns
    names = zip(table["kind"], table["layer"], table["head"], table["quantity"], table["label" if contest else "quantity"], strict=True)
    # Rounded, so that the last bits of a sum, which depend on the size of batches, decide nothing.
    lifts = np.round(np.array(table["value"]) - np.array(table["baseline"]), 6)
    return [
        Skill(number[HeadId(kind, layer - 1, head - 1)], measure, quantity, label, contest, float(lift), 0)
        for (kind, layer, head, quantity, label), lift in zip(names, lifts, strict=True)
        if lift > 0 and quantity not in FLOWS and quantity not in left_out and not (contest and label == ALL)
    ]
