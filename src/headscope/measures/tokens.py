"""Attention to groups of tokens: [CLS], [SEP], punctuation, or any forms a user names (Clark et al. §3.1-3.2)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from headscope.core.batch import MapBatch, Side, Test
from headscope.errors import MeasureError
from headscope.measures.groups import SPECIAL_GROUPS, group
from headscope.measures.means import HeadMeans

if TYPE_CHECKING:
    import torch
    from jaxtyping import Float

    from headscope.measures.means import Counts, Sums

# The two flows of the paper's Figure 2 (middle): from [SEP] to [SEP], and from everything else to [SEP].
Flow = Literal["sep_to_sep", "other_to_sep"]
FLOWS: dict[Flow, tuple[str, str]] = {"sep_to_sep": ("sep", "sep"), "other_to_sep": ("notsep", "sep")}


@dataclass(frozen=True, kw_only=True)
class Tokens(HeadMeans):
    """Mean over rows of the weight on all tokens of a group together; 0 in a text that has no token of the group.

    A text without special tokens is left out of the means that are about them. `groups` are the names of
    `measures.groups`; `flows` restrict the rows as well. `sep_count="two"` divides as the released code did, which
    assumed two [SEP] in every text; `"actual"` counts them.
    """

    name: ClassVar[str] = "tokens"
    summary: ClassVar[str] = "attention to [CLS], [SEP], punctuation and other groups of tokens"
    within: ClassVar[tuple[float, float]] = (0.0, 1.0)
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"reference": {"sep_count": "two"}}

    groups: tuple[str, ...] = ("cls", "sep", "punct")
    flows: tuple[Flow, ...] = ("sep_to_sep", "other_to_sep")
    sep_count: Literal["actual", "two"] = "actual"

    def __post_init__(self) -> None:
        for name in self.groups:
            group(name)
        if not self.groups and not self.flows:
            raise MeasureError("tokens: neither groups nor flows", "Name a group such as 'sep', or a flow")

    def quantities(self) -> tuple[str, ...]:
        """`to_cls`, `to_sep`, `to_punct`, `to_=the|a`; `sep_to_sep`, `other_to_sep`."""
        return (*(f"to_{name}" for name in self.groups), *self.flows)

    def observe(self, batch: MapBatch) -> tuple[Sums, Counts]:
        """Column sums for each kind of row, then the mass each group of columns takes."""
        import torch

        device = batch.weights.device
        pairs = [("all", name) for name in self.groups] + [FLOWS[flow] for flow in self.flows]
        received = column_sums(batch.weights, batch.queries, {source for source, _ in pairs})
        sums = [(received[source] * batch.keys.mask(name, group(name), device)[:, None]).sum(-1) for source, name in pairs]
        counted = np.stack([batch.queries.chosen(source, group(source)).sum(1) for source, _ in pairs], 1).astype(np.float64)
        # A text without a comma gives commas no attention: that counts. One without special tokens says nothing about
        # them.
        for column, (_, name) in enumerate(pairs):
            if name in SPECIAL_GROUPS:
                counted[:, column] *= batch.keys.chosen(name, group(name)).any(1)
        if self.sep_count == "two":
            for column, flow in enumerate(self.flows, len(self.groups)):
                counted[:, column] = 2 if flow == "sep_to_sep" else batch.queries.lengths - 2
        return torch.stack(sums, 1), np.maximum(counted, 0)


def column_sums(
    weights: Float[torch.Tensor, "batch head query key"], queries: Side, sources: Collection[str]
) -> dict[str, Float[torch.Tensor, "batch head key"]]:
    """What each column receives from each group of rows. Few rows are gathered; many are all rows less the few
    others.
    """
    total = weights.sum(-2)
    sums = {}
    for source in sources:
        most = queries.chosen(source, group(source)).sum() * 2 > queries.lengths.sum()
        name, test = (f"not {source}", _others(source)) if most else (source, group(source))
        part = _gathered(weights, queries.index(name, test, weights.device))
        sums[source] = total - part if most else part
    return sums


def _others(source: str) -> Test:
    return lambda form, role: not group(source)(form, role)


def _gathered(weights: torch.Tensor, rows: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
    text, row = rows
    return weights.new_zeros(len(weights), weights.shape[1], weights.shape[3]).index_add_(0, text, weights[text, :, row])
