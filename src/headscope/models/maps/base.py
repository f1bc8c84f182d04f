"""Where the maps of a run come from: by default they are the model's attention weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from headscope.core.heads import Site
from headscope.encoding.texts import Encoded
from headscope.models.model import Model

if TYPE_CHECKING:
    import torch

    from headscope.models.capture import Consumer, Exchange, ValueConsumer
    from headscope.models.fused import KeyFactors, Reaches, RowConsumer


class AttentionMaps:
    """The attention weights of a model. Other maps derive from this class: measures are given them in the same way.

    `exchange` makes other maps of an attention call, and `factors` are what weights are multiplied by where no maps are
    made; both are None if weights stay as they are.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.exchange: Exchange | None = None
        self.factors: KeyFactors | None = None

    @property
    def sites(self) -> tuple[Site, ...]:
        """The layers that have maps, and how many each has."""
        return self.model.sites

    @property
    def needs_maps(self) -> str | None:
        """The reason why statistics of rows are not available without maps; None if they are."""
        return self.model.needs_maps

    def passes(self, tokens: int) -> int:
        """How often each layer is run for a text of so many tokens."""
        return 1

    def stream(self, texts: Sequence[Encoded], consume: Consumer, wanted: frozenset[int], values: ValueConsumer | None = None) -> None:
        """Give `consume` the maps of each wanted site of a batch of texts, and `values` its values, where known."""
        self.model.stream(self.model.inputs(texts), consume, wanted, values, self.exchange)

    def stream_rows(
        self,
        texts: Sequence[Encoded],
        members: Callable[[int], torch.Tensor],
        offsets: Sequence[int],
        consume: RowConsumer,
        wanted: frozenset[int],
        reaches: Reaches | None = None,
    ) -> None:
        """Give `consume` statistics of the rows of each wanted site, without maps, as `Model.stream_rows` does."""
        self.model.stream_rows(texts, members, offsets, consume, wanted, reaches, self.factors)
