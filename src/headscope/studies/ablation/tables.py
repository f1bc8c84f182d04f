"""Tables of a study of ablation, from the numbers of every example and system."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.core.heads import HeadId, HeadLayout
from headscope.results.columns import StateColumns
from headscope.results.table import Table, columns_of
from headscope.stats.bootstrap import group_of
from headscope.stats.choices import Test
from headscope.stats.contrast import Contrast, contrast, replicated_differences
from headscope.stats.scores import Mean, Score, make_score
from headscope.stats.significance import benjamini_hochberg, holm
from headscope.studies.replicates import replicate_maker

if TYPE_CHECKING:
    from jaxtyping import Float64, Int64

    from headscope.results.results import Results
    from headscope.studies.ablation.answers import Cut
    from headscope.studies.replicates import ReplicatedTables

    Statistics = Callable[[Float64[np.ndarray, "*system example k"]], tuple[Score, Float64[np.ndarray, "*system example s"]]]

SINGLE = ("heads", "all_but_one", "layers")  # parts whose systems change one site each
NUMBERS = ("score", "difference", "low", "high", "p", "p_holm", "p_bh", "n", "documents", "test")
FOLDS = 2


@dataclass(frozen=True)
class Systems:
    """The systems of a study that change one site each: part by part, and in each part site by site."""

    layout: HeadLayout
    parts: tuple[str, ...]

    def cuts(self) -> list[Cut]:
        """The gates of every system."""
        return [cut for part in SINGLE if part in self.parts for cut in self._of(part)]

    def _of(self, part: str) -> list[Cut]:
        made: list[Cut] = []
        for number, site in enumerate(self.layout.sites):
            rows = {"heads": 1 - np.eye(site.heads), "all_but_one": np.eye(site.heads), "layers": np.zeros((1, site.heads))}[part]
            made += [{number: row} for row in rows]
        return made

    def places(self, part: str) -> slice:
        """The places of a part's systems among all systems: one per head, or for layers one per site."""
        start = sum(len(self._of(name)) for name in SINGLE[: SINGLE.index(part)] if name in self.parts)
        return slice(start, start + (len(self._of(part)) if part in self.parts else 0))


def removal(layout: HeadLayout, removed: Sequence[int]) -> Cut:
    """The gates of one system without the heads `removed`, which are places on the flat head axis."""
    flat = np.ones(layout.size)
    flat[list(removed)] = 0
    gates = {number: flat[layout.slice(number)] for number in range(len(layout.sites))}
    return {number: gate for number, gate in gates.items() if not gate.all()}


@dataclass(frozen=True)
class Scores:
    """The numbers of the whole model and of all systems, how they are scored, and the document of each example."""

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
        """The contrast of systems with the whole model, over all examples or some."""
        chosen = np.arange(len(self.documents)) if some is None else np.flatnonzero(some)
        score, base = self.statistics(self.base[chosen])
        _, systems = self.statistics(table[:, chosen])
        names = [self.documents[int(place)] for place in chosen]
        return contrast(score, base, systems, names, self.test, self.replicates, self.seed)

    def of(self, part: str) -> Float64[np.ndarray, "system example k"]:
        """The numbers of a part's systems."""
        return self.table[self.systems.places(part)]

    def harm(self, part: str, some: np.ndarray) -> Float64[np.ndarray, "system"]:
        """How much worse each system of a part is, over some examples: above 0 is worse for every score."""
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
    """`ablation_all_but_one`: each layer with a single head left, two rows per layer. The head is the best one on all
    examples (in-sample, with selection bias), or the best one on the other half of the documents (held-out).
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
    """The columns that compare systems with the whole model; a bootstrap p of 0 means below its resolution."""
    size = len(contrast.score)
    p = contrast.p
    values = (contrast.score, contrast.difference, contrast.low, contrast.high, p, holm(p), benjamini_hochberg(p))
    columns = {name: column.tolist() for name, column in zip(NUMBERS, values, strict=False)}
    return {**columns, "n": [contrast.n] * size, "documents": [contrast.units] * size, "test": [contrast.test] * size}


def replicates(results: Results) -> ReplicatedTables:
    """Replicates of the change of the score without a head or a layer, for scores that are means; {} for others."""
    settings, layout = results.manifest["settings"], results.layout
    name = settings["score"]
    if not settings["replicates"] or name not in ("loss", "perplexity", "accuracy", "masked_accuracy"):
        return {}
    score = make_score(name) if name in ("loss", "perplexity") else Mean(name)
    columns = [0 if name in ("loss", "perplexity") else 1, 2]  # of loss, right, count
    kept = StateColumns(results.state("single"))
    documents, base, table = kept.words("document"), kept.numbers("base")[:, columns], kept.numbers("systems").swapaxes(0, 1)
    replicated, systems = replicate_maker(documents, settings["seed"]), Systems(layout, tuple(settings["parts"]))
    keys: dict[str, tuple[str, Sequence[tuple[Any, ...]]]] = {
        "ablation": ("heads", [(head.kind, head.layer + 1, head.head + 1) for head in layout.ids()]),
        "ablation_layers": ("layers", [(site.kind, site.layer + 1) for site in layout.sites]),
    }
    tables: ReplicatedTables = {}
    for made, (part, places) in keys.items():
        if made in results:
            others = table[systems.places(part)][..., columns]
            drawn = replicated_differences(score, base, others, documents, settings["replicates"], settings["seed"])
            values = np.concatenate([(score.of(others) - score.of(base))[None], drawn])
            tables[made] = {place: replicated(values[:, number], score.sizes(base)) for number, place in enumerate(places)}
    return tables
