"""One task of a study: its targets, the training of its probes, their decisions and probabilities."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.core.document import Edge, Word
from headscope.core.hashing import digest, hash64
from headscope.errors import RunError
from headscope.results.columns import StateColumns
from headscope.studies.edge_probe.feeding import Feeder, Items, StateRows, items
from headscope.studies.edge_probe.linear import linear_counts
from headscope.studies.edge_probe.probe import Probes, Shape, cumulative, single
from headscope.studies.edge_probe.reading import Texts
from headscope.studies.edge_probe.spec import EdgeSpec
from headscope.studies.edge_probe.tasks import counts_in_score
from headscope.studies.edge_probe.training import steps_between, train

if TYPE_CHECKING:
    from jaxtyping import Bool, Float32, Float64, Int

    from headscope.studies.edge_probe.training import StepProgress

CONTROL_SEED = 0  # of random labels: the same for all seeds of probes, so that seeds differ only in the probes


class Task:
    """One task over the texts of a study: its targets and their labels."""

    def __init__(self, name: str, spec: EdgeSpec, texts: Texts, layers: int) -> None:
        self.name, self.spec, self.texts, self.layers = name, spec, texts, layers
        everything = items(name, texts.texts, [edges.get(name, []) for edges in texts.edges])
        parts = {"train": texts.train, "held": texts.held if spec.select == "held_out" else texts.dev, "dev": texts.dev}
        self.parts: dict[str, Items] = {part: everything.of_texts(numbers) for part, numbers in parts.items()}
        for part, what in (("train", "train on"), ("held", "choose the best state of a probe by"), ("dev", "score probes on")):
            if not len(self.parts[part]):
                raise RunError(f"there is no target of {name} to {what}", "Use more texts (--limit), or name a corpus with --dev")
        self.labels, self.slots = everything.names, everything.slots
        self.counted = np.array([counts_in_score(name, label) for label in self.labels])
        if not self.counted.any():
            raise RunError(f"no label of {name} counts in its score", f"Its labels are {', '.join(self.labels[:8])}")
        self.shown = everything.some(np.concatenate([self._searched(everything), np.flatnonzero(np.isin(everything.texts, texts.look))]))
        self.several = bool((self.labelled("train") != 1).any()) or len(self.labels) < 2

    def _searched(self, everything: Items) -> Int[np.ndarray, "target"]:
        """The targets that are searched for changes: some of the scored ones, drawn by text and place."""
        scored = np.flatnonzero(np.isin(everything.texts, self.texts.dev))
        if len(scored) <= self.spec.searched:
            return scored
        keys = [digest(self.texts.texts[everything.texts[n]].id, everything.edges[n], size=8).hex() for n in scored]
        order = np.argsort(keys, kind="stable")
        return np.sort(scored[order[: self.spec.searched]])

    def labelled(self, part: str) -> Int[np.ndarray, "target"]:
        """How many labels each target of a part has."""
        counts: Int[np.ndarray, "target"] = self.parts[part].labels.sum(1)
        return counts

    @property
    def variants(self) -> int:
        """The number of label sets: the true labels, and those of a control if requested."""
        return 1 + self.spec.control

    @property
    def kinds(self) -> list[tuple[str, int]]:
        """The probes of a variant: cumulative ones by their last layer, and single layers if requested."""
        every = range(self.layers)
        return [*(("cumulative", layer) for layer in every), *(("single", layer) for layer in every if self.spec.single)]

    @cached_property
    def documents(self) -> list[str]:
        """The documents that are scored, which intervals resample, in order."""
        return list(dict.fromkeys(self.texts.texts[number].document for number in self.parts["dev"].texts))

    def _units(self, part: str) -> Int[np.ndarray, "target"]:
        """The number of each target's document; 0 for all targets of a part that is only summed."""
        if part != "dev":
            return np.zeros(len(self.parts[part]), dtype=np.int64)
        place = {name: number for number, name in enumerate(self.documents)}
        return np.array([place[self.texts.texts[number].document] for number in self.parts["dev"].texts], dtype=np.int64)

    def _feeder(self, rows: StateRows, part: Items) -> Feeder:
        """The targets of a part with their states, their labels, and the labels of a control."""
        variants = [part.labels]
        if self.spec.control:
            control = Control(self.parts["train"].edges, CONTROL_SEED)
            words = (self.texts.texts[number].words for number in part.texts)
            labels = [control.labels(self.name, forms[edge.first[1] - 1].form) for forms, edge in zip(words, part.edges, strict=True)]
            variants.append(part.relabelled(labels).labels)
        return Feeder(rows, part, variants, torch.float32)

    def cost(self, size: int) -> float:
        """Multiplications of training the probes of one seed on states of `size` numbers, if none stops early."""
        probes, width = len(self.kinds) * self.variants, self.spec.hidden
        recipe, texts = self.spec.recipe(self.name), len(set(self.parts["train"].texts))
        epochs = recipe.checks * steps_between(texts, recipe) * recipe.batch / texts
        tokens = sum(len(self.texts.texts[number]) for number in set(self.parts["train"].texts))
        each_target = self.slots * (size + width) * width + width * len(self.labels)
        return 3 * epochs * probes * (len(self.parts["train"]) * each_target + tokens * size * (self.layers + 2 * self.slots))

    def run(self, rows: StateRows, seeds: Sequence[int], progress: StepProgress | None = None) -> StateColumns:
        """The results of the probes of some seeds, trained and tested."""
        shown = [*cumulative(self.layers), *(single(self.layers) if self.spec.single else [])]
        probes = Probes(
            Shape(self.layers, rows.states.size, self.slots, len(self.labels), self.spec.hidden),
            [*shown] * self.variants,
            list(seeds),
            rows.device,
        )
        variant = torch.arange(self.variants, device=rows.device).repeat_interleave(len(shown))
        feeders = {name: self._feeder(rows, part) for name, part in self.parts.items()}

        def decided(part: str) -> Float64[np.ndarray, "seed probe unit 3"]:
            return counts(probes, feeders[part], variant, self.counted, self._units(part))

        def held_out_f1() -> Float64[np.ndarray, "seed probe"]:
            return f1(decided("held").sum(2))

        result = train(probes, feeders["train"], variant, held_out_f1, self.spec.recipe(self.name), progress)
        kept = StateColumns()
        shape = (len(seeds), self.variants, len(shown))
        kept.add(f"seed/{self.name}", [float(seed) for seed in seeds])
        kept.add(f"counts/{self.name}", decided("dev").reshape(*shape, len(self.documents), 3))
        kept.add(f"mix/{self.name}", probes.weights.cpu().numpy().reshape(*shape, self.layers))
        kept.add(f"steps/{self.name}", result.steps.reshape(shape))
        kept.add(f"beliefs/{self.name}", self._beliefs(rows, probes))
        if self.spec.seed in seeds:  # the baseline has no seed
            baseline = [linear_counts(rows, self.parts, layer, self.counted, self._units("dev")) for layer in range(self.layers)]
            kept.add(f"linear/{self.name}", np.stack(baseline))
        return kept

    def _beliefs(self, rows: StateRows, probes: Probes) -> np.ndarray:
        """The probabilities by the cumulative probes of the true labels, for the targets that are searched or shown."""
        if not len(self.shown):
            return np.zeros((len(probes.seeds), self.layers, 0, len(self.labels)))
        return beliefs(probes, Feeder(rows, self.shown, [self.shown.labels] * self.variants, torch.float32))[:, : self.layers]


