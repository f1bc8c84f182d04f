"""Which heads of a run are similar: the distances between them, their groups and their points (Clark et al. §6).

Distances are mean Jensen-Shannon divergences in nats; their square roots, which `sqrt` takes, are a metric.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from headscope.core.heads import HeadId, Kind
from headscope.errors import RunError
from headscope.results.head_labels import picture_words
from headscope.results.results import Results
from headscope.results.table import Table, p_value, spelled
from headscope.stats.clusters import MOST, Grouping, Linkage, group, smallest
from headscope.stats.embedding import Embedding, Method, embed

if TYPE_CHECKING:
    from jaxtyping import Float64

PAIRS = "distances_pairs"
STRUCTURE = "distances_structure"
SURE = 0.05  # of the permutation test
_REDUNDANT = "redundant_"


class Redundant(NamedTuple):
    """The heads that have another head closer than `epsilon`, and the sets of heads that are linked in this way."""

    epsilon: float
    heads: tuple[HeadId, ...]
    sets: tuple[tuple[HeadId, ...], ...]


@dataclass(frozen=True)
class Alike:
    """The heads of one kind, in the order of the head axis, their distances, and the labels of each."""

    kind: Kind
    heads: tuple[HeadId, ...]
    distances: Float64[np.ndarray, "head head"]
    n: int  # rows of attention over which distances are means
    behaviours: tuple[tuple[str, ...], ...]  # the most specific first
    signature: str

    @property
    def labels(self) -> tuple[str, ...]:
        """One label per head, "" for none."""
        return tuple(next(iter(labels), "") for labels in self.behaviours)

    def embed(self, method: Method = "metric", sqrt: bool = False, seed: int = 0) -> Embedding:
        """The heads as points of a plane."""
        return embed(self.distances, method, sqrt=sqrt, seed=seed)

    def groups(self, number: int | None = None, linkage: Linkage = "average", sqrt: bool = False, most: int = MOST) -> Grouping:
        """The heads in `number` groups, or in the number from 2 to `most` with the highest mean silhouette."""
        if number is not None and not 1 <= number <= len(self.heads):
            raise RunError(f"{len(self.heads)} heads cannot be in {number} groups", f"Use 1 to {len(self.heads)} groups")
        return group(np.sqrt(self.distances) if sqrt else self.distances, number, linkage, most)

    def neighbours(self, head: HeadId | str, count: int = 5) -> list[tuple[HeadId, float]]:
        """The heads that are closest to a head, the closest first, with their distances."""
        place = self.place(head)
        order = [other for other in np.argsort(self.distances[place], kind="stable").tolist() if other != place]
        return [(self.heads[other], float(self.distances[place, other])) for other in order[:count]]

    def place(self, head: HeadId | str) -> int:
        """The place of a head among `heads`; a name without a kind is of this kind."""
        try:
            wanted = HeadId.parse(head, self.kind) if isinstance(head, str) else head
        except ValueError as error:
            raise RunError(str(error)) from None
        if wanted not in self.heads:
            raise RunError(f"the run has no distances of head {wanted}", f"It has those of {self.heads[0]} to {self.heads[-1]}")
        return self.heads.index(wanted)

    def redundant(self, epsilon: float) -> Redundant:
        """The heads that another head could replace, if heads that differ by less than `epsilon` count as the same."""
        from scipy.sparse.csgraph import connected_components

        close = (self.distances < epsilon) & ~np.eye(len(self.heads), dtype=bool)
        _, component = connected_components(close, directed=False)
        places = np.flatnonzero(close.sum(1)).tolist()
        members: dict[int, list[HeadId]] = {}
        for place in places:
            members.setdefault(int(component[place]), []).append(self.heads[place])
        sets = sorted(map(tuple, members.values()), key=len, reverse=True)  # equally large ones by their first head
        return Redundant(epsilon, tuple(self.heads[place] for place in places), tuple(sets))

    def table(
        self,
        method: Method = "metric",
        sqrt: bool = False,
        seed: int = 0,
        number: int | None = None,
        linkage: Linkage = "average",
        most: int = MOST,
    ) -> Table:
        """One row per head: its place in the picture, its group (counted from 1) and its silhouette, its nearest
        neighbour and the distance to it, the label in the picture and all labels.
        """
        points = self.embed(method, sqrt, seed).points
        grouping = self.groups(number, linkage, sqrt, most)
        others = self.distances + np.where(np.eye(len(self.heads), dtype=bool), np.inf, 0.0)
        columns: dict[str, Any] = {
            "kind": [head.kind for head in self.heads],
            "layer": [head.layer + 1 for head in self.heads],
            "head": [head.head + 1 for head in self.heads],
            "x": points[:, 0],
            "y": points[:, 1],
            "group": grouping.groups + 1,
            "silhouette": grouping.silhouettes,
            "neighbour": [str(self.heads[other]) for other in others.argmin(1).tolist()],
            "distance": others.min(1),
            "label": self.labels,
            "labels": [", ".join(labels) for labels in self.behaviours],
        }
        return Table.of(columns, {"signature": self.signature})


def alike(results: Results, kind: Kind | None = None) -> Alike:
    """The distances between a run's heads of one kind, by default the kind with the most heads."""
    if PAIRS not in results:
        raise RunError("the run has no distances", "Run again with --measures distances")
    table, layout = results[PAIRS], results.layout
    ids = layout.ids()
    of_kind = {known: [ids[place] for place in places] for known, places in layout.by_kind().items()}
    known = [name for name in of_kind if name in pc.unique(table.arrow["kind"]).to_pylist()]
    if not known:
        raise RunError("the run has no distances: its model does not have two heads of one kind", "Measure a model with more heads")
    if kind is not None and kind not in known:
        raise RunError(f"the run has no distances of {kind} attention", f"It has those of {', '.join(known)}")
    chosen: Kind = kind if kind is not None else max(known, key=lambda name: len(of_kind[name]))
    heads, pairs = of_kind[chosen], table.where(kind=chosen)
    distances = _square(heads, pairs)
    if np.isnan(distances).any():
        raise RunError("some distances between heads of the run are missing", "Run again on a corpus with longer texts")
    labels = dict(zip(ids, picture_words(results), strict=True))
    n = pc.max(pairs.arrow["n"]).as_py()
    return Alike(chosen, tuple(heads), distances, int(n), tuple(labels[head] for head in heads), results.signature)


