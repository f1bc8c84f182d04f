"""How much the loss would change with attention: gradients of a model's own loss, by the token attended to (Clark et
al. §3.2, Figure 3).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from headscope.core.batch import ANY, Form, MapBatch, Slope
from headscope.core.heads import HeadLayout
from headscope.core.state import State
from headscope.errors import MeasureError
from headscope.measures.base import Columns
from headscope.measures.groups import group
from headscope.measures.means import HeadMeans, means_of, support_of
from headscope.stats.inference import interval

if TYPE_CHECKING:
    from headscope.measures.means import Counts, Even, Sums

OTHER = "other"


@dataclass(frozen=True, kw_only=True)
class Saliency(HeadMeans):
    """Mean, over rows and over the tokens of a group in each row, of the size of the gradient of the loss with respect
    to attention.

    The paper states neither how many tokens were masked nor in which order means were taken. Here, 15 % of the pieces
    are masked, as in BERT's training (`mask_share`), in `draws` different ways; the loss of a text is the mean over
    masked pieces. Causal models predict each next token. `groups` are names of `measures.groups`; `other` is the group
    of tokens that belong to none of them. A text without a token of a group is excluded from the group's mean.
    docs/saliency.md describes `form` and `steps`.
    """

    name: ClassVar[str] = "saliency"
    summary: ClassVar[str] = "gradients of the model's own loss with respect to attention, by the token attended to"
    within: ClassVar[tuple[float, float]] = (0.0, np.inf)

    groups: tuple[str, ...] = ("sep", "cls", "punct", OTHER)
    form: Form = "plain"
    draws: int = 1
    mask_share: float = 0.15
    reduction: Literal["mean", "sum"] = "mean"
    steps: int = 16

    def __post_init__(self) -> None:
        for name in self.groups:
            if name != OTHER:
                group(name)
        if not self.groups:
            raise MeasureError("saliency: no groups", "Name a group such as 'sep', or 'other'")
        if self.level != "token":
            raise MeasureError("saliency: gradients are those of attention between tokens", "Leave level out")
        if self.draws < 1 or self.steps < 1 or not 0 < self.mask_share < 1:
            raise MeasureError(
                f"saliency: draws are {self.draws}, steps {self.steps}, mask_share {self.mask_share}", "Use 1 or more, and a share above 0"
            )

    def slope(self) -> Slope:
        """How the gradients are taken."""
        return Slope(self.form, self.draws, self.mask_share, self.reduction, self.steps)

    def quantities(self) -> tuple[str, ...]:
        """`to_sep`, `to_cls`, `to_punct`, `to_other`."""
        return tuple(f"to_{name}" for name in self.groups)

    def observe(self, batch: MapBatch) -> tuple[Sums, Counts]:
        """The sizes of gradients, summed over all rows and the columns of each group that the rows can see, and the
        number of these weights.

        A weight that a mask keeps at 0 has a gradient too, but the model could not use it. Rows on which no prediction
        depends see nothing (models/gradients.py), so they are in neither sum nor count.
        """
        import torch

        device = batch.weights.device
        seen = batch.once("seen", lambda: batch.even().weights[:, 0] > 0)
        visible = batch.once("seen columns", lambda: seen.sum(1).cpu().numpy())
        received = (batch.weights * seen[:, None]).sum(-2)
        keys = batch.keys
        chosen = {name: keys.chosen(name, group(name)) for name in self.groups if name != OTHER}
        chosen[OTHER] = keys.chosen("all", ANY) & ~np.any([*chosen.values(), np.zeros(keys.roles.shape, dtype=bool)], axis=0)
        masks = torch.from_numpy(np.stack([chosen[name] for name in self.groups], 1)).to(device)  # [text, quantity, key]
        sums = (received[:, None] * masks[:, :, None]).sum(-1)
        counted = np.stack([(chosen[name] * visible).sum(1) for name in self.groups], 1)
        return sums, counted.astype(np.float64)

    def baseline(self, batch: MapBatch) -> Even:
        """NaN: even attention has no gradient."""
        return batch.weights.new_full((len(batch.weights), len(self.groups)), float("nan"))

    def tables(self, state: State, layout: HeadLayout) -> dict[str, Columns]:
        """Heads and layers; and `saliency_ratio`, each layer's mean for a group divided by its mean for all other
        tokens.
        """
        tables = super().tables(state, layout)
        if OTHER in self.groups and len(self.groups) > 1:
            tables["saliency_ratio"] = self._ratios(state, layout)
        return tables

    def _ratios(self, state: State, layout: HeadLayout) -> Columns:
        means = means_of(state, layout.site_of())
        layers = np.stack([means[:, :, layout.slice(number)].mean(-1) for number in range(len(layout.sites))], -1)
        other, support = self.groups.index(OTHER), support_of(state, layout)
        columns: dict[str, list[object]] = {name: [] for name in ("kind", "layer", "quantity", "value", "low", "high", "n", "documents")}
        for q, name in enumerate(self.groups):
            if q == other:
                continue
            with np.errstate(invalid="ignore", divide="ignore"):
                ratios = layers[:, q] / layers[:, other]
            both = support[q].both(support[other])
            low, high = interval(ratios[0], ratios[1:], both, (0, np.inf))
            for number, site in enumerate(layout.sites):
                row = (site.kind, site.layer + 1, f"{name}_by_other", ratios[0, number], low[number], high[number])
                for column, value in zip(
                    columns, (*row, int(np.rint(state["weight"][0, q, number])), int(both.documents[number])), strict=True
                ):
                    columns[column].append(value)
        return columns
