"""Tables of a study of ablation, from the numbers of every example and system."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.core.heads import HeadId, HeadLayout
from headscope.results.table import Table, columns_of
from headscope.stats.bootstrap import group_of
from headscope.stats.choices import Test
from headscope.stats.contrast import Contrast, contrast
from headscope.stats.scores import Score
from headscope.stats.significance import benjamini_hochberg, holm
from headscope.studies.ablation.systems import Systems

if TYPE_CHECKING:
    from jaxtyping import Float64, Int64

    Statistics = Callable[[Float64[np.ndarray, "*system example k"]], tuple[Score, Float64[np.ndarray, "*system example s"]]]

NUMBERS = ("score", "difference", "low", "high", "p", "p_holm", "p_bh", "n", "documents", "test")
FOLDS = 2


@dataclass(frozen=True)
class Scores:
    """The numbers of the model as it is and of all systems, how they are scored, and which document each example is
    of.
    """

    systems: Systems
    base: Float64[np.ndarray, "example k"]
    table: Float64[np.ndarray, "system example k"]
    documents: Sequence[str]
    statistics: Statistics
    test: Test | None = None
    replicates: int = 1000
    seed: int = 0

    @property
    def layout(self) -> HeadLayout:
        """The heads of the model."""
        return self.systems.layout

    @cached_property
    def fold(self) -> Int64[np.ndarray, "example"]:
        """The half of the documents that an example belongs to, by its document's name alone."""
        return np.array([group_of(name, FOLDS) for name in self.documents], dtype=np.int64)

    def contrasted(self, table: Float64[np.ndarray, "system example k"], some: np.ndarray | None = None) -> Contrast:
        """Systems against the model as it is, over all examples or some."""
        chosen = np.arange(len(self.documents)) if some is None else np.flatnonzero(some)
        score, base = self.statistics(self.base[chosen])
        _, systems = self.statistics(table[:, chosen])
        names = [self.documents[int(place)] for place in chosen]
        return contrast(score, base, systems, names, self.test, self.replicates, self.seed)

    def of(self, part: str) -> Float64[np.ndarray, "system example k"]:
        """The numbers of a part's systems."""
        return self.table[self.systems.places(part)]

    def harm(self, part: str, some: np.ndarray) -> Float64[np.ndarray, "system"]:
        """How much worse each system of a part is, over some examples: above 0 is worse whatever is scored."""
        score, base = self.statistics(self.base[some])
        _, systems = self.statistics(self.of(part)[:, some])
        harm: Float64[np.ndarray, "system"] = (score.of(base) - score.of(systems)) * (1 if score.better == "higher" else -1)
        return harm


def head_table(scores: Scores) -> Table:
    """`ablation`: each head switched off, one row per head."""
    return _table([_named(head) for head in scores.layout.ids()], scores.contrasted(scores.of("heads")))


def layer_table(scores: Scores) -> Table:
    """`ablation_layers`: all heads of a layer switched off, one row per layer."""
    names = [{"kind": site.kind, "layer": site.layer + 1} for site in scores.layout.sites]
    return _table(names, scores.contrasted(scores.of("layers")))


def only_table(scores: Scores) -> Table:
    """`ablation_all_but_one`: each layer with a single head left: the best one by all examples, and the best one by
    the other half of the documents, scored on this half. A best of many that is scored on what it was chosen by
    flatters.
    """
    everything = scores.of("all_but_one")
    whole = np.ones(len(scores.documents), dtype=bool)
    seen, held, names = [], [], []
    for number, site in enumerate(scores.layout.sites):
        layer = slice(scores.layout.slice(number).start, scores.layout.slice(number).stop)
        best = int(scores.harm("all_but_one", whole)[layer].argmin())
        chosen = [
            int(scores.harm("all_but_one", scores.fold != fold)[layer].argmin()) if (scores.fold != fold).any() else best
            for fold in range(FOLDS)
        ]
        rows = everything[layer]
        seen.append(rows[best])
        held.append(np.where((scores.fold == 0)[:, None], rows[chosen[0]], rows[chosen[1]]))
        heads = dict.fromkeys(head + 1 for head in chosen)
        names.append({"kind": site.kind, "layer": site.layer + 1, "best": best + 1, "chosen": " ".join(map(str, heads))})
    first, second = scores.contrasted(np.stack(seen)), scores.contrasted(np.stack(held))
    both = {name: [*values, *others] for (name, values), others in zip(numbers(first).items(), numbers(second).values(), strict=True)}
    named = [{**name, "selection": how} for how in ("in-sample", "held-out") for name in names]
    return Table.of(columns_of(named) | both)


def _named(head: HeadId) -> dict[str, Any]:
    return {"kind": head.kind, "layer": head.layer + 1, "head": head.head + 1}


def _table(names: Sequence[Mapping[str, Any]], contrast: Contrast) -> Table:
    return Table.of(columns_of(names) | numbers(contrast))


def numbers(contrast: Contrast) -> dict[str, list[Any]]:
    """The columns that compare systems with the model as it is. A p of 0 by the bootstrap is no smaller than it
    could have found.
    """
    size = len(contrast.score)
    p = contrast.p
    values = (contrast.score, contrast.difference, contrast.low, contrast.high, p, holm(p), benjamini_hochberg(p))
    columns = {name: column.tolist() for name, column in zip(NUMBERS, values, strict=False)}
    return {**columns, "n": [contrast.n] * size, "documents": [contrast.units] * size, "test": [contrast.test] * size}
