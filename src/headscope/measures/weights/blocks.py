"""Weights for measures that need no whole maps: blocks of rows, or single pairs of a row and a key.

They are read from maps if there are maps, and else computed from scores (models/fused.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.batch import MapBatch
from headscope.core.rows import Reach
from headscope.core.transfer import to_device
from headscope.stats.rows import even_blocks, score_blocks, score_pairs, within

if TYPE_CHECKING:
    import torch
    from jaxtyping import Float, Int


def row_blocks(batch: MapBatch) -> Iterator[tuple[range, Float[torch.Tensor, "batch head row key"]]]:
    """The weights of all rows, a block of rows at a time. A batch without maps and scores is one of even attention."""
    if batch.maps is not None:
        yield range(batch.queries.width), batch.weights
    elif batch.scores is not None:
        yield from score_blocks(batch.scores)
    else:
        yield from even_blocks(batch.reach or Reach(), _lengths(batch), batch.keys.width)


def rows_that_see(batch: MapBatch) -> Float[torch.Tensor, "batch key"]:
    """The number of rows that see each key."""
    import torch

    return torch.stack([(weights[:, 0] > 0).sum(1) for _, weights in row_blocks(batch.even())]).sum(0).float()


def pair_weights(
    batch: MapBatch, text: Int[torch.Tensor, "pair"], row: Int[torch.Tensor, "pair"], column: Int[torch.Tensor, "pair"]
) -> Float[torch.Tensor, "pair head"]:
    """The weights of pairs of a row and a key; 0 where the row does not see the key."""
    import torch

    if batch.maps is not None:
        return batch.weights[text, :, row, column]
    if batch.scores is not None:
        return score_pairs(batch.scores, text, row, column)
    reach, (_, keys) = batch.reach or Reach(), _lengths(batch)
    first = 0 if reach.before is None else (row - reach.before).clamp_min(0)
    last = keys[text] if reach.after is None else torch.minimum(row + reach.after + 1, keys[text])
    return (within(reach, row, column) / (last - first)).to(torch.float32)[:, None]


def _lengths(batch: MapBatch) -> tuple[torch.Tensor, torch.Tensor]:
    queries, keys = (to_device(side.lengths.astype(np.int64), batch.device) for side in (batch.queries, batch.keys))
    return queries, keys