def _square(heads: list[HeadId], pairs: Table) -> Float64[np.ndarray, "head head"]:
    """The distances of pairs as a symmetric matrix with a diagonal of 0; NaN for a missing pair."""
    names = pa.array([f"{head.layer + 1}-{head.head + 1}" for head in heads])
    places = (pc.replace_substring_regex(pairs.arrow[side], "^.*/", "") for side in ("a", "b"))  # all heads are of one kind
    a, b = (pc.index_in(place, value_set=names).to_numpy() for place in places)
    distances = np.full((len(heads), len(heads)), np.nan)
    distances[a, b] = distances[b, a] = pairs.arrow["value"].to_numpy()
    np.fill_diagonal(distances, 0)
    return distances


def unit(results: Results) -> str:
    """The unit of a run's distances."""
    return "nats" if results.measures.get("distances", {}).get("normalise", True) else "nats, summed over rows"


def layers_sentence(results: Results, kind: str) -> str:
    """Whether heads of one layer are closer to each other, with the test, as a sentence; "" if it cannot be tested."""
    rows = {row["quantity"]: row for row in results[STRUCTURE].where(kind=kind)}
    if not {"within_layers", "between_layers", "difference"} <= set(rows):
        return ""
    row = rows["difference"]
    if row["p"] < SURE:
        claim = "Heads of one layer are closer to each other than to heads of other layers"
    elif row["value"] > 0:
        claim = "Heads of one layer are not significantly closer to each other than to heads of other layers"
    else:
        claim = "Heads of one layer are no closer to each other than to heads of other layers"
    return (
        f"{claim}: the mean distance is {spelled(rows['within_layers'])} {unit(results)} within layers and "
        f"{spelled(rows['between_layers'])} between them, a difference of {spelled(row)} (p {p_value(row['p'])}, permutation test)."
    )


