"""Numbers of studies with their replicates, for studies that keep numbers of each document."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headscope.stats.inference import Support
from headscope.stats.resampled import Resampled

if TYPE_CHECKING:
    from jaxtyping import Float64

    ReplicatedTables = dict[str, dict[tuple[Any, ...], "Replicated"]]


@dataclass(frozen=True)
class Replicated:
    """One number and its replicates. `drawn` is what the draws follow from: the documents and the seed."""

    numbers: Resampled
    drawn: tuple[frozenset[str], int]

    def paired_with(self, other: Replicated) -> bool:
        """Whether the same documents were drawn in each replicate of both."""
        return self.drawn == other.drawn


def replicate_maker(documents: Sequence[str], seed: int) -> Callable[..., Replicated]:
    """A function from values, and the weight of each item, to replicates; `documents` are those of the items."""
    known, unit = np.unique(documents, return_inverse=True)

    def made(values: Float64[np.ndarray, "replicate+1"], sizes: np.ndarray | None = None) -> Replicated:
        support = Support.of(np.bincount(unit, sizes, len(known))[:, None])
        n = np.array([float(len(documents) if sizes is None else np.count_nonzero(sizes))])
        return Replicated(Resampled("", values[:, None], support, n), (frozenset(known.tolist()), seed))

    return made
