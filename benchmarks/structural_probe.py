"""Structural probes of all layers trained together, against one after the other in the form of the released code.

    python benchmarks/structural_probe.py [--quick] [--threads 1]

Both train for one epoch over the embedded corpus: distance and depth probes of full rank on every layer of the embedded
model, with hidden states in memory. The plain form trains one probe at a time, with torch's Adam, and computes the
difference of every pair of words before its norm. Both see the same batches and must end with the same matrices.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from functools import partial

import torch

from common import Row, interleaved, machine, ratio, spread, table
from headscope.core.tally import Tally
from headscope.corpora import read
from headscope.encoding.texts import Encoder
from headscope.models.load import load
from headscope.studies.hidden_states import HiddenStates, hidden_states
from headscope.studies.structural_probe.features import Features, batches
from headscope.studies.structural_probe.probe import KINDS, Gold, Segment, Segments
from headscope.studies.structural_probe.training import Fit, SentenceVectors, StructuralRecipe, shuffled, train
from headscope.studies.structural_probe.trees import tree_of

RECIPE = StructuralRecipe(epochs=1, sorted=False)


def material(limit: int) -> SentenceVectors:
    """Sentences of the sampler with their trees, and all layers of the embedded model, in memory."""
    model = load("mini", "cpu")
    texts = [text for text in Encoder(model.tokenizer).texts(read("sampler"), Tally()) if tree_of(text) is not None][:limit]
    trees = [tree for text in texts if (tree := tree_of(text)) is not None]
    kept = hidden_states(model, texts, None, level="word", dtype="float32")
    states = HiddenStates(kept.layers, kept.size, kept.lengths, kept.values.copy())
    size = float(states.values.std()) * states.size**0.5
    features = Features((("model", states),), torch.device("cpu"), (1 / size,) * len(states.layers))
    return SentenceVectors(features, trees, [text.id for text in texts])


def together(sentences: SentenceVectors, segments: Segments) -> torch.Tensor:
    """The matrices of all probes after one epoch, trained together."""
    names = [str(feature) for feature in sentences.features.every]
    few = SentenceVectors(sentences.features, sentences.trees[:1], sentences.ids[:1])  # one sentence, since early stopping is not measured
    return train(Fit.begin(segments.drawn(names, sentences.features.size), segments), sentences, few, RECIPE).matrices


def one_by_one(sentences: SentenceVectors, segments: Segments, order: Sequence[Sequence[int]]) -> torch.Tensor:
    """The same matrices, trained one probe at a time."""
    names = [str(feature) for feature in sentences.features.every]
    matrices = segments.drawn(names, sentences.features.size)
    for feature in range(len(names)):
        for segment, bounds in zip(segments.every, segments.bounds, strict=True):
            matrix = torch.nn.Parameter(matrices[feature, slice(*bounds)].clone())
            adam = torch.optim.Adam([matrix], RECIPE.rate)
            for batch in order:
                states = sentences.features.batch(batch, [feature])[0]
                gold = Gold.of([sentences.trees[number] for number in batch], states.device)
                adam.zero_grad()
                _loss(states @ matrix.T, gold, segment.kind == "distance").backward()  # type: ignore[no-untyped-call]
                adam.step()
            matrices[feature, slice(*bounds)] = matrix.detach()
    return matrices


def _loss(vectors: torch.Tensor, gold: Gold, distance: bool) -> torch.Tensor:
    if distance:
        squared = (vectors[:, :, None] - vectors[:, None]).pow(2).sum(-1)
        inside = gold.words[:, :, None] & gold.words[:, None]
        return (((squared - gold.distances).abs() * inside).sum((1, 2)) / gold.lengths**2).mean()
    return (((vectors.pow(2).sum(-1) - gold.depths).abs() * gold.words).sum(1) / gold.lengths).mean()


def rows(quick: bool) -> list[Row]:
    """The table."""
    sentences = material(40 if quick else 347)
    segments = Segments(tuple(Segment(kind, sentences.features.size, 0) for kind in KINDS))
    order = list(batches(sentences.features.lengths, shuffled(sentences.ids, RECIPE.seed, 0), RECIPE.batch))
    first = together(sentences, segments)
    gap = float((first - one_by_one(sentences, segments, order)).abs().max())
    if gap > 1e-4:
        raise AssertionError(f"matrices differ by {gap}")
    times = interleaved(
        {"together": partial(together, sentences, segments), "one by one": partial(one_by_one, sentences, segments, order)},
        1 if quick else 3,
    )
    layers = len(sentences.features.every)
    note = f"{spread(times, 'one by one', 'together')}; matrices equal to {gap:.0e}"
    return [
        Row(
            "structural",
            f"probes of {layers} layers one by one / together, one epoch",
            ratio(times, "one by one", "together"),
            note=note,
        ),
        Row(
            "structural",
            "seconds of one epoch together",
            sorted(times["together"])[len(times["together"]) // 2],
            "s",
            note=f"{len(sentences.trees)} sentences",
        ),
    ]


def main() -> None:
    """Read the options, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="fewer sentences and rounds")
    parser.add_argument("--threads", type=int, default=1, help="threads of torch")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    found = rows(options.quick)
    print("\n".join([*(f"- {line}" for line in machine(options.threads)), "", table(found)]))


if __name__ == "__main__":
    main()
