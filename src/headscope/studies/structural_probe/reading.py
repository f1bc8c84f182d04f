"""The settings completed for the model, and the sentences to train on, for early stopping, and to score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from headscope.core.hashing import digest
from headscope.corpora import Corpus
from headscope.encoding.texts import Encoded, Encoder
from headscope.errors import RunError
from headscope.models.hidden import hidden_shape
from headscope.models.model import Model
from headscope.results.counts import Counts
from headscope.studies.picking import picked
from headscope.studies.structural_probe.spec import StructuralSpec
from headscope.studies.structural_probe.trees import Tree, tree_of

FEW = 10  # with fewer documents, sentences are divided instead
HELD_OUT, TESTED = 0.1, 0.2  # shares of what is divided


@dataclass(frozen=True)
class DataPart:
    """Sentences with their trees."""

    texts: tuple[Encoded, ...]
    trees: tuple[Tree, ...]

    def __len__(self) -> int:
        return len(self.texts)

    def units(self, resample: str) -> list[str]:
        """The unit of each sentence that intervals resample."""
        return [text.document if resample == "document" else text.id for text in self.texts]


@dataclass(frozen=True)
class StructuralProbeData:
    """The three parts, their counts, and notes on how they were divided."""

    train: DataPart
    held_out: DataPart
    test: DataPart
    counts: Counts
    notes: tuple[str, ...]


def fitted(spec: StructuralSpec, model: Model) -> StructuralSpec:
    """The settings completed for the model: its layers, and ranks up to the size of its vectors."""
    count, size = hidden_shape(model)
    for layer in (*(spec.layers or ()), *(() if spec.ranks_layer is None else (spec.ranks_layer,))):
        if not 0 <= layer < count:
            raise RunError(f"{spec.model} has no layer {layer}", f"Its hidden states are those of layers 0 (embeddings) to {count - 1}")
    layers = tuple(range(count)) if spec.layers is None else spec.layers
    if spec.ranks_layer is not None and spec.ranks_layer not in layers:
        raise RunError(f"layer {spec.ranks_layer}, on which ranks are tested, is not among the layers", "Add it to --layers")
    for rank in (*((spec.rank,) if spec.rank is not None else ()), *(spec.ranks or ())):
        if rank > size:
            raise RunError(f"rank {rank} is larger than the {size} dimensions of a vector of {spec.model}", f"Use ranks from 1 to {size}")
    powers = tuple(2**power for power in range(size.bit_length()) if 2**power < size)
    ranks = (*powers, size) if spec.ranks is None else spec.ranks
    return spec.model_copy(update={"layers": layers, "rank": spec.rank or size, "ranks": ranks})


def material(model: Model, corpus: Corpus, dev: Corpus | None, spec: StructuralSpec) -> StructuralProbeData:
    """The sentences of a study; without `dev`, some documents of the corpus are set aside to score."""
    counts, notes = Counts(), []
    texts = _read(model, corpus, spec, counts, spec.limit)
    tested = _read(model, dev, spec, counts) if dev is not None else []
    if dev is None:
        texts, tested, by = _divided(texts, TESTED, "test", spec.seed)
        notes.append(f"scored on {by} of the corpus itself, because there is no --dev")
    held: list[Encoded] = []
    if spec.held_out == "train":
        texts, held, by = _divided(texts, HELD_OUT, "held out", spec.seed)
        notes.append(f"early stopping uses {by} held out of the training corpus")
    else:
        notes.append("early stopping uses the scored sentences, as in the released code, so scores are biased high")
    parts = [_part(every, spec, counts) for every in (texts, tested, held)]
    for part, name in zip(parts[: 2 + (spec.held_out == "train")], ("to train on", "to score", "for early stopping"), strict=False):
        if not len(part):
            raise RunError(f"no sentence with a tree is left {name}", "Use a larger corpus with dependencies, or name another with --dev")
    return StructuralProbeData(parts[0], parts[2] if spec.held_out == "train" else parts[1], parts[1], counts, tuple(notes))


def _part(texts: Sequence[Encoded], spec: StructuralSpec, counts: Counts) -> DataPart:
    """The texts that have a tree; texts with and without a tree are counted."""
    parsed = []
    for text in texts:
        if (tree := tree_of(text, spec.punct or "tag")) is None:
            counts.dropped.add("sentences without a tree of one root", text.id)
        else:
            counts.add(text)
            parsed.append((text, tree))
    return DataPart(tuple(text for text, _ in parsed), tuple(tree for _, tree in parsed))


def _read(model: Model, corpus: Corpus, spec: StructuralSpec, counts: Counts, limit: int | None = None) -> list[Encoded]:
    encoder = Encoder(model.tokenizer, max_length=spec.max_length, decoder_start=model.decoder_start)
    tally = counts.dropped
    texts = list(picked(encoder.texts(corpus, tally), limit, seed=spec.seed, tally=tally, corpus=corpus))
    counts.dropped.update(corpus.skipped)
    if spec.reference:  # the released script has 1 where every other program has 0
        return [replace(text, segments=np.ones_like(text.segments)) for text in texts]
    return texts


def _divided(texts: Sequence[Encoded], share: float, what: str, seed: int) -> tuple[list[Encoded], list[Encoded], str]:
    """The texts without a share of their documents, that share, and a description; by name, or by sentence if documents
    are few.
    """
    documents = list(dict.fromkeys(text.document for text in texts))
    whole = len(documents) >= FEW
    names = documents if whole else [text.id for text in texts]
    drawn = sorted(names, key=lambda name: digest(seed, what, name))
    aside = set(drawn[: max(1, round(share * len(drawn)))])
    portion = f"{len(aside):,} of {len(drawn):,} {'documents' if whole else 'sentences'}"
    away = [(text.document if whole else text.id) in aside for text in texts]
    return (
        [text for text, out in zip(texts, away, strict=True) if not out],
        [text for text, out in zip(texts, away, strict=True) if out],
        portion,
    )
