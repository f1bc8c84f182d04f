"""Weights for measures that need no whole maps: some rows at a time, or single pairs of a row and a key.

They are read from maps where there are maps, and else worked out from scores (METHODS §19).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch

from headscope.core.batch import MapBatch
from headscope.core.rows import Reach
from headscope.stats.rows import even_blocks, score_blocks, score_pairs, seen

if TYPE_CHECKING:
    from jaxtyping import Float, Int


def row_blocks(batch: MapBatch) -> Iterator[tuple[range, Float[torch.Tensor, "batch head row key"]]]:
    """The weights of all rows, some rows at a time. A batch without maps and scores is one of even attention."""
    if batch.maps is not None:
        yield range(batch.queries.width), batch.weights
    elif batch.scores is not None:
        yield from score_blocks(batch.scores)
    else:
        yield from even_blocks(batch.reach or Reach(), _lengths(batch), batch.keys.width)


def rows_that_see(batch: MapBatch) -> Float[torch.Tensor, "batch key"]:
    """How many rows see each key."""
    return torch.stack([(weights[:, 0] > 0).sum(1) for _, weights in row_blocks(batch.even())]).sum(0).float()


def pair_weights(
    batch: MapBatch, text: Int[torch.Tensor, "pair"], row: Int[torch.Tensor, "pair"], column: Int[torch.Tensor, "pair"]
) -> Float[torch.Tensor, "pair head"]:
    """The weights of pairs of a row and a key that the row sees."""
    if batch.maps is not None:
        return batch.weights[text, :, row, column]
    if batch.scores is not None:
        return score_pairs(batch.scores, text, row, column)
    visible = seen(batch.reach or Reach(), *_lengths(batch), range(batch.queries.width), batch.keys.width)
    return (1 / visible.sum(-1))[text, row][:, None].to(torch.float32)


def _lengths(batch: MapBatch) -> tuple[torch.Tensor, torch.Tensor]:
    queries, keys = (torch.from_numpy(side.lengths).to(batch.device, torch.int64) for side in (batch.queries, batch.keys))
    return queries, keys
