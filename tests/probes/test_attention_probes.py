"""Attention probes, compared with plain loops over pairs of words; probes trained together, compared with probes
trained alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest
import torch

from attention_probe import Plain
from headscope.studies.attention_probe.evaluation import HeadWeights, best_candidates, best_trees
from headscope.studies.attention_probe.maps import UNSCORED, ParsedSentence, SentenceBatch, pieces
from headscope.studies.attention_probe.probes import (
    AttentionProbe,
    AttentionWordsProbe,
    Probe,
    Vectors,
    WordsDistancesProbe,
    candidates_of,
    distances,
)
from headscope.studies.attention_probe.spec import Alignment, Root
from headscope.studies.attention_probe.training import AttentionRecipe, SentenceMaps, steps, train

HEADS, ROWS, SIZE = 3, 9, 5
CPU = torch.device("cpu")


def sentence(rng: np.random.Generator, size: int, unscored: bool = False) -> tuple[ParsedSentence, torch.Tensor]:
    gold = [int(rng.choice([j for j in range(size + 1) if j != i + 1])) for i in range(size)]
    if unscored:
        gold[0] = UNSCORED
    maps = torch.from_numpy(rng.dirichlet(np.ones(size + 2), (size + 2, HEADS)).astype(np.float32)).transpose(1, 2)
    return ParsedSentence(torch.from_numpy(rng.integers(0, ROWS, size)), torch.tensor(gold)), maps


class GivenMaps:
    """A store whose maps are given."""

    def __init__(self, maps: Sequence[torch.Tensor]) -> None:
        self.given = maps
        self.maps = type("", (), {"heads": range(HEADS)})()

    def ahead(self, steps: Sequence[Sequence[int]]) -> list[tuple[Sequence[int], list[torch.Tensor]]]:
        return [(step, [self.given[place] for place in step]) for step in steps]


def random_sentences(sizes: Sequence[int], seed: int = 0) -> SentenceMaps:
    rng = np.random.default_rng(seed)
    trees, maps = zip(*(sentence(rng, size, number == 1) for number, size in enumerate(sizes)), strict=True)
    return SentenceMaps([f"s{number}" for number in range(len(sizes))], trees, GivenMaps(maps), CPU)  # type: ignore[arg-type]


def one_batch(given: SentenceMaps) -> SentenceBatch:
    (_, _, batch), *rest = given.batches([range(len(given.trees))], 1, cells=2**40)
    assert not rest
    return batch


def vectors() -> Vectors:
    table = torch.randn(ROWS, SIZE, generator=torch.Generator().manual_seed(1))
    table[0] = 0
    return Vectors(table)


def with_noise(probe: Probe) -> Probe:
    """The probe with noise added to every parameter."""
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for parameter in probe.parameters():
            parameter.add_(torch.randn(parameter.shape, generator=generator))
    return probe


def plain_attention(probe: AttentionProbe | AttentionWordsProbe, seed: int, maps: torch.Tensor, forms: list[int]) -> np.ndarray:
    """The scores of docs/attention-probe.md, pair by pair. The positions of maps are start, end, words."""
    m = len(forms)
    table = probe.vectors.table if isinstance(probe, AttentionWordsProbe) else None
    scale: list[float] = probe.scale.tolist()
    found = np.zeros((m, m + 1))

    def feature(k: int, i: int, j: int) -> float:
        head = k % HEADS
        return float(maps[i, j, head] if k < HEADS else maps[j, i, head]) * scale[k]

    def weight(k: int, i: int, candidate: int) -> float:
        if isinstance(probe, AttentionProbe):
            return float(probe.weight[seed, k])
        assert table is not None
        after = [*forms, None] if probe.alignment == "reference" else [None, *forms]
        form = after[candidate]
        other = torch.zeros(SIZE) if form is None else table[form]
        bias = 0.0 if probe.bias is None else float(probe.bias[seed, k])
        return float(probe.own[seed, k] @ table[forms[i]] + probe.other[seed, k] @ other) + bias

    for i in range(m):
        for candidate in range(m + 1):
            for k in range(2 * HEADS):
                if candidate:
                    found[i, candidate] += weight(k, i, candidate) * feature(k, 2 + i, 1 + candidate)
                elif probe.root == "shared":
                    ends = sum(float(probe.ends[seed, end]) * feature(k, 2 + i, end) for end in (0, 1))
                    found[i, 0] += weight(k, i, 0) * ends
                else:
                    found[i, 0] += sum(float(probe.ends[seed, end, k]) * feature(k, 2 + i, end) for end in (0, 1))
        if probe.root == "separate":
            found[i, 0] += float(probe.at_root[seed])
    return found


@pytest.mark.parametrize("root", ["shared", "separate"])
@pytest.mark.parametrize("kind", ["attention", "fixed", "reference", "no bias"])
@torch.no_grad()
def test_attention_scores_equal_a_loop_over_pairs(kind: str, root: Root) -> None:
    given = random_sentences([3, 5, 1])
    scale = torch.linspace(0.5, 2, 2 * HEADS)
    probe: AttentionProbe | AttentionWordsProbe
    if kind == "attention":
        probe = AttentionProbe(range(2), 2 * HEADS, root, scale)
    else:
        alignment: Alignment = "reference" if kind == "reference" else "fixed"
        probe = AttentionWordsProbe(range(2), 2 * HEADS, vectors(), root, scale, alignment, bias=kind != "no bias")
    with_noise(probe)
    scores = probe(one_batch(given))
    order = sorted(range(3), key=lambda place: len(given.trees[place]))
    for row, place in enumerate(order):
        tree, maps = given.trees[place], given.store.given[place]  # type: ignore[union-attr]
        for seed in range(2):
            plain = plain_attention(probe, seed, maps, tree.forms.tolist())
            np.testing.assert_allclose(scores[row, : len(tree), seed, : len(tree) + 1], plain, rtol=1e-4, atol=1e-4)
            assert (scores[row, : len(tree), seed, len(tree) + 1 :] == -math.inf).all()


@pytest.mark.parametrize("alignment", ["fixed", "reference"])
@torch.no_grad()
def test_words_and_distances_scores_equal_a_loop_over_pairs(alignment: Alignment) -> None:
    given = random_sentences([4, 2])
    probe = WordsDistancesProbe(range(2), vectors(), alignment, hidden=6)
    with_noise(probe)
    scores = probe(one_batch(given))
    table = probe.vectors.table
    assert table is not None
    for row, place in enumerate((1, 0)):
        forms = given.trees[place].forms.tolist()
        m = len(forms)
        after = [*forms, None] if alignment == "reference" else [None, *forms]
        for seed in range(2):
            for i in range(m):
                for candidate in range(m + 1):
                    j = candidate - 1
                    near = [float(j - i == step) for step in (0, -1, 1, -2, 2)]
                    apart = [max(0, j - i) / m, max(0, i - j) / m, *near, 0.0] if candidate else [0.0] * 7 + [1.0]
                    form = after[candidate]
                    other = torch.zeros(SIZE) if form is None else table[form]
                    hidden = (
                        probe.own[seed] @ table[forms[i]]
                        + probe.other[seed] @ other
                        + probe.apart[seed] @ torch.tensor(apart)
                        + probe.bias[seed]
                    )
                    assert float(scores[row, i, seed, candidate]) == pytest.approx(float(probe.out[seed] @ hidden.tanh()), abs=1e-5)


def test_the_root_vector_is_first_if_fixed_and_last_in_the_reference_alignment() -> None:
    forms = torch.tensor([[4, 5, 6], [7, 8, 0]])
    assert candidates_of(forms, "fixed").tolist() == [[0, 4, 5, 6], [0, 7, 8, 0]]
    assert candidates_of(forms, "reference").tolist() == [[4, 5, 6, 0], [7, 8, 0, 0]]


def test_distance_features_by_hand() -> None:
    found = distances(torch.tensor([4]), 4)[0]
    assert found[1, 0].tolist() == [0, 0, 0, 0, 0, 0, 0, 1]  # the root
    assert found[1, 4].tolist() == [0.5, 0, 0, 0, 0, 0, 1, 0]  # two words to the right
    assert found[3, 1].tolist() == [0, 0.75, 0, 0, 0, 0, 0, 0]
    assert found[2, 3].tolist() == [0, 0, 1, 0, 0, 0, 0, 0]  # the word itself


def make(kind: str, seeds: Sequence[int]) -> Probe:
    if kind == "attention":
        return AttentionProbe(seeds, 2 * HEADS)
    if kind == "attention-words":
        return AttentionWordsProbe(seeds, 2 * HEADS, vectors(), "separate")
    return WordsDistancesProbe(seeds, vectors(), hidden=7)


def weights(probe: Probe, seed: int) -> list[torch.Tensor]:
    return [parameter.detach()[seed] for parameter in probe.parameters()]


def test_probes_and_seeds_trained_together_equal_those_trained_alone() -> None:
    given = random_sentences([5, 3, 4, 2, 6, 3, 7])
    recipe = AttentionRecipe(rate=0.05, decay="linear", epochs=3, batch=3, order="shuffled", seed=4)
    kinds = ("attention", "attention-words", "words-distances")
    torch.set_default_dtype(torch.float64)
    try:
        probes = {kind: make(kind, (3, 8)).double() for kind in kinds}
        given = SentenceMaps(given.names, given.trees, GivenMaps([maps.double() for maps in given.store.given]), CPU)  # type: ignore[union-attr, arg-type]
        train(probes, given, recipe)
        for kind in kinds:
            for place, seed in enumerate((3, 8)):
                alone = make(kind, (seed,)).double()
                before = [one.clone() for one in weights(alone, 0)]
                train({kind: alone}, given, recipe)
                for one, other, first in zip(weights(alone, 0), weights(probes[kind], place), before, strict=True):
                    torch.testing.assert_close(one, other, rtol=1e-7, atol=1e-9)
                    assert not torch.equal(one, first)
    finally:
        torch.set_default_dtype(torch.float32)


def test_training_on_one_sentence_per_step_equals_a_plain_loop() -> None:
    """The reference recipe: Adam by its formulas, the summed cross-entropy of one sentence per step, sentences in file
    order.
    """
    given = random_sentences([4, 3, 5])
    probe = AttentionProbe([2], 2 * HEADS)
    values = [parameter.detach().clone().double().requires_grad_() for parameter in probe.parameters()]
    ends, weight = values
    train({"attention": probe}, given, AttentionRecipe())
    moments = [(torch.zeros_like(value), torch.zeros_like(value)) for value in values]
    for step, (tree, maps) in enumerate(zip(given.trees, given.store.given, strict=True), 1):  # type: ignore[union-attr]
        m = len(tree)
        both = torch.cat([maps, maps.transpose(0, 1)], 2).double()  # [position, position, k]
        met = torch.einsum("ijk,k->ij", both, weight[0])[2:]
        scores = torch.cat([(met[:, :2] * ends[0]).sum(1, keepdim=True), met[:, 2:]], 1)
        scored = [i for i in range(m) if tree.gold[i] != UNSCORED]
        loss = torch.nn.functional.cross_entropy(scores[scored], tree.gold[scored], reduction="sum")
        slopes = torch.autograd.grad(loss, values)
        with torch.no_grad():
            for value, slope, (mean, square) in zip(values, slopes, moments, strict=True):
                mean.mul_(0.9).add_(0.1 * slope)
                square.mul_(0.999).add_(0.001 * slope**2)
                value -= 0.002 * (mean / (1 - 0.9**step)) / ((square / (1 - 0.999**step)).sqrt() + 1e-8)
    for parameter, value in zip(probe.parameters(), values, strict=True):
        torch.testing.assert_close(parameter.detach().double(), value.detach(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", ["attention", "attention-words", "words-distances"])
def test_padding_and_pieces_do_not_change_the_loss(kind: str) -> None:
    given = random_sentences([5, 3, 4, 1, 6])
    probe = with_noise(make(kind, (0, 1)))
    whole = probe.losses(one_batch(given)).detach()
    for cells in (1, 300):
        parts = [batch for _, _, batch in given.batches([range(5)], HEADS, cells=cells)]
        assert len(parts) > 1
        torch.testing.assert_close(torch.stack([probe.losses(part) for part in parts]).sum(0), whole, rtol=1e-5, atol=1e-5)


def test_the_compiled_loss_and_its_gradients_equal_the_plain_ones() -> None:
    given = random_sentences([5, 3, 1, 6])
    probe = AttentionProbe(range(3), 2 * HEADS, scale=torch.linspace(0.5, 2, 2 * HEADS))
    with_noise(probe)
    batch = one_batch(given)
    factors = torch.tensor([1.0, 2.0, -0.5])
    fast, plain = probe.losses(batch), Probe.losses(probe, batch)
    assert type(fast.grad_fn).__name__ == "_LearntBackward"
    torch.testing.assert_close(fast, plain, rtol=1e-5, atol=1e-5)
    one, other = (torch.autograd.grad(losses @ factors, list(probe.parameters())) for losses in (fast, plain))
    for left, right in zip(one, other, strict=True):
        torch.testing.assert_close(left, right, rtol=1e-4, atol=1e-5)
        assert left.abs().min() > 0


@torch.no_grad()
def test_the_probe_of_the_benchmark_computes_equal_scores() -> None:
    given = random_sentences([5, 3])
    probe = AttentionProbe([0], 2 * HEADS)
    with_noise(probe)
    other = Plain(2 * HEADS)
    other.weight.copy_(probe.weight[0])
    other.start.copy_(probe.ends[0, 0])
    other.end.copy_(probe.ends[0, 1])
    scores = probe(one_batch(given))
    for row, place in enumerate((1, 0)):
        size = len(given.trees[place])
        maps = given.store.given[place]  # type: ignore[union-attr]
        torch.testing.assert_close(other(maps.permute(2, 0, 1)), scores[row, :size, 0, : size + 1], rtol=1e-4, atol=1e-5)


def test_pieces_contain_every_sentence_once() -> None:
    found = list(pieces([5, 2, 9, 2], cells=2 * 3 * 7 * 7, each=3))
    assert found == [[1, 3], [0], [2]]


def test_steps_cover_all_sentences_and_shuffling_does_not_depend_on_file_order() -> None:
    given = random_sentences([*range(1, 30), *range(1, 30)])
    recipe = AttentionRecipe(batch=4, order="shuffled", seed=3)
    found = steps(given.trees, given.names, recipe, 0)
    assert sorted(place for step in found for place in step) == list(range(58))
    named = [sorted(given.names[place] for place in step) for step in found]
    back = steps(given.trees[::-1], given.names[::-1], recipe, 0)
    assert [sorted(given.names[::-1][place] for place in step) for step in back] == named
    assert steps(given.trees, given.names, recipe, 1) != found
    assert steps(given.trees, given.names, AttentionRecipe(batch=40), 5) == [list(range(40)), list(range(40, 58))]


def planted(sizes: Sequence[int]) -> SentenceMaps:
    """Sentences in which head 1 attends from the governor to the word, with the start token as the root. The other
    heads are noise.
    """
    rng = np.random.default_rng(5)
    trees, all_maps = [], []
    for size in sizes:
        tree, maps = sentence(rng, size)
        maps[..., 1] = 0.01
        for i, gold in enumerate(tree.gold.tolist()):
            maps[gold + 1 if gold else 0, 2 + i, 1] = 0.9
        trees.append(tree)
        all_maps.append(maps)
    return SentenceMaps([str(number) for number in range(len(sizes))], trees, GivenMaps(all_maps), CPU)  # type: ignore[arg-type]


def test_a_planted_parsing_head_is_learned_and_has_the_largest_pull() -> None:
    given = planted([4, 6, 5, 3, 7] * 6)
    probe = AttentionProbe(range(2), 2 * HEADS)
    train({"attention": probe}, given, AttentionRecipe(rate=0.3, batch=5, epochs=10, order="shuffled"))
    batch = one_batch(given)
    assert bool((probe.found(batch) == batch.gold[..., None])[batch.words].all())
    of_heads = HeadWeights(probe)
    of_heads.observe(batch)
    assert of_heads.pull.mean(1).argmax() == HEADS + 1


@pytest.mark.parametrize("kind", ["attention", "attention-words"])
@torch.no_grad()
def test_weights_and_pulls_of_heads_equal_a_loop_over_pairs(kind: str) -> None:
    given = random_sentences([3, 5])
    probe = with_noise(make(kind, (0, 1)))
    assert isinstance(probe, AttentionProbe | AttentionWordsProbe)
    of_heads = HeadWeights(probe)
    for _, _, batch in given.batches([[0], [1]], 1):
        of_heads.observe(batch)
    weight, pull = [], []
    for tree, maps in zip(given.trees, given.store.given, strict=True):  # type: ignore[union-attr]
        forms = tree.forms.tolist()
        for i, gold in enumerate(tree.gold.tolist()):
            if gold > 0:
                own, parts = np.zeros(2 * HEADS), np.zeros((len(tree), 2 * HEADS))
                for k in range(2 * HEADS):
                    for j in range(len(tree)):
                        if isinstance(probe, AttentionProbe):
                            w = float(probe.weight[1, k])
                        else:
                            assert probe.bias is not None
                            assert probe.vectors.table is not None
                            table = probe.vectors.table
                            w = float(probe.own[1, k] @ table[forms[i]] + probe.other[1, k] @ table[forms[j]] + probe.bias[1, k])
                        value = maps[2 + i, 2 + j, k % HEADS] if k < HEADS else maps[2 + j, 2 + i, k % HEADS]
                        parts[j, k] = w * float(value)
                        if j == gold - 1:
                            own[k] = w
                weight.append(own)
                pull.append(parts[gold - 1] - parts.mean(0))
    assert of_heads.n == len(weight)
    np.testing.assert_allclose(of_heads.weight[:, 1], np.mean(weight, 0), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(of_heads.pull[:, 1], np.mean(pull, 0), rtol=1e-4, atol=1e-5)


def test_early_stopping_keeps_the_best_epoch_of_each_seed() -> None:
    # The maps are noise, so that training makes the held-out loss worse.
    training, held = random_sentences([4, 5, 3], seed=1), random_sentences([6, 4, 5, 5], seed=2)
    probe = AttentionWordsProbe(range(3), 2 * HEADS, vectors())
    recipe = AttentionRecipe(rate=0.5, epochs=12, batch=1, patience=2)
    epochs = train({"x": probe}, training, recipe, held)["x"]
    trail = []
    batch = one_batch(held)
    for number in range(12):
        one = AttentionWordsProbe(range(3), 2 * HEADS, vectors())
        train({"x": one}, training, AttentionRecipe(rate=0.5, epochs=number + 1, batch=1))
        trail.append(one.losses(batch).detach())
        if number + 1 - max(int(torch.stack(trail)[:, seed].argmin()) + 1 for seed in range(3)) >= 2:
            break
    assert len(trail) < 12
    best = torch.stack(trail).min(0)
    assert epochs == (best.indices + 1).tolist()
    torch.testing.assert_close(probe.losses(batch).detach(), best.values, rtol=1e-4, atol=1e-3)


@torch.no_grad()
def test_decoded_trees_have_one_root_and_no_cycles() -> None:
    given = random_sentences([6, 4, 5])
    probe = with_noise(AttentionProbe(range(2), 2 * HEADS))
    batch = one_batch(given)
    scores = probe(batch)
    alone, trees = best_candidates(scores), best_trees(scores, batch)
    for row, size in enumerate(batch.sizes.tolist()):
        for seed in range(2):
            heads = trees[row, :size, seed].tolist()
            assert heads.count(0) == 1
            for word in range(size):
                path, node = set(), word + 1
                while node:
                    assert node not in path
                    path.add(node)
                    node = heads[node - 1]
            gained = float(sum(scores[row, i, seed, head] for i, head in enumerate(heads)))
            assert gained <= float(sum(scores[row, i, seed, head] for i, head in enumerate(alone[row, :size, seed].tolist()))) + 1e-5
