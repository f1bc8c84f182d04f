"""Probes trained together equal probes trained alone; the loss, Adam and the schedule equal plain implementations."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from headscope.studies.hidden_states import HiddenStates
from headscope.studies.structural_probe.features import Features, batches
from headscope.studies.structural_probe.probe import Gold, Segment, Segments, losses
from headscope.studies.structural_probe.sweep import Checkpoint
from headscope.studies.structural_probe.training import Fit, SentenceVectors, StructuralRecipe, mean_losses, shuffled, sized, train
from headscope.studies.structural_probe.trees import Tree
from headscope.studies.structural_probe.work import decay, projection

CPU = torch.device("cpu")
SIZE = 5


def tree(heads: list[int]) -> Tree:
    """A tree from heads, which are counted from 0 (-1 is the root). Distances come from the paths to the root."""

    def up(word: int) -> list[int]:
        return [word, *(up(heads[word]) if heads[word] >= 0 else [])]

    size = len(heads)
    paths = [up(word) for word in range(size)]
    distances = np.array([[len(set(paths[i]) ^ set(paths[j])) for j in range(size)] for i in range(size)])
    edges = tuple((min(word, head), max(word, head)) for word, head in enumerate(heads) if head >= 0)
    return Tree(np.array([len(path) - 1 for path in paths]), distances, np.ones(size, dtype=bool), edges, heads.index(-1))


TREES = [
    tree(heads) for heads in ([-1, 0], [1, -1, 1], [1, 2, -1, 2], [-1], [4, 0, 0, 2, -1], [1, -1, 3, 1], [2, 2, -1, 2, 3, 4], [-1, 0, 1])
]


def features(layers: int = 3, seed: int = 0, dtype: str = "float32") -> Features:
    lengths = tuple(len(tree.depths) for tree in TREES)
    values = np.random.default_rng(seed).normal(size=sum(lengths) * layers * SIZE).astype(dtype)
    return Features((("model", HiddenStates(tuple(range(layers)), SIZE, lengths, values)),), CPU)


def sentences(some: Features) -> SentenceVectors:
    return SentenceVectors(some, TREES, [f"s{number}" for number in range(len(TREES))])


def fitted(
    segments: tuple[Segment, ...], recipe: StructuralRecipe, chosen: tuple[int, ...] | None = None, held: int = 1
) -> tuple[Fit, Segments]:
    every = features()
    mine, other = (Features(some.parts, CPU, (), chosen) for some in (every, features(seed=held)))
    layout = Segments(segments)
    drawn = layout.drawn([str(feature) for feature in mine.every], SIZE, torch.float64)
    return train(Fit.begin(drawn, layout), sentences(mine), sentences(other), recipe), layout


def test_losses_equal_plain_loops() -> None:
    some = features(2)
    layout = Segments((Segment("distance", 2, 0), Segment("depth", 3, 0)))
    matrices = layout.drawn(["a", "b"], SIZE, torch.float64)
    numbers = [4, 1, 3]
    states = some.batch(numbers, [0, 1], torch.float64)
    found = losses(torch.einsum("ftwd,frd->ftwr", states, matrices), Gold.of([TREES[n] for n in numbers], CPU, torch.float64), layout)
    for feature in range(2):
        for row, number in enumerate(numbers):
            vectors, gold = some.parts[0][1][number][feature].astype(np.float64), TREES[number]
            size = len(vectors)
            first, second = matrices[feature, :2].numpy(), matrices[feature, 2:].numpy()
            distance = sum(
                abs(gold.distances[i, j] - np.sum((first @ (vectors[i] - vectors[j])) ** 2)) for i in range(size) for j in range(size)
            )
            depth = sum(abs(gold.depths[i] - np.sum((second @ vectors[i]) ** 2)) for i in range(size))
            assert found[0, feature, row].item() == pytest.approx(distance / size**2, abs=1e-12)
            assert found[1, feature, row].item() == pytest.approx(depth / size, abs=1e-12)


def test_training_one_probe_equals_a_loop_with_the_adam_of_torch() -> None:
    recipe = StructuralRecipe(rate=0.02, batch=3, epochs=3, sorted=False)
    fit, layout = fitted((Segment("distance", 4, 0),), recipe, (1,))
    some = features()
    matrix = torch.nn.Parameter(layout.drawn(["model/1"], SIZE, torch.float64)[0])
    adam = torch.optim.Adam([matrix], 0.02)
    for epoch in range(3):
        assert float(fit.tensors["rate"][0, 0]) == 1.0  # the schedule has not reduced the rate
        order = shuffled([f"s{number}" for number in range(len(TREES))], 0, epoch)
        for begin in range(0, len(order), 3):
            loss = torch.zeros((), dtype=torch.float64)
            batch = order[begin : begin + 3]
            for number in batch:
                vectors = torch.from_numpy(some.parts[0][1][number][1].astype(np.float64)) @ matrix.T
                squared = ((vectors[:, None] - vectors[None]) ** 2).sum(-1)
                loss = loss + (squared - torch.from_numpy(TREES[number].distances)).abs().mean() / len(batch)
            adam.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            adam.step()
    torch.testing.assert_close(fit.matrices[0], matrix.detach(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("reset", [False, True])
def test_probes_trained_together_equal_probes_trained_alone(reset: bool) -> None:
    recipe = StructuralRecipe(rate=0.05, batch=3, epochs=25, patience=3, reset=reset)
    every = tuple(Segment(kind, rank, seed) for kind in ("distance", "depth") for rank in (1, 3) for seed in (0, 1))
    together, layout = fitted(every, recipe)
    ends = {}
    for feature in range(3):
        for number, segment in enumerate(every):
            alone, _ = fitted((segment,), recipe, (feature,))
            rows = slice(*layout.bounds[number])
            torch.testing.assert_close(together.tensors["best"][feature, rows], alone.tensors["best"][0], rtol=1e-5, atol=1e-7)
            for name in ("loss", "epochs", "best_epoch", "rate"):
                assert float(together.state()[name][feature, number]) == pytest.approx(float(alone.state()[name][0, 0]), rel=1e-6)
            ends[feature, number] = int(alone.tensors["epochs"][0, 0])
    assert len(set(ends.values())) > 2  # some probes stop long before others


def test_the_best_epoch_is_kept_and_training_stops_after_patience() -> None:
    seen: list[torch.Tensor] = []
    recipe = StructuralRecipe(rate=0.5, batch=2, epochs=40, patience=2)
    some, held = features(), features(seed=3)
    layout = Segments((Segment("depth", 3, 0),))
    fit = Fit.begin(layout.drawn(["x", "y", "z"], SIZE, torch.float64), layout)
    train(fit, sentences(some), sentences(held), recipe, lambda fit: seen.append(fit.matrices.clone()))
    for feature in range(3):
        track = [float(mean_losses(matrices, layout, sentences(held), [0, 1, 2], [0])[feature, 0]) for matrices in seen]
        own = track[: int(fit.tensors["epochs"][feature, 0])]
        best = int(fit.patience.best[feature, 0])
        assert own[best - 1] == pytest.approx(float(fit.patience.loss[feature, 0]))
        assert own[best - 1] <= min(own) + recipe.least
        assert len(own) == best + recipe.patience
        assert torch.equal(fit.tensors["best"][feature], seen[best - 1][feature])


def test_interrupted_training_resumes_to_identical_matrices(tmp_path: Path) -> None:
    recipe = StructuralRecipe(rate=0.05, batch=3, epochs=8)
    every = (Segment("distance", 2, 0), Segment("depth", 2, 0))
    whole, layout = fitted(every, recipe)
    place = Checkpoint(tmp_path / "t.safetensors", "key", resume=True)
    assert place.read(layout, CPU) is None

    def stop(fit: Fit) -> None:
        place.write(fit)
        if fit.epoch == 3:
            raise KeyboardInterrupt

    start = Fit.begin(layout.drawn([str(feature) for feature in features().every], SIZE, torch.float64), layout)
    with pytest.raises(KeyboardInterrupt):
        train(start, sentences(features()), sentences(features(seed=1)), recipe, stop)
    again = place.read(layout, CPU)
    assert again is not None
    assert again.epoch == 3
    train(again, sentences(features()), sentences(features(seed=1)), recipe)
    assert torch.equal(again.tensors["best"], whole.tensors["best"])
    assert Checkpoint(place.path, "another", resume=True).read(layout, CPU) is None
    assert Checkpoint(place.path, "key").read(layout, CPU) is None


def test_the_order_of_sentences_does_not_change_the_matrices() -> None:
    recipe = StructuralRecipe(rate=0.05, batch=3, epochs=4)
    layout = Segments((Segment("distance", 2, 0),))
    order = [5, 2, 7, 0, 1, 6, 4, 3]
    every = features()
    states = every.parts[0][1]
    lengths = tuple(states.lengths[n] for n in order)
    shuffled = HiddenStates(states.layers, SIZE, lengths, np.concatenate([states[n].reshape(-1) for n in order]))
    moved = SentenceVectors(Features((("model", shuffled),), CPU), [TREES[n] for n in order], [f"s{n}" for n in order])
    found = [
        train(Fit.begin(layout.drawn(["a", "b", "c"], SIZE, torch.float64), layout), some, some, recipe).matrices
        for some in (sentences(every), moved)
    ]
    torch.testing.assert_close(found[0], found[1], rtol=1e-9, atol=1e-9)


def test_initial_matrices_are_scaled_to_the_sum_of_the_gold_values() -> None:
    layout = Segments((Segment("distance", 2, 0), Segment("depth", 1, 0)))
    some = features(2)
    matrices = sized(layout.drawn(["a", "b"], SIZE, torch.float64), layout, sentences(some))
    for feature in range(2):
        predicted, wanted = np.zeros(2), np.zeros(2)
        for number, gold in enumerate(TREES):
            vectors = some.parts[0][1][number][feature].astype(np.float64)
            first, second = vectors @ matrices[feature, :2].numpy().T, vectors @ matrices[feature, 2:].numpy().T
            predicted += ((first[:, None] - first) ** 2).sum(), (second**2).sum()
            wanted += gold.distances.sum(), gold.depths.sum()
        np.testing.assert_allclose(predicted, wanted, rtol=1e-6)


def test_features_are_selected_scaled_and_padded() -> None:
    states = features(3).parts[0][1]
    other = features(2, seed=5).parts[0][1]
    both = Features((("model", states), ("random", other)), CPU, (1.0, 2.0, 3.0, 4.0, 5.0), (1, 2, 4))
    assert [str(feature) for feature in both.every] == ["model/1", "model/2", "random/1"]
    batch = both.batch([0, 2], [0, 2])
    assert batch.shape == (2, 2, 4, SIZE)
    torch.testing.assert_close(batch[0, 1], torch.from_numpy(states[2][1]) * 2)
    torch.testing.assert_close(batch[1, 0, :2], torch.from_numpy(other[0][1]) * 5)
    assert not batch[:, 0, 2:].any()


def test_the_order_of_an_epoch_depends_on_seed_and_epoch_but_not_on_the_file() -> None:
    names = [f"s{number}" for number in range(30)]
    orders = [shuffled(names, seed, epoch) for seed, epoch in ((0, 0), (0, 1), (1, 0))]
    assert all(sorted(order) == list(range(30)) for order in orders)
    assert orders[0] != orders[1] != orders[2]
    assert [names[number] for number in orders[0]] == [names[::-1][number] for number in shuffled(names[::-1], 0, 0)]


def test_batches_contain_every_sentence_once_and_pools_sort_by_length() -> None:
    lengths = [3, 9, 1, 7, 5, 2, 8, 4, 6, 10]
    order = [4, 0, 9, 2, 7, 1, 3, 8, 6, 5]
    assert list(batches(lengths, order, 4)) == [[4, 0, 9, 2], [7, 1, 3, 8], [6, 5]]
    found = list(batches(lengths, order, 2, pool=5))
    assert sorted(number for batch in found for number in batch) == list(range(10))
    assert all(abs(lengths[batch[0]] - lengths[batch[1]]) == 1 for batch in found)


def test_decay_equals_a_plain_loop_and_projection_depends_on_the_seed() -> None:
    states = features(1).parts[0][1]
    for twice in (False, True):
        found = decay(states, twice)
        for number, gold in enumerate(TREES):
            given, size = states[number][0], len(gold.depths)
            for word in range(size):
                weights = [0.5 ** abs(word - other) * (2 if twice and other == word else 1) for other in range(size)]
                expected = sum(weight * given[other] for other, weight in enumerate(weights)) / sum(weights)
                np.testing.assert_allclose(found[number][0, word], expected, rtol=1e-5)
    one, same, another = projection(states, 1), projection(states, 1), projection(states, 2)
    assert np.array_equal(one.values, same.values)
    assert not np.allclose(one.values, another.values)
    assert one[4].shape == (1, 5, SIZE)
    shorter = HiddenStates((0,), SIZE, (3,), states[4][:, :3].reshape(-1))
    first = np.array(projection(shorter, 1)[0])
    np.testing.assert_allclose(first[0, :, :3], one[4][0, :3, :3], rtol=1e-5)  # the forward half does not depend on later words
    assert not np.allclose(first[0, :, 3:], one[4][0, :3, 3:])
