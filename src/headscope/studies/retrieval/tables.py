"""The tables of a study of retrieval heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headscope.core.heads import HeadId
from headscope.errors import RunError
from headscope.results.columns import StateColumns
from headscope.results.table import Table
from headscope.stats.bootstrap import document_weights
from headscope.stats.inference import FEWEST, SHARE, Support, interval, share_interval
from headscope.stats.resampled import mean
from headscope.studies.retrieval.ranking import folds, held_out_best, overlaps
from headscope.studies.retrieval.spec import ABOVE, Decoding, RetrievalSpec

if TYPE_CHECKING:
    from jaxtyping import Bool, Float64

PASSED = 0.5  # ROUGE-1 recall above which a question is answered
DECODINGS: tuple[Decoding, ...] = ("greedy", "forced")
STRONGEST, RANDOM, NONE = "strongest", "random", "none"


class Shares(NamedTuple):
    """Means with the bounds of their intervals."""

    value: Float64[np.ndarray, "*shape"]
    low: Float64[np.ndarray, "*shape"]
    high: Float64[np.ndarray, "*shape"]

    def numbers(self) -> tuple[float, float, float]:
        """The numbers of a single mean."""
        return float(self.value), float(self.low), float(self.high)


@dataclass(frozen=True)
class HeadScores:
    """The results of each sample: its document, whether it was answered, and for each decoding the score of each head
    and of chance.
    """

    documents: list[str]
    passed: Bool[np.ndarray, "sample"]
    heads: dict[Decoding, Float64[np.ndarray, "sample head"]]
    chance: dict[Decoding, Float64[np.ndarray, "sample"]]

    @classmethod
    def of(cls, kept: StateColumns) -> HeadScores:
        """The scores that jobs have kept."""
        heads = {decoding: kept.numbers(decoding) for decoding in DECODINGS}
        chances = {decoding: kept.numbers(f"chance/{decoding}") for decoding in DECODINGS}
        return cls(kept.words("document"), kept.numbers("recall") > PASSED, heads, chances)

    def main(self, wanted: str) -> Decoding:
        """The decoding that ranks heads: greedy if enough documents were answered."""
        answered = {document for document, passed in zip(self.documents, self.passed, strict=True) if passed}
        if wanted == "greedy":
            if not answered:
                raise RunError("no question was answered, so greedy decoding gives no head a score", "Use --decoding forced, or auto")
            return "greedy"
        return "greedy" if wanted == "auto" and len(answered) >= FEWEST else "forced"

    def counted(self, decoding: Decoding) -> Bool[np.ndarray, "sample"]:
        """Which samples count: with greedy decoding, those that were answered."""
        return self.passed if decoding == "greedy" else np.ones(len(self.passed), dtype=bool)

    def scored(self, decoding: Decoding) -> tuple[Float64[np.ndarray, "sample head"], list[str]]:
        """The scores of the samples that count, and their documents."""
        counted = self.counted(decoding)
        return self.heads[decoding][counted], [name for name, there in zip(self.documents, counted, strict=True) if there]


@dataclass(frozen=True)
class AblatedAnswers:
    """The loss of the right answer of each sample and whether it was found: with all heads, and for each k without the
    strongest and without random ones, which are averaged.
    """

    documents: list[str]
    values: Float64[np.ndarray, "sample cut 2"]
    draws: int
    top: tuple[int, ...]

    @classmethod
    def of(cls, kept: StateColumns, spec: RetrievalSpec) -> AblatedAnswers:
        """The answers that jobs have kept."""
        return cls(kept.words("document"), kept.numbers("answers"), spec.draws, spec.top)

    def number(self, k: int) -> int:
        """The number of the set of the k strongest heads; those of random ones follow it."""
        return 1 + self.top.index(k) * (1 + self.draws)

    def without(self, heads: str, k: int) -> Float64[np.ndarray, "sample 2"]:
        """The loss and whether the answer was found, without the k strongest or k random heads."""
        if heads == NONE:
            return self.values[:, 0]
        number = self.number(k)
        return self.values[:, number] if heads == STRONGEST else self.values[:, number + 1 : number + 1 + self.draws].mean(1)


def share(values: Float64[np.ndarray, "sample *shape"], documents: Sequence[str], spec: RetrievalSpec) -> Shares:
    """The means of numbers between 0 and 1, with exact bounds if they are 0, or 1, in all samples."""
    of, weights = document_weights(documents, spec.replicates, spec.seed)
    weighted = weights[of]
    with np.errstate(invalid="ignore", divide="ignore"):
        means = np.tensordot(weighted, values, (0, 0)) / weighted.sum(0).reshape(-1, *[1] * (values.ndim - 1))
    low, high = share_interval(means[0], means[1:], Support.of(np.bincount(of).astype(np.float64)))
    return Shares(means[0], low, high)


def head_table(scores: HeadScores, main: Decoding, ids: Sequence[HeadId], spec: RetrievalSpec) -> Table:
    """`retrieval_heads`: one row per decoding and head, the decoding that ranks heads first, by score."""
    rows: list[dict[str, Any]] = []
    for decoding in sorted(DECODINGS, key=lambda name: name != main):
        values, documents = scores.scored(decoding)
        if not documents:
            continue
        found = share(values, documents, spec)
        expected = float(scores.chance[decoding][scores.counted(decoding)].mean())
        order = np.argsort(-found.value, kind="stable")
        for rank, place in enumerate(order.tolist(), 1):
            head = ids[place]
            rows.append(
                {
                    **{"decoding": decoding, "rank": rank, "kind": head.kind, "layer": head.layer + 1, "head": head.head + 1},
                    **{"score": float(found.value[place]), "low": float(found.low[place]), "high": float(found.high[place])},
                    **{"baseline": expected, "n": len(documents), "documents": len({*documents})},
                }
            )
    return Table.of({name: [row[name] for row in rows] for name in rows[0]})


def stability_table(scores: HeadScores, main: Decoding, spec: RetrievalSpec) -> Table:
    """`retrieval_stability`: the overlap of the first k heads on resampled documents with those of all documents."""
    rows = overlaps(*scores.scored(main), spec.top, spec.replicates, spec.seed)
    columns = list(zip(*rows, strict=True))
    names = ("k", "resampled", "drawn", "value", "low", "high", "draws", "baseline")
    return Table.of({name: list(column) for name, column in zip(names, columns, strict=True)})


def ablation_table(answers: AblatedAnswers, which: Sequence[str], spec: RetrievalSpec) -> Table:
    """`retrieval_ablation`: answers found and loss of the answer, with all heads, without the k strongest and without k
    random ones, each with the increase of the loss over that with all heads.
    """
    rows: list[dict[str, Any]] = []
    base = answers.without(NONE, 0)
    sets = [
        (0, NONE, ""),
        *((k, heads, which[n] if heads == STRONGEST else "") for n, k in enumerate(spec.top) for heads in (STRONGEST, RANDOM)),
    ]
    for k, heads, names in sets:
        values = answers.without(heads, k)
        found = mean(values, answers.documents, spec.replicates, spec.seed)
        shares = share(values[:, 1], answers.documents, spec).numbers()
        gained = mean(values[:, 0] - base[:, 0], answers.documents, spec.replicates, spec.seed)
        rows.append(
            {
                **{"k": k, "heads": heads, "found": shares[0], "found_low": shares[1], "found_high": shares[2]},
                **{"loss": float(found.value[0]), "low": float(found.low[0]), "high": float(found.high[0])},
                **{"gained": float(gained.value), "gained_low": float(gained.low), "gained_high": float(gained.high)},
                **{"n": len(values), "documents": len({*answers.documents}), "draws": spec.draws if heads == RANDOM else 1, "which": names},
            }
        )
    return Table.of({name: [row[name] for row in rows] for name in rows[0]})


def summary(scores: HeadScores, main: Decoding, answers: AblatedAnswers, stability: Table, spec: RetrievalSpec) -> Table:
    """`summary`: what was answered, how many heads retrieve, how stable they are, and what is lost without them."""
    values, documents = scores.scored(main)
    rows: list[tuple[str, float, float, float, float, int, int]] = []

    def add(
        what: str, numbers: Float64[np.ndarray, "sample"], of: Sequence[str], within: tuple[float, float], baseline: float = np.nan
    ) -> None:
        found = mean(numbers[:, None], of, spec.replicates, spec.seed, within)
        bounds = float(found.value[0]), float(found.low[0]), float(found.high[0])
        rows.append((what, *bounds, baseline, int(found.n[0]), int(found.documents[0])))

    of_all = np.nan, len(scores.documents), len({*scores.documents})
    rows.append(("questions answered", *share(scores.passed.astype(np.float64), scores.documents, spec).numbers(), *of_all))
    rows.append(("answers given word for word", *share(answers.without(NONE, 0)[:, 1], answers.documents, spec).numbers(), *of_all))
    add("loss of the right answer", answers.without(NONE, 0)[:, 0], answers.documents, (0, np.inf))
    rows.append(_share_above(values, documents, spec))
    chance = float(scores.chance[main][scores.counted(main)].mean())
    add("score of the best head, chosen on other documents", held_out_best(values, folds(documents, spec.seed)), documents, SHARE, chance)
    k = spec.top[-1]
    row = next(row for row in stability if row["k"] == k)
    rows.append(
        (
            f"overlap of the top {k} on resampled documents",
            row["value"],
            row["low"],
            row["high"],
            row["baseline"],
            len(documents),
            len({*documents}),
        )
    )
    for column, what, within in ((1, "answers lost", (-1.0, 1.0)), (0, "loss gained", (-np.inf, np.inf))):
        sign = -1 if column else 1
        strongest, random = (sign * (answers.without(heads, k) - answers.without(NONE, 0))[:, column] for heads in (STRONGEST, RANDOM))
        add(f"{what} without the top {k}", strongest, answers.documents, within, float(random.mean()))
        add(f"{what} without the top {k}, beyond {k} random heads", strongest - random, answers.documents, within)
    names = ("what", "value", "low", "high", "baseline", "n", "documents")
    return Table.of({name: list(column) for name, column in zip(names, zip(*rows, strict=True), strict=True)})


def _share_above(
    values: Float64[np.ndarray, "sample head"], documents: Sequence[str], spec: RetrievalSpec
) -> tuple[str, float, float, float, float, int, int]:
    """The share of heads whose mean score is above Wu et al.'s threshold, with replicates of the documents."""
    of, weights = document_weights(documents, spec.replicates, spec.seed)
    weighted = weights[of].T
    with np.errstate(invalid="ignore", divide="ignore"):
        means = weighted @ values / weighted.sum(1)[:, None]
    shares = np.where(np.isfinite(means).all(1), (means > ABOVE).mean(1), np.nan)
    support = Support.of(np.bincount(of).astype(np.float64))
    low, high = interval(shares[0], shares[1:], support, SHARE)
    return f"share of heads that score above {ABOVE:g}", float(shares[0]), float(low), float(high), np.nan, len(of), int(support.documents)
