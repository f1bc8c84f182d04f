"""Whole trees from attention: the maximum spanning tree of every head, and of a sum of heads, compared with the
annotated tree.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from headscope.core.batch import MapBatch
from headscope.core.heads import HeadId, HeadLayout, find_head
from headscope.core.state import State
from headscope.core.trees import NONE, TAGS
from headscope.errors import MeasureError
from headscope.measures.base import Columns, Level
from headscope.measures.means import Average, HeadMeans, support_of
from headscope.measures.relations import is_punctuation
from headscope.measures.weights.words import WordIndex, trees_of
from headscope.stats.inference import Support, interval
from headscope.stats.spanning import arborescence, prim

if TYPE_CHECKING:
    import torch
    from jaxtyping import Bool, Float, Float64, Int

    from headscope.measures.means import Counts, Even, Sums

_TURNED = ":head-to-dep"


@dataclass(frozen=True)
class _Gold:
    """The words of a batch that are nodes of trees, and the annotated edges, as pairs of positions."""

    nodes: Bool[torch.Tensor, "batch position"]
    same: Float[torch.Tensor, "batch position position"]  # 1 between different nodes of one sentence
    text: Int[torch.Tensor, "edge"]
    dependent: Int[torch.Tensor, "edge"]
    governor: Int[torch.Tensor, "edge"]
    edges: Float64[np.ndarray, "batch"]  # number per text
    neighbours: Float64[np.ndarray, "batch"]  # number of these between neighbours, which a chain of words finds
    sentences: tuple[tuple[int, Int[np.ndarray, "node"], Int[np.ndarray, "node"]], ...]  # text, positions, governors by number or -1


@dataclass(frozen=True, kw_only=True)
class SpanningTrees(HeadMeans):
    """`uuas`: the share of annotated edges, ignoring their direction, that are in the maximum spanning tree of a head.

    A map is restricted to the words of a sentence, its rows are divided by their sums, and its transpose is added. With
    `heads`, such as `3-10` or `8-4:head-to-dep`, the maps of these heads are also summed and give one tree, scored with
    (`uas`) and without directions (`uuas`). `punct="exclude"` removes punctuation from sentences and trees.
    """

    name: ClassVar[str] = "trees"
    summary: ClassVar[str] = "the maximum spanning tree of every head's attention beside the annotated tree"
    within: ClassVar[tuple[float, float]] = (0.0, 1.0)
    reads: ClassVar[str | None] = "trees"

    level: Level = "word"
    average: Average = "token"
    punct: Literal["include", "exclude"] = "exclude"
    heads: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.level != "word":
            raise MeasureError(f"trees: level is {self.level!r}", "Trees are made of words: leave level out")
        for name in self.heads:
            try:
                HeadId.parse(name.removesuffix(_TURNED))
            except ValueError as error:
                raise MeasureError(f"trees: {error}") from None

    def quantities(self) -> tuple[str, ...]:
        """`uuas`: unlabelled, undirected attachment."""
        return ("uuas",)

    def defined(self, kind: str, quantity: str) -> bool:
        """Whether there are trees, which cross-attention does not have."""
        return kind != "cross"

    def start(self, layout: HeadLayout, replicates: int, seed: int = 0) -> State:
        """The sums of heads, and per replicate the counts of the joint tree in the columns of `_joint`."""
        self._chosen(layout)
        state = super().start(layout, replicates, seed)
        together = {"together": np.zeros((replicates + 1, 6))} if self.heads else {}
        return State({**state.arrays, **together}, {**state.merges, **dict.fromkeys(together, "sum")})

    def update(self, state: State, batch: MapBatch) -> None:
        """Add a site's trees and, once the maps of all its heads are there, the joint tree."""
        if batch.site.kind == "cross":
            return
        super().update(state, batch)
        chosen = self._chosen(batch.layout)
        mine = [(id.head, turned) for id, turned in chosen if (id.kind, id.layer) == (batch.site.kind, batch.site.layer)]
        key: Hashable = ("trees", self.heads, batch.site.kind)
        kept = batch.shared.setdefault(key, {"sum": 0.0, "missing": sum(id.kind == batch.site.kind for id, _ in chosen)})
        if mine:
            cut = self._cut(batch, self._gold(batch))
            kept["sum"] = kept["sum"] + sum(cut[:, head].mT if turned else cut[:, head] for head, turned in mine)
            kept["missing"] -= len(mine)
            if kept["missing"] == 0:
                joint = self._joint(kept["sum"], self._gold(batch))
                for part, texts in state.split(batch.slices):
                    part.arrays["together"] += batch.weigh(batch.documents)[texts].T @ joint[texts]

    def observe(self, batch: MapBatch) -> tuple[Sums, Counts]:
        """The number of annotated edges that are in each head's tree, and the number of annotated edges."""
        gold = self._gold(batch)
        cut = self._cut(batch, gold)
        found = self._edges(prim(cut + cut.mT, gold.nodes), gold)
        sums = found.new_zeros((len(gold.edges), found.shape[1])).index_add_(0, gold.text, found)
        return sums[:, None], gold.edges[:, None]

    def baseline(self, batch: MapBatch) -> Even:
        """The edges found by a chain in which every word is joined to the next."""
        import torch

        return torch.from_numpy(self._gold(batch).neighbours)[:, None]

    def tables(self, state: State, layout: HeadLayout) -> dict[str, Columns]:
        """Every head and every layer; and the joint tree, if there are `heads`."""
        tables = super().tables(state, layout)
        if self.heads:
            tables["trees_together"] = self._together(state["together"], self._support(state, layout))
        return tables

    def _gold(self, batch: MapBatch) -> _Gold:
        return batch.once(("trees", self.punct), lambda: self._find(batch))

    def _find(self, batch: MapBatch) -> _Gold:
        import torch

        words, device = WordIndex.of(batch.queries), batch.weights.device
        tags, head = (of_trees[0] for of_trees in trees_of(batch.queries))
        kept = np.array([self.punct == "include" or not is_punctuation(tag) for tag in TAGS.items], dtype=bool)[tags]
        nodes = np.zeros(batch.queries.roles.shape, dtype=bool)
        nodes[words.text[kept], words.place[kept]] = True
        same = words.same_sentence(batch.queries.width) & nodes[:, :, None] & nodes[:, None, :]
        governor = np.where(head >= 0, head + words.first[words.text], head)
        edge = kept & (head >= 0) & kept[np.maximum(governor, 0)]
        rank = np.cumsum(kept)
        near = edge & (np.abs(rank - rank[np.maximum(governor, 0)]) == 1)
        start, end = words.bounds()
        whole = [slice(a, b) for a, b in sorted(set(zip(start.tolist(), end.tolist(), strict=True))) if (head[a:b] != NONE).all()]
        size = len(nodes)
        text, dependent, above = (
            torch.from_numpy(a).to(device) for a in (words.text[edge], words.place[edge], words.place[governor[edge]])
        )
        return _Gold(
            torch.from_numpy(nodes).to(device),
            torch.from_numpy(same).to(device, torch.float32),
            text,
            dependent,
            above,
            np.bincount(words.text[edge], minlength=size).astype(np.float64),
            np.bincount(words.text[near], minlength=size).astype(np.float64),
            tuple(_sentence(part, words, kept, governor) for part in whole),
        )

    def _cut(self, batch: MapBatch, gold: _Gold) -> Float[torch.Tensor, "batch head position position"]:
        import torch

        weights = batch.weights * gold.same[:, None]
        return weights / weights.sum(-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)

    @staticmethod
    def _edges(joined: Int[torch.Tensor, "batch graph position"], gold: _Gold) -> Float[torch.Tensor, "edge graph"]:
        forth = joined[gold.text, :, gold.dependent] == gold.governor[:, None]
        back = joined[gold.text, :, gold.governor] == gold.dependent[:, None]
        return (forth | back).float()

    def _joint(self, scores: Float[torch.Tensor, "batch position position"], gold: _Gold) -> Float64[np.ndarray, "batch 6"]:
        """Per text: words with the right governor, words; right edges, edges; edges between neighbours; words whose
        governor is the next word.
        """
        found = np.zeros((len(gold.edges), 6))
        np.add.at(
            found[:, 2], gold.text.cpu().numpy(), self._edges(prim((scores + scores.mT)[:, None], gold.nodes), gold)[:, 0].cpu().numpy()
        )
        found[:, 3], found[:, 4] = gold.edges, gold.neighbours
        plain = scores.double().cpu().numpy()
        for text, places, governors in gold.sentences:
            tree = arborescence(plain[text][np.ix_(places, places)])
            found[text, 0] += np.count_nonzero(tree == governors)
            found[text, 1] += len(places)
            found[text, 5] += np.count_nonzero(governors == np.arange(1, len(places) + 1))
        return found

    def _support(self, state: State, layout: HeadLayout) -> Support:
        """The documents of the joint tree: those of the layer of its first head."""
        head = self._chosen(layout)[0][0]
        place = [(site.kind, site.layer) for site in layout.sites].index((head.kind, head.layer))
        return support_of(state, layout)[0, place]

    def _together(self, sums: Float64[np.ndarray, "replicate 6"], support: Support) -> Columns:
        with np.errstate(invalid="ignore", divide="ignore"):
            uas, uuas = sums[:, 0] / sums[:, 1], sums[:, 2] / sums[:, 3]
            rules = [sums[0, 5] / sums[0, 1], sums[0, 4] / sums[0, 3]]
        replicates = np.stack([uas, uuas], 1)
        low, high = interval(replicates[0], replicates[1:], support, self.within)
        return {
            "heads": np.array([" + ".join(self.heads)] * 2, dtype=object),
            "quantity": np.array(["uas", "uuas"], dtype=object),
            "value": replicates[0],
            "low": low,
            "high": high,
            "n": sums[0, [1, 3]].astype(np.int64),
            "documents": np.full(2, support.documents),
            "baseline": np.array(rules),
        }

    def _chosen(self, layout: HeadLayout) -> list[tuple[HeadId, bool]]:
        """The heads of the joint tree, and whether each map is transposed. Without a kind, `8-10` is of the kind that
        the model has.
        """
        chosen = []
        for name in self.heads:
            id = find_head(name.removesuffix(_TURNED), layout.ids())
            if id is None:
                raise MeasureError(f"trees: there is no head {name}", "Name heads of the model that the run measures")
            chosen.append((id, name.endswith(_TURNED)))
        if len({id.kind for id, _ in chosen}) > 1 or any(id.kind == "cross" for id, _ in chosen):
            raise MeasureError(
                f"trees: {', '.join(self.heads)} do not make one tree", "Name heads of the encoder alone, or of the decoder alone"
            )
        return chosen


def _sentence(
    part: slice, words: WordIndex, kept: Bool[np.ndarray, "n"], governor: Int[np.ndarray, "n"]
) -> tuple[int, Int[np.ndarray, "node"], Int[np.ndarray, "node"]]:
    """A sentence's text, the positions of its nodes, and the governor of each by its number among them: -1 for the
    root, -2 for an excluded word.
    """
    mine = np.flatnonzero(kept[part]) + part.start
    number = {int(word): place for place, word in enumerate(mine)}
    governors = [-1 if governor[word] < 0 else number.get(int(governor[word]), -2) for word in mine]
    return int(words.text[part.start]), words.place[mine], np.array(governors, dtype=np.int64)
