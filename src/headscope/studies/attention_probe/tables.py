"""Tables of a study of attention probes, from the answers of every probe and seed for every word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.core.heads import HeadId
from headscope.results.columns import StateColumns
from headscope.results.results import Results
from headscope.results.table import Table
from headscope.stats.bootstrap import poisson_weights
from headscope.stats.inference import Support, interval
from headscope.studies.attention_probe.spec import NAMES, Name
from headscope.studies.replicates import replicate_maker

if TYPE_CHECKING:
    from jaxtyping import Bool, Float64

    from headscope.studies.replicates import ReplicatedTables

PUBLISHED: Mapping[Name, str] = {
    "attention": "61", "attention-words": "77", "words-distances": "58", "random-attention-words": "30", "right-branching": "26",
}  # fmt: skip
CONTRASTS: tuple[tuple[Name, Name], ...] = (
    ("attention", "right-branching"),
    ("attention", "random-attention"),
    ("attention-words", "attention"),
    ("attention-words", "words-distances"),
    ("attention-words", "random-attention-words"),
)
DIRECTIONS = ("dep-to-head", "head-to-dep")
LEAST = 20  # words that a relation must have to be listed


def punctuation(relation: str) -> bool:
    """Whether a relation is punctuation, which is not scored."""
    return relation.partition(":")[0] == "punct"


@dataclass(frozen=True)
class Answers:
    """Which words each seed of each probe gets right, with the relation and the document of each word."""

    kept: StateColumns
    replicates: int = 1000
    seed: int = 0

    @cached_property
    def names(self) -> list[Name]:
        """The probes of the study, in the order of NAMES."""
        there = self.kept.under("right/")
        return [name for name in NAMES if name in there]

    @cached_property
    def relations(self) -> list[str]:
        """The relation of each word."""
        return self.kept.words("relation")

    @cached_property
    def counts(self) -> Bool[np.ndarray, "word"]:
        """Which words count: all but punctuation."""
        return np.array([not punctuation(relation) for relation in self.relations], dtype=bool)

    @cached_property
    def _units(self) -> tuple[Float64[np.ndarray, "word unit"] | Any, Float64[np.ndarray, "unit replicate+1"]]:
        documents = self.kept.words("document")
        names = sorted(set(documents))
        place = {name: number for number, name in enumerate(names)}
        return np.array([place[name] for name in documents], dtype=np.int64), poisson_weights(names, self.replicates, self.seed)

    def right(self, name: Name, what: str = "right") -> Float64[np.ndarray, "word seed"]:
        """1 for each word that a seed gets right, else 0."""
        return self.kept.numbers(f"{what}/{name}")

    def share(self, values: Float64[np.ndarray, "word"], some: Bool[np.ndarray, "word"]) -> Float64[np.ndarray, "replicate+1"]:
        """The mean over some words, and in each replicate of the documents."""
        units, weights = self._units
        size = len(weights)
        total = np.bincount(units[some], values[some], size) @ weights
        n = np.bincount(units[some], minlength=size) @ weights
        with np.errstate(invalid="ignore", divide="ignore"):
            shares: Float64[np.ndarray, "replicate+1"] = total / n
        return shares

    def interval(self, drawn: Float64[np.ndarray, "replicate+1"], some: Bool[np.ndarray, "word"]) -> tuple[float, float]:
        """The bounds of a mean over some words."""
        low, high = interval(drawn[0], drawn[1:], self._support(some))
        return float(low), float(high)

    def documents_of(self, some: Bool[np.ndarray, "word"]) -> int:
        """How many documents some words come from."""
        return int(self._support(some).documents)

    def _support(self, some: Bool[np.ndarray, "word"]) -> Support:
        return Support.of(np.bincount(self._units[0][some], minlength=len(self._units[1])))


def summary_table(answers: Answers, words: str) -> Table:
    """`summary`: Clark et al.'s Table 3, with UAS without punctuation, as in the paper, and with it."""
    rows = []
    every = np.ones(len(answers.counts), dtype=bool)
    for name in answers.names:
        right = answers.right(name)
        each = right[answers.counts].mean(0)
        drawn = answers.share(right.mean(1), answers.counts)
        low, high = answers.interval(drawn, answers.counts)
        trees = answers.right(name, "tree")
        rows.append(
            {
                "probe": name,
                "words": words if "words" in name else None,
                "uas": float(drawn[0]),
                "sd": float(each.std(ddof=1)) if len(each) > 1 else None,
                "low": low,
                "high": high,
                "with_punct": float(answers.share(right.mean(1), every)[0]),
                "tree": float(trees[answers.counts].mean()) if len(trees) else None,
                "n": int(answers.counts.sum()),
                "documents": answers.documents_of(answers.counts),
                "seeds": right.shape[1] if name != "right-branching" else None,
                "published": PUBLISHED.get(name),
            }
        )
    return Table.from_rows(rows)


