"""Similar heads, in the format of the views (frontend/src/types.ts, HeadMap and HeadTree)."""

from __future__ import annotations

from typing import Any

import numpy as np

from headscope.comparison.alike import PAIRS, Alike, alike, unit
from headscope.figures.alike import cut_height
from headscope.results.gallery import NEAREST
from headscope.results.results import Results
from headscope.stats.clusters import Grouping
from headscope.views.page import rounded

LEAVES = 1024  # most heads of a tree that is drawn


def measured(results: Results) -> bool:
    """Whether a run has distances between heads."""
    return PAIRS in results and len(results[PAIRS]) > 0


def alike_data(results: Results) -> dict[str, Any]:
    """The `map` and the `tree` of a run that measured distances; of another run only that it has no tree."""
    if not measured(results):
        return {"tree": None}
    likeness = alike(results)
    place = {head: number for number, head in enumerate(results.layout.ids())}
    places = [place[head] for head in likeness.heads]
    return {"map": _map(results, likeness, places, len(place)), "tree": _tree(results, likeness, places)}


def _map(results: Results, likeness: Alike, places: list[int], size: int) -> dict[str, Any]:
    points, stress = likeness.embed()
    data: dict[str, Any] = {
        "x": [None] * size,
        "y": [None] * size,
        "behaviour": [""] * size,
        "labels": [""] * size,
        "neighbours": [[] for _ in range(size)],
        "stress": rounded(stress),
        "about": about(results, likeness.n),
    }
    for number, (at, head) in enumerate(zip(places, likeness.heads, strict=True)):
        data["x"][at], data["y"][at] = map(rounded, points[number].tolist())
        data["behaviour"][at] = results.spelled(likeness.labels[number])
        data["labels"][at] = results.spelled(", ".join(likeness.behaviours[number]))
        near = likeness.neighbours(head, NEAREST)
        data["neighbours"][at] = [[places[likeness.place(other)], rounded(distance)] for other, distance in near]
    return data


def about(results: Results, rows: int) -> str:
    """A description of the distances of a run, with the number of rows."""
    kept = " sampled from" if results.measures["distances"].get("sample") else " of"
    mean = "mean" if unit(results) == "nats" else "sum of"
    return f"{mean} Jensen–Shannon divergence in nats over {rows:,} rows of attention{kept} the whole corpus"


def _tree(results: Results, likeness: Alike, places: list[int]) -> dict[str, Any] | None:
    """The tree by numbers of clusters: the first ones are leaves, from top to bottom, then one per merge."""
    if len(places) > LEAVES:
        return None
    grouping = likeness.groups()
    tree = grouping.tree
    row = {leaf: number for number, leaf in enumerate(tree.leaves)}
    return {
        "heads": [places[leaf] for leaf in tree.leaves],
        "groups": [int(grouping.groups[leaf]) + 1 for leaf in tree.leaves],
        "merges": [[row.get(int(a), int(a)), row.get(int(b), int(b)), rounded(height)] for a, b, height, _ in tree.merges.tolist()],
        "cut": rounded(cut_height(grouping)),
        "silhouette": rounded(float(grouping.silhouettes.mean())),
        "about": f"{about(results, likeness.n)}; average linkage{_sizes(grouping)}",
    }


def _sizes(grouping: Grouping) -> str:
    """How many heads each group has; "" for one group."""
    return "" if grouping.number == 1 else f", cut into groups of {', '.join(map(str, np.bincount(grouping.groups)))} heads"
