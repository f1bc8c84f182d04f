"""What probes find: the best candidate of each word alone, or the best tree of all of them together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headscope.stats.spanning import arborescence
from headscope.studies.attention_probe.batch import Batch

if TYPE_CHECKING:
    import torch
    from jaxtyping import Float, Int64

    Found = Int64[np.ndarray, "text word seed"]


def best_candidates(scores: Float[torch.Tensor, "text word seed 1+word"]) -> Found:
    """The best candidate of each word, which may be the word itself; of equal ones the first."""
    found: Found = scores.argmax(-1).cpu().numpy()
    return found


def best_trees(scores: Float[torch.Tensor, "text word seed 1+word"], batch: Batch) -> Found:
    """The governors in the tree with one root whose scores have the greatest sum."""
    values = scores.double().cpu().numpy()
    found = np.zeros(values.shape[:3], dtype=np.int64)
    for text, size in enumerate(batch.sizes.tolist()):
        for seed in range(values.shape[2]):
            own = values[text, :size, seed]
            found[text, :size, seed] = arborescence(own[:, 1 : size + 1], own[:, 0]) + 1
    return found
