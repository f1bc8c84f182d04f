"""Attention to groups of tokens: [CLS], [SEP], punctuation, or any forms a user names (Clark et al. §3.1-3.2)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from headscope.core.batch import MapBatch
from headscope.core.rows import RowNeeds
from headscope.errors import MeasureError
from headscope.measures.groups import SPECIAL_GROUPS, group
from headscope.measures.means import HeadMeans, row_sums

if TYPE_CHECKING:
    from headscope.measures.means import Counts, Sums

# The two flows of the paper's Figure 2 (middle): from [SEP] to [SEP], and from everything else to [SEP].
Flow = Literal["sep_to_sep", "other_to_sep"]
FLOWS: dict[Flow, tuple[str, str]] = {"sep_to_sep": ("sep", "sep"), "other_to_sep": ("notsep", "sep")}


@dataclass(frozen=True, kw_only=True)
class Tokens(HeadMeans):
    """Mean over rows of the total weight on the tokens of a group; 0 in a text without a token of the group.

    `to_first` is the weight on the first token, whatever it is, from all tokens after it. A text without special tokens
    is excluded from the means about them. `groups` are names of `measures.groups`; `flows` restrict the rows as well.
    `sep_count="two"` divides as the released code did, which assumed two [SEP] in every text; `"actual"` counts them.
    """

    name: ClassVar[str] = "tokens"
    summary: ClassVar[str] = "attention to [CLS], [SEP], punctuation and other groups of tokens"
    within: ClassVar[tuple[float, float]] = (0.0, 1.0)
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {"reference": {"sep_count": "two"}}

    groups: tuple[str, ...] = ("cls", "sep", "punct", "first")
    flows: tuple[Flow, ...] = ("sep_to_sep", "other_to_sep")
    sep_count: Literal["actual", "two"] = "actual"

    def __post_init__(self) -> None:
        for name in self.groups:
            group(name)
        if not self.groups and not self.flows:
            raise MeasureError("tokens: neither groups nor flows", "Name a group such as 'sep', or a flow")

    def quantities(self) -> tuple[str, ...]:
        """`to_cls`, `to_sep`, `to_punct`, `to_first`, `to_=the|a`; `sep_to_sep`, `other_to_sep`."""
        return (*(f"to_{name}" for name in self.groups), *self.flows)

    def row_needs(self) -> RowNeeds | None:
        """The weight on each group of keys."""
        return self._needs if self.level == "token" else None

    @property
    def _needs(self) -> RowNeeds:
        sources, groups = (dict.fromkeys(names) for names in zip(*self._pairs, strict=True))
        rows = tuple((name, group(name)) for name in sources if name != "all")
        return RowNeeds(tuple((name, group(name)) for name in groups), rows=rows)

    @property
    def _pairs(self) -> list[tuple[str, str]]:
        """For each quantity, the group of its rows and the group of its columns."""
        return [("notfirst" if name == "first" else "all", name) for name in self.groups] + [FLOWS[flow] for flow in self.flows]

    def observe(self, batch: MapBatch) -> tuple[Sums, Counts]:
        """The mass on each group of columns, summed over the rows of the quantity."""
        import torch

        rows, pairs = row_sums(batch, self._needs), self._pairs
        sums = [rows.over(source)[:, :, rows.needs.column(name)] for source, name in pairs]
        counted = np.stack([batch.queries.chosen(source, group(source)).sum(1) for source, _ in pairs], 1).astype(np.float64)
        # A text without a comma counts, with attention 0 to commas. A text without special tokens does not count for
        # them.
        for column, (_, name) in enumerate(pairs):
            if name in SPECIAL_GROUPS:
                counted[:, column] *= batch.keys.chosen(name, group(name)).any(1)
        if self.sep_count == "two":
            for column, flow in enumerate(self.flows, len(self.groups)):
                counted[:, column] = 2 if flow == "sep_to_sep" else batch.queries.lengths - 2
        return torch.stack(sums, 1), np.maximum(counted, 0)
