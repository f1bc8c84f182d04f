"""The decisions and probabilities of the probes of one task for all seeds, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from headscope.results.columns import StateColumns
from headscope.stats.bootstrap import poisson_weights
from headscope.stats.choices import Negatives
from headscope.stats.inference import Support, interval
from headscope.studies.edge_probe.task import Task, f1

if TYPE_CHECKING:
    from jaxtyping import Float64

Interval = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class TaskResults:
    """The decisions of the probes of one task. Intervals resample documents and seeds; with one document they resample
    seeds alone, and with one seed documents alone.
    """

    task: Task
    seeds: Sequence[int]
    counts: Float64[np.ndarray, "seed variant probe document 3"]
    mix: Float64[np.ndarray, "seed variant probe layer"]
    steps: Float64[np.ndarray, "seed variant probe"]
    beliefs: Float64[np.ndarray, "seed layer target label"]
    linear: Float64[np.ndarray, "layer document 3"]  # of the linear baseline
    negatives: Negatives = "keep"
    replicates: int = 1000
    seed: int = 0

    @classmethod
    def of(cls, task: Task, kept: StateColumns) -> TaskResults:
        """The results of a task, from its saved state."""
        names = ("counts", "mix", "steps", "beliefs", "linear")
        counts, mix, steps, beliefs, linear = (kept.numbers(f"{name}/{task.name}") for name in names)
        seeds = [int(seed) for seed in kept.numbers(f"seed/{task.name}")]
        return cls(task, seeds, counts, mix, steps, beliefs, linear, task.spec.negatives, task.spec.replicates, task.spec.seed)

    @property
    def resampled(self) -> bool:
        """Whether there is anything to resample."""
        return self.replicates > 0 and (len(self.task.documents) > 1 or len(self.seeds) > 1)

    @cached_property
    def each(self) -> Float64[np.ndarray, "seed variant probe"]:
        """The score of every probe, for each seed."""
        return f1(self.counts.sum(3))

    @cached_property
    def scores(self) -> Float64[np.ndarray, "variant probe"]:
        """Scores, mean over seeds."""
        scores: Float64[np.ndarray, "variant probe"] = self.each.mean(0)
        return scores

    @cached_property
    def drawn_seeds(self) -> np.ndarray:
        """For each replicate, which seeds are drawn."""
        return np.random.default_rng(self.seed).integers(len(self.seeds), size=(self.replicates, len(self.seeds)))

    @cached_property
    def drawn(self) -> Float64[np.ndarray, "replicate variant probe"]:
        """The scores in each replicate of documents and seeds."""
        sums = np.tensordot(self._document_weights, self.counts, axes=([0], [3]))
        scores = f1(sums)  # replicate, seed, variant, probe
        drawn: Float64[np.ndarray, "replicate variant probe"] = scores[np.arange(self.replicates)[:, None], self.drawn_seeds].mean(1)
        return drawn

    @cached_property
    def _document_weights(self) -> Float64[np.ndarray, "document replicate"]:
        names = self.task.documents
        return poisson_weights(names, self.replicates, self.seed)[:, 1:] if len(names) > 1 else np.ones((1, self.replicates))

    @cached_property
    def linear_scores(self) -> Float64[np.ndarray, "layer"]:
        """The scores of the linear baseline."""
        return f1(self.linear.sum(1))

    @cached_property
    def linear_drawn(self) -> Float64[np.ndarray, "replicate layer"]:
        """The scores of the linear baseline in each replicate of documents."""
        return f1(np.tensordot(self._document_weights, self.linear, axes=([0], [1])))

    @cached_property
    def support(self) -> Support:
        """The documents, by their numbers of true labels; the seeds if there is one document."""
        if len(self.task.documents) > 1:
            return Support.of(self.counts[0, 0, 0, :, [0, 2]].sum(0))
        return Support.alike(len(self.seeds))

    def interval(self, value: Float64[np.ndarray, "*shape"], replicates: Float64[np.ndarray, "replicate *shape"]) -> Interval:
        """The bounds of a value, from its replicates."""
        return interval(value, replicates, self.support)

    @property
    def size(self) -> int:
        """The number of layers, including layer 0."""
        return self.task.layers

    @cached_property
    def curve(self) -> Float64[np.ndarray, "layer"]:
        """The scores of cumulative probes for the true labels."""
        return self.scores[0, : self.size]

    @property
    def weights(self) -> Float64[np.ndarray, "seed layer"]:
        """The mixing weights of the probe that sees all layers, for each seed."""
        return self.mix[:, 0, self.size - 1]


def over_seeds(results: TaskResults, values: Float64[np.ndarray, "seed *shape"]) -> Interval:
    """Bounds of a mean over seeds; NaN for few seeds."""
    means = values[results.drawn_seeds].mean(1)
    return interval(values.mean(0), means, Support.alike(len(results.seeds)))
