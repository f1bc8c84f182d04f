"""UUAS, DSpr, Root% and NSpr, compared with plain implementations of their definitions."""

from __future__ import annotations

import lzma
from itertools import islice, pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

import headscope as hs
from headscope.core.tally import Tally
from headscope.encoding.texts import Encoder
from headscope.models.load import load_tokenizer
from headscope.stats.bootstrap import poisson_weights
from headscope.stats.inference import Support, interval
from headscope.studies.hidden_states import HiddenStates
from headscope.studies.structural_probe.features import Features
from headscope.studies.structural_probe.metrics import COLUMNS, METRICS, Scored
from headscope.studies.structural_probe.probe import Segment, Segments
from headscope.studies.structural_probe.scoring import paired, score, score_chain
from headscope.studies.structural_probe.training import SentenceVectors
from headscope.studies.structural_probe.trees import Tree, smallest_tree, tree_of

CPU = torch.device("cpu")


def random_tree(random: np.random.Generator, size: int) -> Tree:
    heads = [-1, *(int(random.integers(0, word)) for word in range(1, size))]
    depths = np.zeros(size, dtype=np.int64)
    above = np.eye(size, dtype=np.int64)
    for word in range(1, size):
        depths[word] = depths[heads[word]] + 1
        above[word] |= above[heads[word]]
    distances = depths[:, None] + depths - 2 * (above @ above.T - 1)
    scored = random.random(size) < 0.8
    return Tree(depths, distances, scored, tuple(smallest_tree(distances, np.flatnonzero(scored).tolist())), 0)


def plain(distances: list[np.ndarray], depths: list[np.ndarray], trees: list[Tree], single: bool) -> dict[str, float]:
    """The four metrics by loops, over all sentences at once."""
    edges = [0, 0]
    roots = []
    by_length: dict[str, dict[int, list[float]]] = {"DSpr": {}, "NSpr": {}}
    for far, deep, tree in zip(distances, depths, trees, strict=True):
        words = [word for word in range(len(deep)) if tree.scored[word]]
        found = {frozenset(edge) for edge in smallest_tree(far, words)}
        edges[0] += len(found & {frozenset(edge) for edge in tree.edges})
        edges[1] += len(tree.edges)
        if len(words) > 1 or (single and words):
            roots.append(min(words, key=lambda word: deep[word]) == tree.root)
        if 5 <= len(deep) <= 50:
            rho = [spearmanr(far[word], tree.distances[word]).statistic for word in range(len(deep))]
            by_length["DSpr"].setdefault(len(deep), []).extend(rho)
            by_length["NSpr"].setdefault(len(deep), []).append(spearmanr(deep, tree.depths).statistic)
    correlations = {name: float(np.mean([np.mean(values) for values in groups.values()])) for name, groups in by_length.items()}
    return {"UUAS": edges[0] / edges[1], "Root%": float(np.mean(roots)), **correlations}


@pytest.mark.parametrize("single", [False, True])
def test_metrics_equal_a_plain_implementation(single: bool) -> None:
    random = np.random.default_rng(4)
    trees = [random_tree(random, size) for size in (1, 2, 5, 5, 9, 12, 4, 7, 9, 51)]
    lengths = tuple(len(tree.depths) for tree in trees)
    states = HiddenStates((0, 1), 6, lengths, random.normal(size=sum(lengths) * 12).astype(np.float32))
    layout = Segments((Segment("distance", 2, 0), Segment("distance", 6, 1), Segment("depth", 6, 1), Segment("depth", 2, 0)))
    assert paired(layout) == [(0, 3), (1, 2)]
    matrices = layout.drawn(["a", "b"], 6, torch.float64)
    sentences = SentenceVectors(Features((("model", states),), CPU), trees, [str(number) for number in range(len(trees))])
    numbers = score(matrices, layout, sentences, single)
    assert numbers.shape == (10, 2, 2, len(COLUMNS))
    for feature in range(2):
        for pair, (one, other) in enumerate(paired(layout)):
            first, second = (matrices[feature, slice(*layout.bounds[place])].numpy() for place in (one, other))
            vectors = [states[number][feature].astype(np.float64) for number in range(len(trees))]
            far = [(((v @ first.T)[:, None] - (v @ first.T)[None]) ** 2).sum(-1) for v in vectors]
            deep = [((v @ second.T) ** 2).sum(-1) for v in vectors]
            expected = plain(far, deep, trees, single)
            scored = Scored(numbers[:, feature, [pair]], ["d"] * 10, replicates=0)
            for metric in METRICS:
                assert scored.of(metric)[0, 0] == pytest.approx(expected[metric], abs=1e-9), metric


