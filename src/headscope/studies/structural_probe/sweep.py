"""One sweep: probes over features, trained together, scored and kept; a long training can be resumed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.core.hashing import digest
from headscope.errors import RunError
from headscope.results.columns import StateColumns
from headscope.results.files import open_arrays, seal_arrays, write_atomically
from headscope.results.table import Table
from headscope.studies.hidden_states import HiddenStates
from headscope.studies.structural_probe.features import Features
from headscope.studies.structural_probe.probe import KINDS, Segment, Segments
from headscope.studies.structural_probe.reading import DataPart, StructuralProbeData
from headscope.studies.structural_probe.scoring import paired, predictions, score, spanning
from headscope.studies.structural_probe.spec import StructuralSpec
from headscope.studies.structural_probe.training import Fit, SentenceVectors, sized, train

if TYPE_CHECKING:
    from jaxtyping import Float, Float64

SHOWN = 12
LENGTHS = range(6, 19)  # words of an example sentence
WORD_COLUMNS = ("text", "word", "form", "head", "joined", "depth", "predicted")
MEASURED = 512  # sentences from which the size of a layer's vectors is estimated
EVERY = 20.0  # seconds of training that may be lost, if an epoch takes no longer

Read = Callable[[DataPart], tuple[tuple[str, HiddenStates], ...]]


def example_sentences(part: DataPart, seed: int) -> list[int]:
    """Some sentences of medium length, chosen by name; any sentences if there are none."""
    fit = [number for number, text in enumerate(part.texts) if len(text.words) in LENGTHS] or list(range(len(part)))
    return sorted(fit, key=lambda number: digest(seed, part.texts[number].id))[:SHOWN]


def keep_examples(
    kept: StateColumns, matrices: Float[torch.Tensor, "row d"], segments: Segments, feature: int, sentences: SentenceVectors, part: DataPart
) -> None:
    """Keep the words of a part under `trees/...`, with the predictions of a feature's first pair of matrices."""
    distance, depth = paired(segments)[0]
    for number, predicted in sorted(predictions(matrices[None], segments, sentences, [feature]), key=lambda prediction: prediction[0]):
        text, tree = part.texts[number], part.trees[number]
        kept.add_words("trees/text", [text.id] * len(text.words))
        kept.add_words("trees/form", [word.form for word in text.words])
        columns = {
            "word": np.arange(len(text.words)) + 1,
            "head": np.array(text.annotation.heads) + 1,
            "joined": np.where(tree.scored, spanning(predicted[distance], tree)[0] + 1, -1),
            "depth": tree.depths,
            "predicted": predicted[depth][0].numpy(),
        }
        for name, values in columns.items():
            kept.add(f"trees/{name}", values)


def example_table(kept: StateColumns) -> Table:
    """One row per word: its governor (0: it is the root), the word that the predicted spanning tree joins it to (0:
    it is the first word of that tree; none: punctuation), its depth, and the predicted depth.
    """
    numbers = {name: kept.numbers(f"trees/{name}").tolist() for name in ("word", "head", "joined", "depth", "predicted")}
    whole = {name: [int(value) for value in numbers[name]] for name in ("word", "head", "joined", "depth")}
    joined = [value if value >= 0 else None for value in whole["joined"]]
    columns = {**numbers, **whole, "joined": joined, "text": kept.words("trees/text"), "form": kept.words("trees/form")}
    return Table.of({name: columns[name] for name in WORD_COLUMNS})


