"""The probe itself: a matrix B under which squared distances, or squared lengths, should be those of the tree.

Many probes are computed as one: layers are a separate axis, and the rows of several matrices over the same layer
(distance and depth, several ranks, several seeds) are concatenated. They share the reading of the states and one
product of matrices, and are otherwise independent.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import torch

from headscope.studies.structural_probe.trees import Tree

if TYPE_CHECKING:
    from jaxtyping import Bool, Float

Kind = Literal["distance", "depth"]
KINDS: tuple[Kind, ...] = ("distance", "depth")
SPREAD = 0.05  # initial matrices are drawn from U(-SPREAD, SPREAD)


class Segment(NamedTuple):
    """One matrix: its kind, its rank, and the seed of its initial values."""

    kind: Kind
    rank: int
    seed: int


@dataclass(frozen=True)
class Segments:
    """Matrices whose rows are concatenated."""

    every: tuple[Segment, ...]

    @property
    def bounds(self) -> list[tuple[int, int]]:
        """The rows of each matrix."""
        return list(pairwise(np.cumsum([0, *(segment.rank for segment in self.every)]).tolist()))

    def drawn(self, names: Sequence[str], size: int, dtype: torch.dtype = torch.float32) -> Float[torch.Tensor, "feature row d"]:
        """The initial matrices. Each depends only on its name, not on what is trained with it."""
        return torch.stack([torch.cat([_draw(f"{name}/{segment}", segment.rank, size) for segment in self.every]) for name in names]).to(
            dtype
        )


def _draw(name: str, rank: int, size: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    return (torch.rand(rank, size, generator=generator, dtype=torch.float64) * 2 - 1) * SPREAD


@dataclass(frozen=True)
class Gold:
    """The trees of a batch of sentences, padded."""

    distances: Float[torch.Tensor, "text word word"]
    depths: Float[torch.Tensor, "text word"]
    words: Bool[torch.Tensor, "text word"]

    @classmethod
    def of(cls, trees: Sequence[Tree], device: torch.device, dtype: torch.dtype = torch.float32) -> Gold:
        """The padded batch of some trees."""
        lengths = [len(tree.depths) for tree in trees]
        width = max(lengths)
        distances, depths = np.zeros((len(trees), width, width), dtype=np.float32), np.zeros((len(trees), width), dtype=np.float32)
        for row, (tree, length) in enumerate(zip(trees, lengths, strict=True)):
            distances[row, :length, :length] = tree.distances
            depths[row, :length] = tree.depths
        words = torch.arange(width) < torch.tensor(lengths)[:, None]
        return cls(torch.from_numpy(distances).to(device, dtype), torch.from_numpy(depths).to(device, dtype), words.to(device))

    @property
    def lengths(self) -> Float[torch.Tensor, "text"]:
        """Words of each sentence."""
        return self.words.sum(1).to(self.depths.dtype)


def squared_distances(vectors: Float[torch.Tensor, "*feature text word k"], words: Bool[torch.Tensor, "text word"]) -> torch.Tensor:
    """Squared distances between the words of each text, [..., text, word, word]; padding must be 0."""
    # Around their mean, so that large numbers are not subtracted: in many models a few dimensions are much larger than
    # the others.
    middle = vectors.sum(-2, keepdim=True) / words.sum(1).to(vectors.dtype)[:, None, None]
    centred = vectors - middle
    products = centred @ centred.transpose(-1, -2)
    squares = products.diagonal(dim1=-2, dim2=-1)
    return squares[..., :, None] + squares[..., None, :] - 2 * products


def losses(
    vectors: Float[torch.Tensor, "feature text word row"], gold: Gold, segments: Segments, which: Sequence[int] | None = None
) -> Float[torch.Tensor, "segment feature text"]:
    """The loss of each sentence under each matrix: the mean over pairs of |tree distance - squared distance|, including
    pairs of a word with itself, or the mean over words of |depth - squared length|.
    """
    each = []
    pairs = (gold.words[:, :, None] & gold.words[:, None, :]).to(vectors.dtype) / gold.lengths[:, None, None] ** 2
    words = gold.words.to(vectors.dtype) / gold.lengths[:, None]
    bounds = segments.bounds
    for number in range(len(bounds)) if which is None else which:
        projected = vectors[..., slice(*bounds[number])]
        if segments.every[number].kind == "distance":
            each.append(((squared_distances(projected, gold.words) - gold.distances).abs() * pairs).sum((-1, -2)))
        else:
            each.append((((projected * projected).sum(-1) - gold.depths).abs() * words).sum(-1))
    return torch.stack(each)
