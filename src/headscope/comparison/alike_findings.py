"""What a run says about heads that are alike, in sentences: layers, near twins, the closest pairs, groups and what
they do.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headscope.comparison.alike import PAIRS, Alike
from headscope.results.results import Results
from headscope.results.table import Table, p_value, spelled
from headscope.stats.clusters import MOST, smallest

if TYPE_CHECKING:
    from headscope.stats.clusters import Grouping

STRUCTURE = "distances_structure"
SURE = 0.05  # of the permutation test
_REDUNDANT = "redundant_"


def unit(results: Results) -> str:
    """What the distances of a run are counted in."""
    return "nats" if results.measures.get("distances", {}).get("normalise", True) else "nats, summed over rows"


def layers_sentence(results: Results, kind: str) -> str:
    """Whether heads of one layer are closer to each other, with the test; "" for a model of one layer, or of one
    head a layer.
    """
    found = {row["quantity"]: row for row in results[STRUCTURE].where(kind=kind)}
    if not {"within_layers", "between_layers", "difference"} <= set(found):
        return ""
    row = found["difference"]
    if row["p"] < SURE:
        said = "Heads of one layer are closer to each other than to heads of other layers"
    elif row["value"] > 0:
        said = (
            "Heads of one layer are a little closer to each other than to heads of other layers, though no more than chance would make them"
        )
    else:
        said = "Heads of one layer are no closer to each other than to heads of other layers"
    return (
        f"{said}: the mean distance is {spelled(found['within_layers'])} {unit(results)} within layers and "
        f"{spelled(found['between_layers'])} between them, a difference of {spelled(row)} (p {p_value(row['p'])}, permutation test)."
    )


def twins_sentence(results: Results, kind: str) -> str:
    """How many heads have another one that is closer than each of the run's epsilons."""
    rows = [row for row in results[STRUCTURE].where(kind=kind) if row["quantity"].startswith(_REDUNDANT)]
    if not rows:
        return ""
    told = ", ".join(f"{_count(row)} closer than {row['quantity'].removeprefix(_REDUNDANT)}" for row in rows)
    heads = len(results["distances"].where(kind=kind, quantity="nearest"))
    return f"Near twins: of {heads} heads, these have another one so close: {told} nats{'' if unit(results) == 'nats' else ' a row'}."


def pairs_sentence(results: Results, kind: str, count: int = 5) -> str:
    """The pairs of heads that attend most alike."""
    told = [f"{row['a']} and {row['b']} ({spelled(row)})" for row in closest(results, kind, count)]
    return f"Most alike are {', '.join(told)}."


def closest(results: Results, kind: str, count: int) -> Table:
    """The closest pairs of heads, the closest first."""
    return results[PAIRS].where(kind=kind).sort("value").head(count)


def groups_sentence(found: Alike, grouping: Grouping) -> str:
    """How many groups the heads fall into, and what those do."""
    if grouping.number == 1:
        return (
            f"The heads fall into no groups: no cut of the tree into 2 to {MOST} has two or more groups of at least "
            f"{smallest(len(found.heads))} heads that hold nine tenths of all heads, each closer to its own group than to the next."
        )
    told = [
        f"{row['heads']} heads ({row['behaviours']})" if row["heads"] > 1 else f"{row['members']} alone"
        for row in group_table(found, grouping)
    ]
    shown = told if len(told) <= 6 else [*told[:5], f"{len(told) - 5} smaller groups"]
    return f"The heads fall into {grouping.about}: {'; '.join(shown)}."


def group_table(found: Alike, grouping: Grouping) -> Table:
    """A row a group, the largest first: how many heads, the mean of their silhouettes, what they do, and who they
    are.
    """
    rows: list[dict[str, Any]] = []
    for group in range(grouping.number):
        places = [place for place, of in enumerate(grouping.groups.tolist()) if of == group]
        rows.append(
            {
                "group": group + 1,
                "heads": len(places),
                "silhouette": float(grouping.silhouettes[places].mean()),
                "behaviours": doing([found.labels[place] for place in places]),
                "members": " ".join(str(found.heads[place]) for place in places),
            }
        )
    return Table.from_rows(rows, metadata={"signature": found.signature})


def doing(labels: list[str]) -> str:
    """What heads do, the most frequent first: `4 previous, 1 aux, 3 other`."""
    counts = Counter(filter(None, labels))
    told = [f"{number} {label}" for label, number in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    none = len(labels) - sum(counts.values())
    return ", ".join([*told, *([f"{none} other"] if none else [])])


def _count(row: Mapping[str, Any]) -> str:
    """`67 [66 72]`: heads are counted, so that bounds are whole."""
    bounds = "" if math.isnan(row["low"]) else f" [{math.floor(row['low'])} {math.ceil(row['high'])}]"
    return f"{round(row['value'])}{bounds}"
