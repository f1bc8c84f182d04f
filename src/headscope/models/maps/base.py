"""The source of the maps of a run: by default, the model's attention weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from headscope.core.heads import Site
from headscope.core.rows import RowRequest
from headscope.encoding.texts import Encoded
from headscope.models.model import Model

if TYPE_CHECKING:
    from headscope.models.capture import Consumer, Exchange, ValueConsumer
    from headscope.models.fused import KeyFactors, Reaches, RowConsumer


class AttentionMaps:
    """The attention weights of a model. Other maps derive from this class, so that measures receive them in the same
    way.

    `exchange` makes other maps from an attention call, and `factors` returns the factors of the weights if no maps are
    made. Both are None if weights are not changed.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self.exchange: Exchange | None = None
        self.factors: KeyFactors | None = None

    @property
    def sites(self) -> tuple[Site, ...]:
        """The layers that have maps, with the number of maps of each."""
        return self.model.sites

    @property
    def needs_maps(self) -> str | None:
        """The reason why statistics of rows are not available without maps; None if they are."""
        return self.model.needs_maps

    def passes(self, tokens: int) -> int:
        """The number of times each layer is run for a text of `tokens` tokens."""
        return 1

    def stream(self, texts: Sequence[Encoded], consume: Consumer, wanted: frozenset[int], values: ValueConsumer | None = None) -> None:
        """Pass the maps of each wanted site of a batch of texts to `consume`, and its values, if known, to `values`."""
        self.model.stream(self.model.inputs(texts), consume, wanted, values, self.exchange)

    def stream_rows(
        self,
        texts: Sequence[Encoded],
        requests: Callable[[int], RowRequest],
        consume: RowConsumer,
        wanted: frozenset[int],
        reaches: Reaches | None = None,
    ) -> None:
        """Pass the row statistics of each wanted site to `consume`, without maps, as `Model.stream_rows` does."""
        self.model.stream_rows(texts, requests, consume, wanted, reaches, self.factors)
