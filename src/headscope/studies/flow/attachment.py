"""The share of annotated arcs in spanning trees of flow, and in chains of words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.document import Word
from headscope.core.suggest import choose_from
from headscope.encoding.texts import Encoded
from headscope.errors import MeasureError
from headscope.results.columns import StateColumns
from headscope.results.table import Table
from headscope.stats.resampled import mean
from headscope.stats.spanning import arborescence
from headscope.studies.flow.classes import CLOSED_RELEASED, OPEN
from headscope.studies.flow.grouping import Matrices, checked, to_words
from headscope.studies.flow.paths import CHAINS, sentence_chain
from headscope.studies.flow.spec import LABELS, Grouping, Labels, Punct, Resample
from headscope.studies.flow.trees import held_out, kept_words

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Float64

# Nominals that are core arguments, and nominals that are not (https://universaldependencies.org/u/dep/). Westera's
# lists are not published; these come nearest to his numbers.
CORE = frozenset({"nsubj", "nsubj:pass", "obj", "iobj"})
NON_CORE = frozenset({"obl", "vocative", "expl", "dislocated", "nmod", "appos", "nummod"})
ARCS = ("all", "core", "non-core", "open-open", "closed-closed")
DIRECTIONS = ("directed", "undirected")
COLUMNS = ("tree", "arcs", "direction", "layer", "value", "low", "high", "n", "arcs_a_sentence", "sentences", "documents")


class Attachment:
    """The share of a sentence's annotated arcs that a tree has, averaged over the sentences that have such arcs; roots
    are not arcs.

    A tree is the maximum spanning arborescence of a layer's flow, in which M[i, j] is the score of i as the head of j,
    or with `transpose` of j as the head of i. There are also two chains: in "next word" the head of every word is the
    word after it, in "previous word" the word before it. Core and non-core arcs are those of nominals, identified by
    their labels without subtypes, or by their `whole` labels, which excludes `nmod:poss` and comes nearest to the
    published numbers. Closed classes are those of the released code.
    """

    def __init__(
        self,
        transpose: bool = False,
        grouping: Grouping = "mean",
        labels: Labels = "main",
        punct: Punct = "include",
        resample: Resample = "document",
        replicates: int = 1000,
        seed: int = 0,
        kept: StateColumns | None = None,
    ) -> None:
        if labels not in LABELS:
            raise MeasureError(f"labels is {labels!r}", choose_from(labels, LABELS))
        self.transpose, self.grouping, self.labels, self.punct = transpose, grouping, labels, punct
        self.resample, self.replicates, self.seed = resample, replicates, seed
        self.kept = kept or StateColumns()

    def observe(self, text: Encoded, matrices: Matrices) -> None:
        """Add a sentence with its matrices between tokens; without matrices only the chains are scored."""
        if matrices:
            checked(matrices, len(text))
        kept, heads = kept_words(text, self.punct)
        words = [text.words[place] for place in kept]
        sentences = [text.annotation.sentences[place] for place in kept]
        member = arcs_of(words, heads, self.labels)
        self.kept.add_words("unit", [text.document if self.resample == "document" else text.id])
        self.kept.add("arcs", member.sum(1)[None])
        for chain in CHAINS:
            self.kept.add(f"scores/{chain}", attachment([sentence_chain(sentences, chain)], heads, member)[None])
        for name, matrix in matrices.items():
            flow = to_words(matrix, text.word_of, len(text.words), self.grouping)[:, kept][:, :, kept]
            trees = [spanning(layer, sentences, self.transpose) for layer in flow]
            self.kept.add(f"scores/{name}", attachment(trees, heads, member)[None])

    def tables(self) -> dict[str, Table]:
        """`attachment`: one row per tree (a chain, or a measure and layer), class of arcs and direction.

        A chain has no layer. The row of a measure without a layer has the best layer, chosen on some documents and
        scored on the others.
        """
        rows = []
        units, arcs = self.kept.words("unit"), self.kept.numbers("arcs")
        for name in [*CHAINS, *(name for name in self.kept.under("scores/") if name not in CHAINS)] if units else []:
            values = self.kept.numbers(f"scores/{name}")
            layers = values.shape[3]
            if name not in CHAINS:
                values = np.concatenate([values, held_out(values, units)[..., None]], -1)
            shares = mean(values, units, self.replicates, self.seed, (0, 1))
            rows += [
                {
                    "tree": name,
                    "arcs": kind,
                    "direction": direction,
                    "layer": None if name in CHAINS or layer == layers else layer + 1,
                    "value": float(shares.value[row, column, layer]),
                    "low": float(shares.low[row, column, layer]),
                    "high": float(shares.high[row, column, layer]),
                    "n": int(shares.n[row, column, layer]),
                    "arcs_a_sentence": float(arcs[:, row].mean()),
                    "sentences": len(values),
                    "documents": int(shares.documents[row, column, layer]),
                }
                for row, kind in enumerate(ARCS)
                for column, direction in enumerate(DIRECTIONS)
                for layer in range(values.shape[3])
            ]
        return {"attachment": Table.from_rows(rows, COLUMNS)}


def spanning(flow: Float64[np.ndarray, "word word"], sentences: Sequence[int], transpose: bool = False) -> list[int]:
    """Heads of the directed tree of greatest flow, one tree per sentence: flow[i, j] is the score of i as the head of
    j, or with `transpose` of j as the head of i.
    """
    scores = flow if transpose else flow.T  # scores[d, g] is that of g governing d
    heads = [-1] * len(flow)
    for number in dict.fromkeys(sentences):
        mine = [word for word, sentence in enumerate(sentences) if sentence == number]
        for word, head in zip(mine, arborescence(np.ascontiguousarray(scores[np.ix_(mine, mine)])).tolist(), strict=True):
            heads[word] = mine[head] if head >= 0 else -1
    return heads


def arcs_of(words: Sequence[Word], heads: Sequence[int], labels: Labels = "main") -> Bool[np.ndarray, "arcs word"]:
    """Which arcs (one per word, to its head) belong to each class of arcs; roots have none."""
    member = np.zeros((len(ARCS), len(words)), dtype=bool)
    for place, (word, head) in enumerate(zip(words, heads, strict=True)):
        if head >= 0:
            label = (word.relation or "").partition(":")[0] if labels == "main" else word.relation
            above = words[head].upos
            kinds = (True, label in CORE, label in NON_CORE, {word.upos, above} <= OPEN, {word.upos, above} <= CLOSED_RELEASED)
            member[:, place] = kinds
    return member


def attachment(
    trees: Sequence[Sequence[int]], heads: Sequence[int], member: Bool[np.ndarray, "arcs word"]
) -> Float[np.ndarray, "arcs direction tree"]:
    """The share of the arcs of each class that each tree has, directed and undirected; NaN for a class without arcs."""
    gold = np.asarray(heads, dtype=np.int64)
    shares = np.full((len(member), len(DIRECTIONS), len(trees)), np.nan, dtype=np.float32)
    places = np.arange(len(gold))
    for number, tree in enumerate(trees):
        mine = np.asarray(tree, dtype=np.int64)
        forth = (mine == gold) & (gold >= 0)
        back = (gold >= 0) & (mine[np.maximum(gold, 0)] == places) if len(gold) else forth
        for column, right in enumerate((forth, forth | back)):
            for row, mask in enumerate(member):
                if mask.any():
                    shares[row, column, number] = right[mask].mean()
    return shares
