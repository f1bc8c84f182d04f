"""Whether flow is stronger between words that are close in the dependency tree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.annotation import NONE
from headscope.core.suggest import choose_from
from headscope.encoding.texts import Encoded
from headscope.errors import MeasureError
from headscope.measures.relations import is_punctuation
from headscope.results.columns import StateColumns
from headscope.results.table import Table
from headscope.stats.bootstrap import group_of
from headscope.stats.correlation import pearson, spearman
from headscope.stats.resampled import mean
from headscope.studies.flow.grouping import Matrices, checked, to_words
from headscope.studies.flow.paths import CHAINS, VARIANTS, Variant, distances, restricted, sentence_chain
from headscope.studies.flow.spec import RESAMPLES, Grouping, Punct, Resample

if TYPE_CHECKING:
    from jaxtyping import Float, Float64

METHODS = {"pearson": pearson, "spearman": spearman}
LAYERS = ("measure", "variant", "method", "layer", "value", "low", "high", "n", "sentences", "documents")
BASELINES = ("chain", "variant", "method", "value", "low", "high", "n", "sentences", "documents")
FOLDS = 2


class TreeDistances:
    """Correlation of flow with minus the distance in the tree, one value per sentence and layer: above 0, flow between
    closer words is stronger.

    There are four variants: all pairs of words, in any direction (the main variant), or only flow from a word to those
    below it; each with or without the diagonal. The diagonal raises the correlation, because a word is at distance 0
    from itself and most of its flow stays there. `n` is the number of sentences that have a correlation, which needs
    two different distances. Intervals resample documents, or sentences.
    """

    def __init__(
        self,
        grouping: Grouping = "mean",
        punct: Punct = "include",
        resample: Resample = "document",
        replicates: int = 1000,
        seed: int = 0,
        kept: StateColumns | None = None,
    ) -> None:
        if resample not in RESAMPLES:
            raise MeasureError(f"resample is {resample!r}", choose_from(resample, RESAMPLES))
        self.grouping, self.punct, self.resample, self.replicates, self.seed = grouping, punct, resample, replicates, seed
        self.kept = kept or StateColumns()

    def observe(self, text: Encoded, matrices: Matrices) -> None:
        """Add a sentence with its matrices between tokens."""
        checked(matrices, len(text))
        kept, heads = kept_words(text, self.punct)
        gold = [-distances(heads, variant) for variant in VARIANTS]
        self.kept.add_words("unit", [text.document if self.resample == "document" else text.id])
        for name, matrix in matrices.items():
            flow = to_words(matrix, text.word_of, len(text.words), self.grouping)[:, kept][:, :, kept]
            self.kept.add(f"values/{name}", correlations(flow, gold)[None])
        sentences = [text.annotation.sentences[word] for word in kept]
        self.kept.add("chains", np.stack([_chain(sentence_chain(sentences, name), gold) for name in CHAINS])[None])

    def tables(self) -> dict[str, Table]:
        """`tree_distances`: every measure, variant, method and layer; `tree_distances_chains`: the same
        for chains of words, the baselines.

        The row without a layer has the best layer, chosen on some documents and scored on the others.
        """
        rows, baselines = [], []
        for name in self.kept.under("values/"):
            rows += self.rows(self.kept.numbers(f"values/{name}"), {"measure": name}, chosen=True)
        if len(every := self.kept.numbers("chains")):
            for place, name in enumerate(CHAINS):
                baselines += self.rows(every[:, place, :, :, None], {"chain": name})
        return {"tree_distances": Table.from_rows(rows, LAYERS), "tree_distances_chains": Table.from_rows(baselines, BASELINES)}

    def rows(
        self,
        values: Float64[np.ndarray, "sentence variant method layer"],
        names: dict[str, str],
        variants: Sequence[Variant] = VARIANTS,
        chosen: bool = False,
    ) -> list[dict[str, object]]:
        """Rows of these variants, methods and layers; with `chosen` also the layer that is best on other documents."""
        units, layers = self.kept.words("unit"), values.shape[3]
        if chosen:
            values = np.concatenate([values, held_out(values, units)[..., None]], -1)
        means = mean(values, units, self.replicates, self.seed, (-1, 1))
        return [
            {
                **names,
                "variant": variant,
                "method": method,
                "layer": layer + 1 if layer < layers else None,
                "value": float(means.value[row, column, layer]),
                "low": float(means.low[row, column, layer]),
                "high": float(means.high[row, column, layer]),
                "n": int(means.n[row, column, layer]),
                "sentences": len(values),
                "documents": int(means.documents[row, column, layer]),
            }
            for row, variant in enumerate(variants)
            for column, method in enumerate(METHODS)
            for layer in range(values.shape[3])
        ]


def kept_words(text: Encoded, punct: Punct) -> tuple[list[int], list[int]]:
    """The words of a text that its tree contains, and their heads as places among these; an error if it has no tree."""
    heads = text.annotation.heads
    if heads and all(head == NONE for head in heads):
        raise MeasureError(f"{text.id} has no tree", "Use a corpus with dependencies, such as a CoNLL-U file")
    kept = [place for place, word in enumerate(text.words) if punct == "include" or not is_punctuation(word)]
    return kept, restricted(heads, kept)


def _chain(heads: Sequence[int], gold: Sequence[Float64[np.ndarray, "word word"]]) -> Float[np.ndarray, "variant method"]:
    """The correlations of the distances in a chain with those in the tree, in each variant."""
    values = np.empty((len(VARIANTS), len(METHODS)), dtype=np.float32)
    for row, (variant, wanted) in enumerate(zip(VARIANTS, gold, strict=True)):
        values[row] = correlations(-distances(heads, variant)[None], [wanted])[0, :, 0]
    return values


def correlations(
    flow: Float64[np.ndarray, "layer word word"], gold: Sequence[Float64[np.ndarray, "word word"]]
) -> Float[np.ndarray, "variant method layer"]:
    """Correlations of each layer's flow with each matrix, over its finite pairs; NaN if there is none."""
    values = np.empty((len(gold), len(METHODS), len(flow)), dtype=np.float32)
    for row, wanted in enumerate(gold):
        used = np.isfinite(wanted)
        for column, correlate in enumerate(METHODS.values()):
            values[row, column] = correlate(flow[:, used], wanted[used])[0]
    return values


def held_out(values: Float64[np.ndarray, "sentence *shape layer"], units: Sequence[str]) -> Float64[np.ndarray, "sentence *shape"]:
    """Each sentence's value in the layer that is best, on average, over the sentences of the other half of the units.

    The halves depend only on the units' names. The value is NaN if the other half has no values.
    """
    fold = np.array([group_of(unit, FOLDS) for unit in units], dtype=np.int64)
    values_of_best = np.full(values.shape[:-1], np.nan)
    for number in range(FOLDS):
        mine, others = values[fold == number], values[fold != number]
        finite = np.isfinite(others)
        with np.errstate(invalid="ignore"):
            means = np.where(finite, others, 0).sum(0) / finite.sum(0)
        best = np.where(np.isnan(means), -np.inf, means).argmax(-1)
        picked = np.take_along_axis(mine, np.broadcast_to(best[None, ..., None], (*mine.shape[:-1], 1)), -1)[..., 0]
        values_of_best[fold == number] = np.where(np.isnan(means).all(-1), np.nan, picked)
    return values_of_best
