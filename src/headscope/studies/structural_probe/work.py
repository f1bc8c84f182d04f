"""The work of a structural probe: states are read once, and the probes of all layers are trained together."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch

from headscope.core.state import States
from headscope.models.hidden import hidden_shape
from headscope.models.loading.random import untrained
from headscope.models.model import Model
from headscope.results.columns import StateColumns
from headscope.results.table import Table
from headscope.studies.base import StudyContext, Work
from headscope.studies.execute import require_length
from headscope.studies.hidden_states import HiddenStates, hidden_states
from headscope.studies.spec import STATES_FOLDER
from headscope.studies.structural_probe.findings import summary
from headscope.studies.structural_probe.reading import DataPart, fitted, material
from headscope.studies.structural_probe.scoring import score_chain
from headscope.studies.structural_probe.spec import StructuralSpec
from headscope.studies.structural_probe.sweep import Checkpoint, Sweep, example_table
from headscope.studies.structural_probe.tables import Tables

if TYPE_CHECKING:
    from jaxtyping import Float

    Vectors = Float[np.ndarray, "word d"]

SWEEPS = ("layers", "random", "baselines", "ranks")


class SweepJob(NamedTuple):
    """A sweep and its number."""

    number: int
    sweep: Sweep


class StructuralProbeWork(Work):
    """One structural probe. A job is a sweep: probes that are trained together, such as those of all layers.

    Hidden states are kept in the cache folder, if one is named. Otherwise they are kept in the folder of the results,
    or in a temporary folder, until the study is done.
    """

    spec: StructuralSpec

    def __init__(self, spec: StructuralSpec, context: StudyContext) -> None:
        require_length(context.model, spec)
        super().__init__(fitted(spec, context.model), context)
        self._states: dict[tuple[str, int], HiddenStates] = {}

    def prepare(self) -> None:
        """Read the sentences to train on, for early stopping, and to score."""
        self._material = material(self.model, self.context.corpus, self.context.corpora["dev"], self.spec)
        self.counts = self._material.counts
        self.notes += self._material.notes

    def jobs(self, merged: Callable[[], States]) -> Iterator[SweepJob]:
        """The sweeps. Ranks come last: by default they are tested on the layer that was best in the first sweep."""
        for number, name in enumerate(self._sweeps):
            if name == "ranks":
                layer = self.spec.ranks_layer
                yield SweepJob(number, self._ranks(self._tables(merged()).best() if layer is None else layer))
            else:
                yield SweepJob(number, self._sweep(name))

    def costs(self) -> list[float]:
        """Multiplications of each sweep: training, and reading the sentences if the sweep is the first to need them."""
        size, spec, parts = hidden_shape(self.model)[1], self.spec, self._material
        layers, rank = len(spec.layers or ()), spec.rank or 1
        rows = {"layers": layers * rank, "random": layers * rank, "baselines": len(self._averaged) * rank, "ranks": sum(spec.ranks or ())}
        words = sum(len(tree.depths) for tree in parts.train.trees)
        pairs = sum(len(tree.depths) ** 2 for tree in parts.train.trees)
        reading = sum(self.reading_cost(part.texts) for part in (parts.train, parts.held_out, parts.test))
        training = {name: 2 * spec.seeds * spec.epochs * rows[name] * (2 * words * size + 2 * pairs) for name in self._sweeps}
        self._reading = {name: 0.0 if name == "ranks" else reading / (reading + training[name]) for name in self._sweeps}
        return [training[name] / (1 - self._reading[name]) for name in self._sweeps]

    def do(self, job: SweepJob) -> States:
        """Train and score the probes of a sweep; an interrupted training continues."""
        folder, name = self.context.folder, job.sweep.name
        self._present = name
        path = folder.path / "partial" / "training.safetensors" if folder is not None else None
        checkpoint = Checkpoint(path, f"{self.context.key}/{name}", self.context.resume)
        kept = job.sweep.run(self._material, self.spec, self.model.device, checkpoint, self._progress_of(job.number))
        if name == "layers" and "linear" in self.spec.baselines:
            self._add_chain(kept)
        return {"structural": kept.state}

    def tables(self, states: States) -> dict[str, Table]:
        """A summary, scores by layer and by rank, how probes were trained, and some trees."""
        made = self._tables(states)
        self._best = made.best()
        tables = {"structural": made.scores("layers", "random", "baselines", "linear")}
        if self.spec.ranks:
            tables["structural_ranks"] = made.scores("ranks")
        tables["structural_training"] = made.training(*SWEEPS)
        tables["structural_trees"] = example_table(StateColumns(states["structural"]))
        return {"summary": summary(tables, self._best, hidden_shape(self.model)[0] - 1), **tables}

    def measured(self) -> dict[str, Any]:
        """The layers, ranks and baselines that were probed."""
        return self.spec.model_dump(mode="json", include={"layers", "rank", "ranks", "baselines"})

    def further(self) -> dict[str, Any]:
        """The best layer, which findings and figures name."""
        return {"best_layer": self._best}

    def close(self) -> None:
        """Remove hidden states that are not kept in a cache."""
        self._states.clear()
        if self.context.folder is not None and self.spec.cache is None:
            self.context.folder.drop(STATES_FOLDER)

    @property
    def _sweeps(self) -> list[str]:
        """The names of the requested sweeps."""
        wanted = {
            "layers": True,
            "random": "random" in self.spec.baselines,
            "baselines": bool(self._averaged),
            "ranks": bool(self.spec.ranks),
        }
        return [name for name in SWEEPS if wanted[name]]

    @property
    def _averaged(self) -> list[str]:
        """The baselines whose vectors are computed from layer 0."""
        return [name for name in ("decay", "projection") if name in self.spec.baselines]

    def _tables(self, states: States) -> Tables:
        units = self._material.test.units(self.spec.resample)
        return Tables(StateColumns(states["structural"]), units, self.spec.replicates, self.spec.seed)

    def _add_chain(self, kept: StateColumns) -> None:
        """Add the linear baseline, which needs no training."""
        kept.add("linear/numbers", score_chain(self._material.test.trees, self.spec.reference)[:, None])
        kept.add_words("linear/source", ["linear"])
        for name, value in (("layer", -1), ("rank", 0), ("seed", 0)):
            kept.add(f"linear/{name}", [value])

    def _ranks(self, layer: int) -> Sweep:
        """Probes of several ranks over one layer."""
        place = (self.spec.layers or ()).index(layer)
        return Sweep("ranks", lambda part: (("model", self._read("model", part)),), self.spec.ranks or (), (place,))

    def _sweep(self, name: str) -> Sweep:
        """Probes of one rank over all layers of the model or of the control, or over baselines from the embeddings."""
        rank = (self.spec.rank or 1,)
        if name == "baselines":
            return Sweep(name, lambda part: tuple(self._made_of_embeddings(part)), rank)
        source = "model" if name == "layers" else name
        return Sweep(name, lambda part: ((source, self._read(source, part)),), rank)

    def _made_of_embeddings(self, part: DataPart) -> Iterator[tuple[str, HiddenStates]]:
        embeddings = self._read("embeddings", part)
        for name in self._averaged:
            yield name, decay(embeddings, twice=self.spec.reference) if name == "decay" else projection(embeddings, self.spec.seed)

    def _read(self, source: str, part: DataPart) -> HiddenStates:
        """The states of a part's words in some layers; the control omits layer 0, which equals the model's."""
        if (source, id(part)) not in self._states:
            layers: Sequence[int] = (0,) if source == "embeddings" else self.spec.layers or ()
            model = self.model
            if source == "random":
                model = self._control
                layers = tuple(layer for layer in layers if layer > 0) or (0,)
            folder, before = self.context.folder, sum(len(states) for (name, _), states in self._states.items() if name == source)
            every = sum(map(len, (self._material.train, self._material.held_out, self._material.test)))

            def report(share: float | None, texts: int, tokens: int) -> None:
                self.meter.update(self._reading[self._present] * (before + texts) / every, before + texts, tokens)

            self._states[source, id(part)] = hidden_states(
                model,
                part.texts,
                self.spec.cache_folder(folder.path if folder is not None else None),
                layers=layers,
                level="word",
                dtype=self.spec.store,
                limit_bytes=self.spec.cache_bytes,
                progress=report,
            )
        return self._states[source, id(part)]

    @cached_property
    def _control(self) -> Model:
        """The model with its weights redrawn."""
        return untrained(self.model, self.spec.seed)

    def _progress_of(self, number: int) -> Callable[[float], None]:
        """A function that receives the share of a sweep's training that is done."""
        train, before = self._material.train, self._reading[self._sweeps[number]]
        texts, words = len(train), sum(len(text.words) for text in train.texts)

        def report(share: float) -> None:
            seen = share * self.spec.epochs
            self.meter.update(before + (1 - before) * min(share, 1.0), int(seen * texts), int(seen * words))

        return report


