"""Attention sinks: tokens that most others attend to, whatever their content (Xiao et al. 2024, Gu et al. 2025)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from headscope.core.batch import MapBatch, PlaceTest
from headscope.core.heads import HeadLayout
from headscope.core.rows import SINK, RowNeeds
from headscope.core.state import State
from headscope.core.transfer import to_device
from headscope.encoding.choices import Overlong, Unit
from headscope.errors import MeasureError
from headscope.measures.base import Columns
from headscope.measures.groups import group
from headscope.measures.means import HeadMeans, row_sums
from headscope.measures.weights.blocks import row_blocks, rows_that_see
from headscope.stats.rows import sum_plogp

if TYPE_CHECKING:
    import torch
    from jaxtyping import Bool, Float, Int

    from headscope.measures.means import Counts, Even, Sums

PLACES = ("first", "sep", "punct", "other")  # of a sink; the first that applies
_UNBOUNDED = ("entropy_without_first", "value_norm")


@dataclass(frozen=True, kw_only=True)
class Sinks(HeadMeans):
    """The sink of each head, and how much attention it receives. The alpha of a key is its mean weight in the rows
    that see it.

    A text's sink is the key with the largest alpha, if that is above `threshold`. A key can be a sink only if at least
    the share `seen` of all rows see it: few rows see the last tokens of a causal text, and any head gives one of these
    a large weight. A text without such a key, as where rows see only a short window, says nothing about sinks.
    `sink_first` is the share of Gu et al.: alpha of the first token in the first `tokens` rows is above `threshold`;
    shorter texts do not count. `value_norm` is the norm of the value vector of the key with the largest alpha, divided
    by the mean norm over all keys of the text.
    """

    name: ClassVar[str] = "sinks"
    summary: ClassVar[str] = "attention sinks: weight on the first token, where the sink is, entropy without it"
    within: ClassVar[tuple[float, float]] = (0.0, 1.0)
    natural: ClassVar[tuple[Unit, Overlong] | None] = ("document", "window")

    tokens: int = 64
    threshold: float = 0.3
    seen: float = 0.5

    def __post_init__(self) -> None:
        if self.tokens < 2:
            raise MeasureError(f"sinks: tokens is {self.tokens}", "Use 2 or more; Gu et al. use 64")
        if not 0 < self.threshold < 1 or not 0 <= self.seen <= 1:
            raise MeasureError(f"sinks: threshold is {self.threshold} and seen is {self.seen}", "Use shares, such as 0.3 and 0.5")

    def quantities(self) -> tuple[str, ...]:
        """`to_first`, `sink_first`, `alpha`, `at_first`, `at_sep`, `at_punct`, `at_other`, `entropy_without_first`,
        `value_norm`, `sink_mass`.
        """
        return "to_first", "sink_first", "alpha", *(f"at_{place}" for place in PLACES), *_UNBOUNDED, "sink_mass"

    def bounds(self, quantity: str) -> tuple[float, float]:
        """0 to 1, except for the entropy and the ratio of norms, which have no upper bound."""
        return (0.0, np.inf) if quantity in _UNBOUNDED else self.within

    def counts_texts(self, quantity: str) -> bool:
        """True for `sink_first` and the places of the sink, which are conditions that a text meets or does not meet."""
        return quantity == "sink_first" or quantity.startswith("at_")

    def defined(self, kind: str, quantity: str) -> bool:
        """Whether rows and keys are those of one text, which excludes cross-attention."""
        return kind != "cross"

    def shown(self, means: Float[np.ndarray, "quantity head"]) -> list[int]:
        """All quantities, but `value_norm` only if values are known, and `sink_mass` only if some head has a learned
        sink. The sums of rows in bfloat16 differ from 1 by up to 0.004.
        """
        sizes, sink = len(means) - 2, len(means) - 1
        hidden = {sizes} if np.isnan(means[sizes]).all() else set()
        hidden |= set() if (np.abs(means[sink]) > 0.01).any() else {sink}
        return [number for number in range(len(means)) if number not in hidden]

    def baseline(self, batch: MapBatch) -> Even:
        """The values of even attention; 1 for `value_norm`, the ratio for a value vector of mean norm."""
        even = super().baseline(batch).clone()
        even[:, -2] = 1.0
        return even

    def row_needs(self) -> RowNeeds | None:
        """The weight on the first key, and the scores, from which all other weights are computed."""
        return self._needs if self.level == "token" else None

    @property
    def _needs(self) -> RowNeeds:
        rows = (("notfirst", group("notfirst")), (self._cut, PlaceTest(stop=self.tokens)))
        return RowNeeds((("first", group("first")),), rows=rows, scores=True)

    @property
    def _cut(self) -> str:
        return f"first {self.tokens}"

    def observe(self, batch: MapBatch) -> tuple[Sums, Counts]:
        """Weights on the first token and entropies, summed over rows; and alphas and the places of the sink, once per
        text.
        """
        import torch

        rows, lengths = row_sums(batch, self._needs), batch.queries.lengths
        first = rows.needs.column("first")
        at_first = rows.over(self._cut)[..., first] / self.tokens > self.threshold
        received, entropy = _received(batch)
        alpha, key, places = self._sinks(batch, received)
        sizes = torch.zeros_like(alpha) if batch.value is None else _relative_sizes(batch.value, batch).gather(-1, key[..., None])[..., 0]
        sums = [rows.over("notfirst")[..., first], at_first, alpha, *places, entropy, sizes, rows.over("all")[..., SINK]]
        several = ((lengths > 1) & self._can_have_a_sink(batch)).astype(np.float64)
        has_sep = several * batch.keys.chosen("sep", group("sep")).any(1)
        known = several * float(batch.value is not None)
        counted = [lengths - 1, lengths >= self.tokens, several, several, has_sep, several, several, lengths - 1, known, lengths]
        return torch.stack([values.to(alpha.dtype) for values in sums], 1), np.stack(counted, 1).astype(np.float64)

    def _sinks(
        self, batch: MapBatch, received: Float[torch.Tensor, "batch head key"]
    ) -> tuple[Float[torch.Tensor, "batch head"], Int[torch.Tensor, "batch head"], list[Float[torch.Tensor, "batch head"]]]:
        """The largest alpha of each head, its key, and for each place whether the sink is there."""
        device = received.device
        rows = batch.once(("rows that see a key", device), lambda: rows_that_see(batch).to(device))
        alpha = (received / rows.clamp_min(1)[:, None]).masked_fill(~self._enough(batch, rows)[:, None], -1)
        most, key = alpha.max(-1)
        places = batch.once(("places of sinks", device), lambda: _places(batch).to(device))
        there = places.gather(-1, key[:, None].expand(-1, len(PLACES), -1)) & (most > self.threshold)[:, None]
        return most, key, list(there.unbind(1))

    def _enough(self, batch: MapBatch, rows: Float[torch.Tensor, "batch key"]) -> Bool[torch.Tensor, "batch key"]:
        """Whether enough rows see each key."""
        least = to_device(self.seen * batch.queries.lengths, rows.device).to(rows.dtype)
        return (rows >= least[:, None]) & (rows > 0)

    def _can_have_a_sink(self, batch: MapBatch) -> Bool[np.ndarray, "batch"]:
        """Whether each text has a key that enough rows see."""
        lengths = batch.queries.lengths
        if batch.reach is None:
            found: Bool[np.ndarray, "batch"] = batch.once(
                "texts that can have a sink", lambda: self._enough(batch, rows_that_see(batch)).any(1).cpu().numpy()
            )
            return found
        before, after = (math.inf if limit is None else limit for limit in (batch.reach.before, batch.reach.after))
        most = np.minimum(lengths, before + after + 1)  # rows that see the same key
        enough: Bool[np.ndarray, "batch"] = most >= (self.seen * lengths).astype(np.float32)
        return enough

    def tables(self, state: State, layout: HeadLayout) -> dict[str, Columns]:
        """Heads and layers; and `sinks_model`, the mean over all heads of a kind."""
        return {**super().tables(state, layout), "sinks_model": self.model_table(state, layout)}


def _received(batch: MapBatch) -> tuple[Float[torch.Tensor, "batch head key"], Float[torch.Tensor, "batch head"]]:
    """The weight that each key receives, summed over all rows; and the entropy of rows without their first key, summed
    over all rows but the first. A row that gives all its weight to the first key counts as 0.
    """
    import torch

    received, entropy = [], []
    for rows, weights in row_blocks(batch):
        received.append(weights.sum(2))
        first, mass = weights[..., 0], weights[..., 1:].sum(-1)
        plogp = sum_plogp(weights) - torch.xlogy(first, first)
        # For p with sum s, the entropy of p / s is ln s - (sum p ln p) / s.
        rest = torch.where(mass > 0, mass.log() - plogp / mass, 0).clamp_min(0)
        entropy.append(rest[..., int(rows.start == 0) :].sum(-1))
    return torch.stack(received).sum(0), torch.stack(entropy).sum(0)


def _relative_sizes(value: Float[torch.Tensor, "batch kv_head key d"], batch: MapBatch) -> Float[torch.Tensor, "batch head key"]:
    """The norm of each key's value vector, divided by the mean over the keys of its text, for each query head."""
    norms: torch.Tensor = value.float().norm(dim=-1) * batch.keys.valid(value.device)[:, None]
    means = norms.sum(-1, keepdim=True) / to_device(batch.keys.lengths, value.device).to(norms.dtype)[:, None, None]
    return (norms / means.clamp_min(1e-30)).repeat_interleave(batch.site.heads // value.shape[1], 1)


def _places(batch: MapBatch) -> torch.Tensor:
    """Whether each key is at each place, [batch, place, key]. Every key is at exactly one place."""
    import torch

    chosen = [batch.keys.chosen(name, group(name)) for name in PLACES[:-1]]
    places = []
    rest = np.ones(batch.keys.roles.shape, dtype=bool)
    for mask in (*chosen, rest.copy()):
        places.append(mask & rest)
        rest &= ~mask
    return torch.from_numpy(np.stack(places, 1))