@dataclass(frozen=True)
class Sweep:
    """Probes over some features: `name` is layers, random, baselines or ranks; `read` gives a part's features."""

    name: str
    read: Read
    ranks: tuple[int, ...]
    chosen: tuple[int, ...] | None = None  # numbers of features, if not all that are read

    def run(
        self,
        material: StructuralProbeData,
        spec: StructuralSpec,
        device: torch.device,
        checkpoint: Checkpoint,
        progress: Callable[[float], None],
    ) -> StateColumns:
        """The scores of all probes of the sweep, after training."""
        segments = Segments(tuple(Segment(kind, rank, seed) for kind in KINDS for rank in self.ranks for seed in range(spec.seeds)))
        reads = [self.read(part) for part in (material.train, material.held_out, material.test)]
        scales = lengths_of(reads[0], material.train) if spec.scale == "unit" else np.ones(sum(len(s.layers) for _, s in reads[0]))
        every = [Features(read, device, tuple((1 / scales).tolist()), self.chosen) for read in reads]
        sentences = [
            SentenceVectors(features, part.trees, [text.id for text in part.texts])
            for features, part in zip(every, (material.train, material.held_out, material.test), strict=True)
        ]
        names = [f"{feature}/{spec.seed}" for feature in every[0].every]
        fit = checkpoint.read(segments, device)
        if fit is None:
            drawn = segments.drawn(names, every[0].size).to(device)
            fit = Fit.begin(sized(drawn, segments, sentences[0]) if spec.scale == "unit" else drawn, segments)
            if spec.scale == "unit":  # the numbers of a matrix with fewer rows are larger, and so are its steps
                fit.tensors["rate"] *= torch.tensor([(every[0].size / segment.rank) ** 0.5 for segment in segments.every])

        written = time.monotonic()

        def after(fit: Fit) -> None:
            nonlocal written
            if time.monotonic() - written >= EVERY:
                checkpoint.write(fit)
                written = time.monotonic()
            progress(fit.epoch / spec.recipe.epochs)

        def within(share: float) -> None:
            progress((fit.epoch + share) / spec.recipe.epochs)

        train(fit, sentences[0], sentences[1], spec.recipe, after, within)
        numbers = score(fit.tensors["best"], segments, sentences[2], single=spec.reference)
        kept = self._kept(fit, every[0], numbers)
        if self.name == "layers":
            self._show(kept, fit, every[2], material.test, spec)
        checkpoint.drop()
        return kept

    def _show(self, kept: StateColumns, fit: Fit, features: Features, part: DataPart, spec: StructuralSpec) -> None:
        """Keep some sentences with the predictions from the layer of least loss."""
        best = int(fit.patience.loss[:, : spec.seeds].mean(1).argmin())  # distance comes first among segments
        chosen = example_sentences(part, spec.seed)
        few = DataPart(tuple(part.texts[number] for number in chosen), tuple(part.trees[number] for number in chosen))
        states = tuple((source, states.some(chosen)) for source, states in features.parts)
        sentences = SentenceVectors(
            Features(states, features.device, features.scales, features.chosen), few.trees, [text.id for text in few.texts]
        )
        keep_examples(kept, fit.tensors["best"][best], fit.segments, best, sentences, few)

    def _kept(self, fit: Fit, features: Features, numbers: Float64[np.ndarray, "sentence feature pair 9"]) -> StateColumns:
        kept = StateColumns()
        pairs = paired(fit.segments)
        probes = [(feature, *pair) for feature in range(len(features.every)) for pair in pairs]
        kept.add(f"{self.name}/numbers", numbers.reshape(len(numbers), len(probes), -1))
        kept.add_words(f"{self.name}/source", [features.every[feature].source for feature, _, _ in probes])
        of = [fit.segments.every[distance] for _, distance, _ in probes]
        kept.add(f"{self.name}/layer", [features.every[feature].layer for feature, _, _ in probes])
        kept.add(f"{self.name}/rank", [segment.rank for segment in of])
        kept.add(f"{self.name}/seed", [segment.seed for segment in of])
        for name, each in (("loss", fit.patience.loss), ("best_epoch", fit.patience.best), ("epochs", fit.tensors["epochs"])):
            kept.add(f"{self.name}/{name}", np.array([[float(each[feature, place]) for place in both] for feature, *both in probes]))
        return kept


def lengths_of(read: Sequence[tuple[str, HiddenStates]], part: DataPart) -> Float64[np.ndarray, "feature"]:
    """The root mean square distance of each feature's vectors from their mean, over some sentences."""
    some = sorted(range(len(part)), key=lambda number: part.texts[number].id)[:: max(1, len(part) // MEASURED)]
    lengths = []
    for _, states in read:
        blocks = np.concatenate([states[number].astype(np.float64) for number in some], axis=1)
        lengths.append(np.sqrt(((blocks - blocks.mean(1, keepdims=True)) ** 2).sum(-1).mean(1)))
    scales: Float64[np.ndarray, "feature"] = np.maximum(np.concatenate(lengths), 1e-12)
    return scales


@dataclass(frozen=True)
class Checkpoint:
    """The file that keeps an unfinished training, if there is a folder; `key` identifies the training."""

    path: Path | None
    key: str
    resume: bool = False

    def write(self, fit: Fit) -> None:
        """Save the current state of the probes."""
        if self.path is not None:
            arrays = {name: tensor.detach().cpu().numpy() for name, tensor in fit.state().items()}
            write_atomically(self.path, seal_arrays(arrays, {"key": self.key}))

    def read(self, segments: Segments, device: torch.device) -> Fit | None:
        """The saved probes; None if this training has none."""
        if not self.resume or self.path is None or not self.path.is_file():
            return None
        try:
            arrays, metadata = open_arrays(self.path)
        except ValueError as error:
            raise RunError(f"{self.path} is damaged ({error})", "Remove that file and run again with --resume") from error
        if metadata.get("key") != self.key:
            return None
        return Fit.again({name: torch.from_numpy(array) for name, array in arrays.items()}, segments, device)

    def drop(self) -> None:
        """Delete the file, because the training is finished."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)