def seed_table(answers: Answers, seeds: Sequence[int]) -> Table:
    """`attention_probe`: every seed of every probe."""
    columns: dict[str, list[Any]] = {name: [] for name in ("probe", "seed", "uas", "with_punct", "tree", "epochs", "n")}
    for name in answers.names:
        right, trees = answers.right(name), answers.right(name, "tree")
        epochs = answers.kept.numbers(f"epochs/{name}")
        for place in range(right.shape[1]):
            columns["probe"].append(name)
            columns["seed"].append(seeds[place] if len(epochs) else None)
            columns["uas"].append(float(right[answers.counts, place].mean()))
            columns["with_punct"].append(float(right[:, place].mean()))
            columns["tree"].append(float(trees[answers.counts, place].mean()) if len(trees) else None)
            columns["epochs"].append(int(epochs[place]) if len(epochs) else None)
            columns["n"].append(int(answers.counts.sum()))
    return Table.of(columns)


def relation_table(answers: Answers) -> Table:
    """`attention_probe_relations`: accuracy of every probe per relation, the most frequent first."""
    columns: dict[str, list[Any]] = {name: [] for name in ("relation", "probe", "uas", "low", "high", "n", "documents")}
    relations = np.array(answers.relations)
    names, sizes = np.unique(relations[answers.counts], return_counts=True)
    for relation, size in sorted(zip(names.tolist(), sizes.tolist(), strict=True), key=lambda pair: (-pair[1], pair[0])):
        some = relations == relation
        for name in answers.names if size >= LEAST else ():
            drawn = answers.share(answers.right(name).mean(1), some)
            values = (relation, name, float(drawn[0]), *answers.interval(drawn, some), size, answers.documents_of(some))
            for column, value in zip(columns, values, strict=True):
                columns[column].append(value)
    return Table.of(columns)


def difference_table(answers: Answers) -> Table:
    """`attention_probe_differences`: how much better one probe is than another, over the same words."""
    columns: dict[str, list[Any]] = {name: [] for name in ("probe", "than", "difference", "low", "high", "n", "documents")}
    for name, other in CONTRASTS:
        if name in answers.names and other in answers.names:
            drawn = answers.share(answers.right(name).mean(1) - answers.right(other).mean(1), answers.counts)
            counted = int(answers.counts.sum()), answers.documents_of(answers.counts)
            values = (name, other, float(drawn[0]), *answers.interval(drawn, answers.counts), *counted)
            for column, value in zip(columns, values, strict=True):
                columns[column].append(value)
    return Table.of(columns)


def head_table(kept: StateColumns, heads: Sequence[HeadId]) -> Table:
    """`attention_probe_heads`: the weight and pull of each head and direction in each probe, means over seeds."""
    columns: dict[str, list[Any]] = {
        name: [] for name in ("probe", "kind", "layer", "head", "direction", "weight", "weight_sd", "pull", "pull_sd", "rank")
    }
    for name in (probe for probe in NAMES if probe in kept.under("weight/")):
        weight, pull = kept.numbers(f"weight/{name}"), kept.numbers(f"pull/{name}")
        ranks = np.empty(len(pull), dtype=np.int64)
        ranks[np.argsort(-np.nan_to_num(pull.mean(1)), kind="stable")] = np.arange(1, len(pull) + 1)
        for place in range(len(weight)):
            head = heads[place % len(heads)]
            row = (name, head.kind, head.layer + 1, head.head + 1, DIRECTIONS[place // len(heads)])
            spread = [float(values[place].std(ddof=1)) if weight.shape[1] > 1 else None for values in (weight, pull)]
            numbers = (float(weight[place].mean()), spread[0], float(pull[place].mean()), spread[1], int(ranks[place]))
            for column, value in zip(columns, (*row, *numbers), strict=True):
                columns[column].append(value)
    return Table.of(columns)


def replicates(results: Results) -> ReplicatedTables:
    """The numbers of `summary` and of `attention_probe_relations` with their replicates."""
    settings = results.manifest["settings"]
    answers = Answers(StateColumns(results.state("probe")), settings["replicates"], settings["seed"])
    made = replicate_maker(answers.kept.words("document"), settings["seed"])
    relations = np.array(answers.relations)
    table = "attention_probe_relations"
    rows = [(row["probe"], row["relation"]) for row in results[table]] if table in results else []
    right: Mapping[str, Float64[np.ndarray, "word"]] = {name: answers.right(name).mean(1) for name in answers.names}
    return {
        "summary": {(name,): made(answers.share(values, answers.counts), answers.counts) for name, values in right.items()},
        table: {(probe, of): made(answers.share(right[probe], relations == of), relations == of) for probe, of in rows},
    }