def decay(states: HiddenStates, twice: bool = False) -> HiddenStates:
    """Each word as a weighted mean of all words of its sentence; the weight halves with every step of distance. In the
    released code the word itself counts `twice`.
    """

    def mixed(vectors: Vectors) -> Vectors:
        places = np.arange(len(vectors))
        weights = 0.5 ** np.abs(places[:, None] - places) + twice * np.eye(len(vectors))
        averaged: Vectors = weights / weights.sum(1, keepdims=True) @ vectors
        return averaged

    return _mapped(states, mixed)


def projection(states: HiddenStates, seed: int = 0) -> HiddenStates:
    """Each word as the output of an untrained BiLSTM of the same size."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        forward, backward = (torch.nn.LSTM(states.size, size) for size in (states.size - states.size // 2, states.size // 2))

    def read(vectors: Vectors) -> Vectors:
        with torch.inference_mode():
            inputs = torch.from_numpy(vectors)[:, None]
            forwards, backwards = forward(inputs)[0], backward(inputs.flip(0))[0].flip(0)
            joined: Vectors = torch.cat([forwards, backwards], -1)[:, 0].numpy()
        return joined

    return _mapped(states, read)


def _mapped(states: HiddenStates, change: Callable[[Vectors], Vectors]) -> HiddenStates:
    """Layer 0 of all sentences, changed; kept in an unnamed temporary file that is deleted after use."""
    embeddings = replace(states, layers=(0,), values=np.zeros(0, states.values.dtype))
    with tempfile.TemporaryFile() as file:
        values = np.memmap(file, states.values.dtype, "w+", shape=(embeddings.places[-1],))
    for number in range(len(states)):
        block = change(np.array(states[number][states.layers.index(0)], dtype=np.float32))
        values[embeddings.places[number] : embeddings.places[number + 1]] = block.astype(values.dtype).reshape(-1)
    return replace(embeddings, values=values)