def twins_sentence(results: Results, kind: str) -> str:
    """How many heads have another head closer than each of the run's epsilons, as a sentence."""
    rows = [row for row in results[STRUCTURE].where(kind=kind) if row["quantity"].startswith(_REDUNDANT)]
    if not rows:
        return ""
    per = "" if unit(results) == "nats" else " per row"
    heads = len(results["distances"].where(kind=kind, quantity="nearest"))
    limits = [row["quantity"].removeprefix(_REDUNDANT) for row in rows]
    first = f"{_count(rows[0])} of {heads} heads have a near-duplicate (distance < {limits[0]} nats{per})"
    return f"{', '.join([first, *(f'{_count(row)} at distance < {limit}' for row, limit in zip(rows[1:], limits[1:], strict=True))])}."


def pairs_sentence(results: Results, kind: str, count: int = 5) -> str:
    """The most similar pairs of heads, as a sentence."""
    pairs = [f"{row['a']} and {row['b']} ({spelled(row)})" for row in closest(results, kind, count)]
    return f"The most similar pairs of heads are {', '.join(pairs)}."


def closest(results: Results, kind: str, count: int) -> Table:
    """The closest pairs of heads, the closest first."""
    return results[PAIRS].where(kind=kind).sort("value").head(count)


def groups_sentence(heads_alike: Alike, grouping: Grouping) -> str:
    """How many groups the heads form, and the behaviour of each group, as a sentence."""
    if grouping.number == 1:
        return (
            f"The heads fall into no groups: no cut of the tree into 2 to {MOST} groups has two or more of at least "
            f"{smallest(len(heads_alike.heads))} heads that contain nine tenths of all heads, each closer to its group than to the next."
        )
    groups = [
        f"{row['heads']} heads ({row['behaviours']})" if row["heads"] > 1 else f"{row['members']} alone"
        for row in group_table(heads_alike, grouping)
    ]
    shown = groups if len(groups) <= 6 else [*groups[:5], f"{len(groups) - 5} smaller groups"]
    return f"The heads fall into {grouping.about}: {'; '.join(shown)}."


def group_table(heads_alike: Alike, grouping: Grouping) -> Table:
    """One row per group, the largest first: its heads, the mean of their silhouettes, and their behaviour."""
    rows: list[dict[str, Any]] = []
    for number in range(grouping.number):
        places = [place for place, of in enumerate(grouping.groups.tolist()) if of == number]
        rows.append(
            {
                "group": number + 1,
                "heads": len(places),
                "silhouette": float(grouping.silhouettes[places].mean()),
                "behaviours": doing([heads_alike.labels[place] for place in places]),
                "members": " ".join(str(heads_alike.heads[place]) for place in places),
            }
        )
    return Table.from_rows(rows, metadata={"signature": heads_alike.signature})


def doing(labels: list[str]) -> str:
    """The behaviour of heads, the most frequent first: `4 previous, 1 aux, 3 other`."""
    counts = Counter(filter(None, labels))
    counted = [f"{number} {label}" for label, number in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    none = len(labels) - sum(counts.values())
    return ", ".join([*counted, *([f"{none} other"] if none else [])])


def _count(row: Mapping[str, Any]) -> str:
    """`67 [66 72]`: bounds are whole numbers, because heads are counted."""
    bounds = "" if math.isnan(row["low"]) else f" [{math.floor(row['low'])} {math.ceil(row['high'])}]"
    return f"{round(row['value'])}{bounds}"