def test_replicates_and_intervals_resample_documents() -> None:
    random = np.random.default_rng(1)
    numbers = np.zeros((12, 1, len(COLUMNS)))
    numbers[:, 0, 0], numbers[:, 0, 1] = [1, 2, 3, 4, 0, 5] * 2, 5
    numbers[:, 0, 2], numbers[:, 0, 3], numbers[:, 0, 8] = random.random(12) * 5, 5, [5, 5, 6, 6, 7, 7] * 2
    units = [*"aabbccddeeff"]
    scored = Scored(numbers, units, replicates=50, seed=3)
    weights = poisson_weights([*"abcdef"], 50, 3)[np.repeat(np.arange(6), 2)]
    for replicate in (0, 7, 23):
        counts = weights[:, replicate]
        assert scored.of("UUAS")[replicate, 0] == pytest.approx((counts @ numbers[:, 0, 0]) / (counts.sum() * 5))
        means = []
        for length in (5, 6, 7):
            own = (numbers[:, 0, 8] == length) & (counts > 0)
            if own.any():
                means.append((counts[own] @ numbers[own, 0, 2]) / (counts[own] @ numbers[own, 0, 3]))
        assert scored.of("DSpr")[replicate, 0] == pytest.approx(np.mean(means))
    low, high = scored.interval(scored.of("UUAS"))
    assert low[0] < scored.of("UUAS")[0, 0] < high[0]
    expected = interval(scored.of("UUAS")[0], scored.of("UUAS")[1:], Support.alike(6))
    assert (low[0], high[0]) == (expected[0][0], expected[1][0])
    alone = Scored(numbers, ["a"] * 12, replicates=50)
    assert np.isnan(alone.interval(alone.of("UUAS"))[0][0])


def test_the_score_of_a_chain_of_words_by_hand() -> None:
    # Words 0 and 3 depend on 1, and 1 depends on 2. The chain finds the edges 0-1 and 1-2 of three. The root is word 2,
    # but the chain predicts word 0.
    heads = [1, 2, -1, 1]
    distances = np.array([[0, 1, 2, 2], [1, 0, 1, 1], [2, 1, 0, 2], [2, 1, 2, 0]])
    tree = Tree(np.array([2, 1, 0, 2]), distances, np.ones(4, dtype=bool), ((0, 1), (1, 2), (1, 3)), heads.index(-1))
    assert score_chain([tree])[0].tolist() == [2, 3, 0, 0, 0, 1, 0, 0, 4]


def test_constant_predictions_are_scored_on_edges_but_have_no_correlation() -> None:
    tree = random_tree(np.random.default_rng(0), 6)
    states = HiddenStates((0,), 2, (6,), np.ones(12, dtype=np.float32))  # all words have the same states
    layout = Segments((Segment("distance", 1, 0), Segment("depth", 1, 0)))
    sentences = SentenceVectors(Features((("model", states),), CPU), [tree], ["x"])
    numbers = dict(zip(COLUMNS, score(layout.drawn(["a"], 2), layout, sentences)[0, 0, 0], strict=True))
    assert numbers["rows"] == numbers["defined"] == 0
    assert numbers["edges"] == tree.scored.sum() - 1
    assert np.isnan(Scored(np.array([[list(numbers.values())]]), ["d"], 0).of("DSpr")[0, 0])


def test_the_score_of_a_chain_on_a_treebank_equals_counts_in_the_file(data: Path) -> None:
    """The chain is compared with counts in the file: arcs between neighbouring words, without punctuation."""
    path = data / "ud" / "en_ewt-ud-dev.conllu.xz"
    neighbours = edges = roots = 0
    documents = list(islice(hs.read(path), 60))
    with lzma.open(path, "rt") as file:
        blocks = file.read().strip().split("\n\n")[: sum(len(document.sentences) for document in documents)]
    for block in blocks:
        rows = [line.split("\t") for line in block.splitlines() if not line.startswith("#")]
        words = [row for row in rows if row[0].isdecimal()]
        kept = [row for row in words if row[3] != "PUNCT" and row[7] != "punct"]
        heads = {row[0]: row[6] for row in words}
        ids = {row[0] for row in kept}
        if all(heads[row[0]] in ids | {"0"} for row in kept):  # no word depends on punctuation
            pairs = {(one[0], other[0]) for one, other in pairwise(kept)}
            neighbours += sum((row[0], row[6]) in pairs or (row[6], row[0]) in pairs for row in kept)
            edges += max(0, len(kept) - 1)
        roots += len(kept) > 1 and kept[0][6] == "0"
    texts = Encoder(load_tokenizer("mini"), max_length=512).texts(documents, Tally())
    trees = [tree for text in texts if (tree := tree_of(text)) is not None]
    assert len(trees) == len(blocks)
    under = [tree for tree in trees if any(tree.distances[edge] > 1 for edge in tree.edges)]
    numbers = score_chain([tree for tree in trees if all(tree.distances[edge] == 1 for edge in tree.edges)])
    assert len(under) < 15
    assert (int(numbers[:, 0].sum()), int(numbers[:, 1].sum())) == (neighbours, edges)
    assert int(score_chain(trees)[:, 4].sum()) == roots