class Control:
    """Random labels, with the frequencies of label sets in the given edges, those that a probe is trained on.

    The type of an edge is the last word of its first span, ignoring case, because not every model sees case. Its
    labels depend only on the type, the task and the seed, not on the order of edges or on other words.
    """

    def __init__(self, edges: Iterable[Edge], seed: int = 0) -> None:
        counts = Counter(edge.labels for edge in edges)
        self._labels = sorted(counts)
        self._ends = list(accumulate(counts[labels] for labels in self._labels))
        self._seed = seed

    def labels(self, task: str, form: str) -> tuple[str, ...]:
        """The labels of a word type; none if there were no edges to draw from."""
        if not self._labels:
            return ()
        number = hash64(f"{self._seed}\n{task}\n{form.casefold()}")
        return self._labels[bisect_right(self._ends, number % self._ends[-1])]

    def relabelled(self, edges: Iterable[Edge], words: Sequence[Word]) -> list[Edge]:
        """The same spans with random labels; `words` are the words that the spans refer to."""
        return [replace(edge, labels=self.labels(edge.task, words[edge.first[1] - 1].form)) for edge in edges]


@torch.no_grad()
def counts(
    probes: Probes,
    feeder: Feeder,
    variant: Int[torch.Tensor, "probe"],
    counted: Bool[np.ndarray, "label"],
    units: Int[np.ndarray, "target"],
) -> Float64[np.ndarray, "seed probe unit 3"]:
    """True positives, false positives and false negatives of labels, summed over the targets of each unit."""
    seen = probes.seen
    which = torch.from_numpy(counted).to(seen.device)
    place = torch.from_numpy(units).to(seen.device)
    shape = len(probes.seeds), len(seen), int(units.max(initial=-1)) + 1
    total = torch.zeros(3, *shape, dtype=torch.float64, device=seen.device)
    for batch in feeder.steady(len(probes.seeds)):
        decided = (probes(batch) >= 0) & which
        true = (batch.labels[:1].index_select(1, variant) > 0) & which
        for number, labels in enumerate((decided & true, decided & ~true, ~decided & true)):
            total[number].index_add_(2, place[batch.targets[0]], labels.sum(-1).double())
    return total.permute(1, 2, 3, 0).cpu().numpy()


def f1(sums: Float64[np.ndarray, "*system 3"]) -> Float64[np.ndarray, "*system"]:
    """Micro-averaged F1 of sums of decisions; 0 without any true or predicted label, as in the paper's code."""
    right, wrong, missed = np.moveaxis(np.asarray(sums, dtype=np.float64), -1, 0)
    whole = 2 * right + wrong + missed
    score: Float64[np.ndarray, "*system"] = np.where(whole > 0, 2 * right / np.where(whole > 0, whole, 1), 0.0)[()]
    return score


@torch.no_grad()
def beliefs(probes: Probes, feeder: Feeder) -> Float32[np.ndarray, "seed probe target label"]:
    """The probability of each label for each target by each probe."""
    believed = np.zeros((len(probes.seeds), len(probes.seen), len(feeder), len(feeder.items.names)), dtype=np.float32)
    for batch in feeder.steady(len(probes.seeds)):
        believed[:, :, batch.targets[0].cpu().numpy()] = probes(batch).sigmoid().float().cpu().numpy()
    return believed
