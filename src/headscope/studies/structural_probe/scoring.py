"""Scores of predicted distances and depths, sentence by sentence, so that documents can be resampled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.stats.correlation import ranks
from headscope.stats.spanning import prim
from headscope.studies.structural_probe.features import batches
from headscope.studies.structural_probe.metrics import COLUMNS, LENGTHS
from headscope.studies.structural_probe.probe import Gold, Segments, squared_distances
from headscope.studies.structural_probe.training import READ, SentenceVectors
from headscope.studies.structural_probe.trees import Tree

if TYPE_CHECKING:
    from jaxtyping import Float, Float64, Int64


def score_distances(predicted: Float[torch.Tensor, "probe word word"], tree: Tree) -> Float64[np.ndarray, "probe 4"]:
    """The first four of `COLUMNS` for one sentence."""
    numbers = np.zeros((len(predicted), 4))
    if len(tree.edges):
        joined = spanning(predicted, tree)
        gold = np.array(tree.edges)
        arcs = (joined[:, gold[:, 0]] == gold[:, 1]) | (joined[:, gold[:, 1]] == gold[:, 0])
        numbers[:, 0], numbers[:, 1] = arcs.sum(1), len(gold)
    if len(tree.depths) in LENGTHS:
        rho = _spearman(predicted.numpy(), tree.distances)
        numbers[:, 2], numbers[:, 3] = np.nansum(rho, 1), np.isfinite(rho).sum(1)
    return numbers


def spanning(predicted: Float[torch.Tensor, "probe word word"], tree: Tree) -> Int64[np.ndarray, "probe word"]:
    """For each scored word its neighbour in the minimum spanning tree; -1 for the first and for unscored words."""
    values = predicted.clamp_min(0)
    joined: Int64[np.ndarray, "probe word"] = prim(
        (values.amax((-1, -2), keepdim=True) - values)[None], torch.from_numpy(tree.scored)[None]
    )[0].numpy()
    return joined


def score_depths(predicted: Float[torch.Tensor, "probe word"], tree: Tree, single: bool = False) -> Float64[np.ndarray, "probe 4"]:
    """The next four of `COLUMNS` for one sentence; a root with one candidate counts only with `single`."""
    values = predicted.numpy()
    numbers = np.zeros((len(values), 4))
    if tree.scored.sum() > (0 if single else 1):
        nearest = np.where(tree.scored, values, np.inf).argmin(1)
        numbers[:, 0], numbers[:, 1] = nearest == tree.root, 1
    if len(tree.depths) in LENGTHS:
        rho = _spearman(values, tree.depths)
        numbers[:, 2], numbers[:, 3] = np.nan_to_num(rho), np.isfinite(rho)
    return numbers


def _spearman(values: Float[np.ndarray, "probe *row word"], gold: Float[np.ndarray, "*row word"]) -> Float64[np.ndarray, "probe *row"]:
    """Rank correlations along the last axis; NaN for constant values."""
    predicted = ranks(values.astype(np.float64), np.ones(values.shape, dtype=bool))
    true = ranks(gold.astype(np.float64), np.ones(gold.shape, dtype=bool))
    predicted -= predicted.mean(-1, keepdims=True)
    true -= true.mean(-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        rho: Float64[np.ndarray, "probe *row"] = (predicted * true).sum(-1) / np.sqrt((predicted**2).sum(-1) * (true**2).sum(-1))
    return rho


@torch.no_grad()
def predictions(
    matrices: Float[torch.Tensor, "feature row d"], segments: Segments, sentences: SentenceVectors, features: Sequence[int] | None = None
) -> Iterator[tuple[int, list[torch.Tensor]]]:
    """For each sentence, its number and the predictions of the probes by segment: [feature, word, word] or [feature,
    word].

    `features` are the features of the matrices, by default all.
    """
    features = list(range(len(matrices))) if features is None else features
    order = sorted(range(len(sentences.trees)), key=lambda number: sentences.features.lengths[number])
    for batch in batches(sentences.features.lengths, order, READ):
        states = sentences.features.batch(batch, features, matrices.dtype)
        gold = Gold.of([sentences.trees[number] for number in batch], states.device, states.dtype)
        vectors = torch.einsum("ftwd,frd->ftwr", states, matrices)
        every = []
        for segment, bounds in zip(segments.every, segments.bounds, strict=True):
            projected = vectors[..., slice(*bounds)]
            squared = squared_distances(projected, gold.words) if segment.kind == "distance" else (projected * projected).sum(-1)
            every.append(squared.cpu())
        for row, number in enumerate(batch):
            n = sentences.features.lengths[number]
            yield number, [values[:, row, :n, :n] if values.ndim == 4 else values[:, row, :n] for values in every]


def score(
    matrices: Float[torch.Tensor, "feature row d"], segments: Segments, sentences: SentenceVectors, single: bool = False
) -> Float64[np.ndarray, "sentence feature pair 9"]:
    """`COLUMNS` of every sentence, feature, and pair of a distance and a depth matrix of one rank and seed."""
    pairs = paired(segments)
    numbers = np.zeros((len(sentences.trees), len(matrices), len(pairs), len(COLUMNS)))
    for number, predicted in predictions(matrices, segments, sentences):
        tree = sentences.trees[number]
        for kind, start in (("distance", 0), ("depth", 4)):
            places = [pair[start // 4] for pair in pairs]
            stacked = torch.stack([predicted[place] for place in places], 1).flatten(0, 1)
            scores = score_distances(stacked, tree) if kind == "distance" else score_depths(stacked, tree, single)
            numbers[number, :, :, start : start + 4] = scores.reshape(len(matrices), len(pairs), 4)
        numbers[number, :, :, 8] = len(tree.depths)
    return numbers


def paired(segments: Segments) -> list[tuple[int, int]]:
    """The numbers of matrices for distance and for depth that belong together."""
    place = {segment: number for number, segment in enumerate(segments.every)}
    return [(number, place[segment._replace(kind="depth")]) for segment, number in place.items() if segment.kind == "distance"]


def score_chain(trees: Sequence[Tree], single: bool = False) -> Float64[np.ndarray, "sentence 9"]:
    """`COLUMNS` of the linear baseline: distance is distance in the sentence, and depth grows word by word."""
    numbers = np.zeros((len(trees), len(COLUMNS)))
    for row, tree in zip(numbers, trees, strict=True):
        places = torch.arange(len(tree.depths), dtype=torch.float64)
        row[:4] = score_distances((places[:, None] - places).abs()[None], tree)[0]
        row[4:8] = score_depths(places[None], tree, single)[0]
        row[8] = len(places)
    return numbers
