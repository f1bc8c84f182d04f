"""Whether the flow from a noun to a later pronoun is larger if both refer to the same entity."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.tally import Tally
from headscope.encoding.texts import Encoded
from headscope.results.columns import StateColumns
from headscope.results.table import Table
from headscope.stats.regression import matched, ols, ols_interval
from headscope.stats.significance import benjamini_hochberg, holm
from headscope.studies.flow.comparisons import LayerSample, Row, by_layer, headline
from headscope.studies.flow.grouping import Matrices, checked, to_words
from headscope.studies.flow.items import Passage
from headscope.studies.flow.spec import Grouping

if TYPE_CHECKING:
    from jaxtyping import Float64

_NUMBERS = ("mean_same", "mean_different", "difference", "low", "high", "p_documents", "t", "df", "p")
_COUNTS = ("d", "n_same", "n_different", "documents", "reason")
LAYERS = ("measure", "test", "layer", *_NUMBERS, "p_holm", "p_bh", *_COUNTS)
HEADLINE = ("measure", "preset", "test", *_NUMBERS, *_COUNTS)
ITEMS = ("document", "same", "distance", "noun", "pronoun")
VALUES = ("measure", "pair", *ITEMS, "matched", "layer", "value")
TESTS = ("welch", "matched", "regression")


class CoreferenceFlow:
    """Flow from noun to pronoun in pairs of one entity and of two entities, layer by layer.

    There are three tests, each with a difference, t, p and d: `welch`, over all pairs; `matched`, Welch's test over
    pairs of one entity and partners at nearly the same distance; `regression`, least squares with the logarithm of
    distance as a covariate.
    """

    def __init__(self, grouping: Grouping = "mean", replicates: int = 1000, seed: int = 0, kept: StateColumns | None = None) -> None:
        self.grouping, self.replicates, self.seed = grouping, replicates, seed
        self.kept = kept or StateColumns()

    def observe(self, text: Encoded, matrices: Matrices, passage: Passage) -> None:
        """Add the pairs of a passage: `text` is its model input, and `matrices` are between the tokens of `text`.

        Pairs with a word that was cut off at the end of the text are counted in `left_out`.
        """
        checked(matrices, len(text))
        place = {position: number for number, position in enumerate(text.annotation.positions)}
        kept = [pair for pair in passage.pairs if pair.noun in place and pair.pronoun in place]
        if lost := len(passage.pairs) - len(kept):
            self.kept.add_words("lost from", [text.id])
            self.kept.add("lost", [lost])
        if not kept:
            return
        words = text.words
        nouns, pronouns = ([place[getattr(pair, side)] for pair in kept] for side in ("noun", "pronoun"))
        self.kept.add_words("document", [text.document] * len(kept))
        for name, places in (("noun", nouns), ("pronoun", pronouns)):
            self.kept.add_words(name, [words[place].form for place in places])
        self.kept.add("same", [pair.same for pair in kept])
        self.kept.add("distance", [pair.distance for pair in kept])
        for name, matrix in matrices.items():
            flow = to_words(matrix, text.word_of, len(words), self.grouping)[:, nouns, pronouns]
            self.kept.add(f"values/{name}", flow.T)

    def tables(self) -> dict[str, Table]:
        """`coreference`: every measure, test and layer; `coreference_headline`: over all layers;
        `coreference_distances`: the distances of the pairs, a confound; `coreference_items`: the pairs with their flow,
        averaged over layers; `coreference_values`: their flow by layer, from which the tests follow.
        """
        layers, heads, items = [], [], []
        for name in self.kept.under("values/"):
            for test in TESTS:
                layers += [{"measure": name, **row} for row in self._by_layer(name, test)]
                heads += [{"measure": name, **row} for row in self._headline(name, test)]
            for item, value in zip(self._items, self.kept.numbers(f"values/{name}").mean(1).tolist(), strict=True):
                items.append({"measure": name, **dict(zip(ITEMS, item, strict=True)), "value": value})
        return {
            "coreference": Table.from_rows(layers, LAYERS),
            "coreference_headline": Table.from_rows(heads, HEADLINE),
            "coreference_distances": self._distances(),
            "coreference_items": Table.from_rows(items, ("measure", *ITEMS, "value")),
            "coreference_values": self._values(),
        }

    def _values(self) -> Table:
        """One row per measure, pair and layer; pairs have their row number in `coreference_items`, from 1."""
        matched_pairs = {place for places in self._places("matched") for place in places}
        known = [{"pair": place + 1, **dict(zip(ITEMS, item, strict=True))} for place, item in enumerate(self._items)]
        rows = [
            {"measure": name, **known[place], "matched": place in matched_pairs, "layer": layer, "value": value}
            for name in self.kept.under("values/")
            for place, layers in enumerate(self.kept.numbers(f"values/{name}").tolist())
            for layer, value in enumerate(layers, 1)
        ]
        return Table.from_rows(rows, VALUES)

    @property
    def left_out(self) -> Tally:
        """The counts of pairs that were skipped."""
        tally = Tally()
        for where, lost in zip(self.kept.words("lost from"), self.kept.numbers("lost").tolist(), strict=True):
            tally.add("pairs skipped: a word was cut off", where, int(lost))
        return tally

    @property
    def _items(self) -> list[tuple[str, bool, int, str, str]]:
        """Document, class, distance, noun and pronoun of each pair."""
        same, distance = self.kept.numbers("same").astype(bool).tolist(), self.kept.numbers("distance").astype(int).tolist()
        return list(zip(self.kept.words("document"), same, distance, self.kept.words("noun"), self.kept.words("pronoun"), strict=True))

    def _places(self, test: str) -> tuple[list[int], list[int]]:
        """The numbers of the pairs of one entity, and of two entities, that a test compares."""
        items = self._items
        same = [number for number, item in enumerate(items) if item[1]]
        other = [number for number, item in enumerate(items) if not item[1]]
        if test != "matched":
            return same, other
        pairs = matched([items[number][2] for number in same], [items[number][2] for number in other])
        return [same[first] for first, _ in pairs], [other[two] for _, two in pairs]

    def _samples(self, name: str, test: str) -> tuple[LayerSample, LayerSample]:
        whole = LayerSample(self.kept.numbers(f"values/{name}"), self.kept.words("document"))
        same, other = self._places(test)
        return whole.take(same), whole.take(other)

    def _by_layer(self, name: str, test: str) -> list[Row]:
        same, other = self._samples(name, test)
        if test != "regression":
            return [_named(row, test) for row in by_layer(same, other, "welch", self.replicates, self.seed)]
        rows = self._regressed(same, other)
        p = np.array([row["p"] for row in rows])
        adjusted = zip(holm(p).tolist(), benjamini_hochberg(p).tolist(), strict=True)
        return [{**row, "layer": layer, "p_holm": a, "p_bh": b} for layer, (row, (a, b)) in enumerate(zip(rows, adjusted, strict=True), 1)]

    def _headline(self, name: str, test: str) -> Iterator[Row]:
        same, other = self._samples(name, test)
        if test != "regression":
            for preset, row in headline(same, other, "welch", self.replicates, self.seed):
                yield {"preset": preset, **_named(row, test)}
            return
        yield {"preset": "recommended", **self._regressed(same.averaged(), other.averaged())[0]}

    def _regressed(self, same: LayerSample, other: LayerSample) -> list[Row]:
        """Rows with the coefficient of the class and the raw means; d is in standard deviations of the residuals."""
        distance = np.array([item[2] for item in sorted(self._items, key=lambda item: not item[1])], dtype=np.float64)
        is_same = np.repeat([1.0, 0.0], [len(same.values), len(other.values)])
        design = np.stack([np.ones_like(distance), is_same, np.log(distance)], 1)
        values, documents = np.concatenate([same.values, other.values]), [*same.documents, *other.documents]
        fit = ols(design, values)
        low, high, p = ols_interval(design, values, documents, self.replicates, self.seed)
        means = [_means(sample) for sample in (same, other)]
        return [
            {
                "test": "regression",
                "mean_same": float(means[0][column]),
                "mean_different": float(means[1][column]),
                "difference": float(fit.coefficients[1, column]),
                "low": float(low[1, column]),
                "high": float(high[1, column]),
                "p_documents": float(p[1, column]),
                "t": float(fit.t[1, column]),
                "df": float(fit.df),
                "p": float(fit.p[1, column]),
                "d": float(fit.coefficients[1, column] / fit.spread[column]) if fit.spread[column] else math.nan,
                "n_same": len(same.values),
                "n_different": len(other.values),
                "documents": len(set(documents)),
                "reason": fit.reason,
            }
            for column in range(values.shape[1])
        ]

    def _distances(self) -> Table:
        rows, items = [], self._items
        for test in ("welch", "matched"):
            for same, sample in zip((True, False), self._places(test), strict=True):
                far = np.array([items[number][2] for number in sample], dtype=np.float64)
                middle = (float(far.mean()), float(np.median(far))) if len(far) else (np.nan, np.nan)
                rows.append({"test": test, "same": same, "mean": middle[0], "median": middle[1], "n": len(far)})
        return Table.from_rows(rows, ("test", "same", "mean", "median", "n"))


def _named(row: Row, test: str) -> Row:
    """A row of a comparison, in which x are pairs of one entity and y pairs of two."""
    names = {"mean_x": "mean_same", "mean_y": "mean_different", "n_x": "n_same", "n_y": "n_different"}
    return {**{names.get(key, key): value for key, value in row.items()}, "test": test}


def _means(sample: LayerSample) -> Float64[np.ndarray, "layer"]:
    return sample.values.mean(0) if len(sample.values) else np.full(sample.values.shape[1], np.nan)
