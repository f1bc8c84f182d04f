"""The share of heads of each type in several runs, and the heads of each type."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.heads import HeadId
from headscope.measures import Measure
from headscope.results.head_evidence import evidence
from headscope.results.head_labels import head_labels
from headscope.results.head_types import NAMES, types_read
from headscope.results.results import Results
from headscope.stats.inference import SHARE, Support, interval
from headscope.stats.resampled import Resampled

if TYPE_CHECKING:
    from jaxtyping import Float64

NAMED = 4  # heads


@dataclass(frozen=True)
class TypeShare:
    """The resampled share of a run's heads whose values make them of a type, and the heads with a significant label."""

    share: Resampled
    heads: tuple[HeadId, ...]

    @property
    def summary(self) -> str:
        """The number of heads whose label is significant, and the first of them."""
        if not self.heads:
            return "none"
        named = ", ".join(map(str, self.heads[:NAMED]))
        return f"{len(self.heads)}: {named}{', …' if len(self.heads) > NAMED else ''}"


def type_shares(results: Results, measures: Sequence[Measure]) -> dict[str, TypeShare]:
    """The shares by type, in the order of declaration; types that none of the measures shows are omitted."""
    labels = head_labels(results, measures=[measure.name for measure in measures])
    size = results.layout.size
    read = types_read([measure.name for measure in measures])
    found = [one for measure in measures for one in evidence(results, measure, read)]
    draws = max((len(one.excess) for one in found), default=1)
    shares = {}
    for name in (name for name in NAMES if name in labels.measured):
        of_type = [one for one in found if one.type.name == name]
        above = np.zeros((draws, size), dtype=bool)
        for one in of_type:
            above[: len(one.excess), one.heads] |= one.excess > one.type.margin
        values: Float64[np.ndarray, "replicate+1 1"] = above.mean(1, keepdims=True)
        # If no head has evidence for the type, the support is that of other types.
        support = [one.scores.support for one in of_type or found if len(one.heads)]
        documents, effective = ((max(getattr(of, part).max() for of in support) if support else 0) for part in ("documents", "effective"))
        resampled = Resampled(
            name,
            values,
            Support(np.array([documents], dtype=np.int64), np.array([effective], dtype=np.float64)),
            np.array([float(size)]),
            partial(interval, within=SHARE),
        )
        shares[name] = TypeShare(resampled, tuple(labels.of_type(name)))
    return shares
