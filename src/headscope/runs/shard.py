"""The work itself: texts in, states out. The same code for every engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.core.batch import MapBatch, Side
from headscope.core.heads import HeadLayout, Kind
from headscope.core.state import State
from headscope.encoding.batches import batches, token_side
from headscope.encoding.texts import Encoded
from headscope.encoding.words import Rows, WordGroups, word_map
from headscope.errors import RunError
from headscope.measures import Measure
from headscope.models.model import Model
from headscope.stats.bootstrap import poisson_weights

if TYPE_CHECKING:
    from jaxtyping import Float, Float64

States = dict[str, State]


class BatchView:
    """One batch of texts as the measures see it: for each kind of attention, what rows and columns are, by token or by word."""

    def __init__(self, texts: Sequence[Encoded], rows: Rows, device: torch.device) -> None:
        targets = [text.target for text in texts if text.target is not None]
        self._texts = {"source": texts, "target": targets or texts}
        self._rows = rows
        self._device = device
        self._tokens: dict[str, Side] = {}
        self._words: dict[str, WordGroups] = {}

    def _sides(self, kind: Kind) -> tuple[str, str]:
        return {"encoder": ("source", "source"), "decoder": ("target", "target"), "cross": ("target", "source")}[kind]

    def _token_side(self, name: str) -> Side:
        if name not in self._tokens:
            self._tokens[name] = token_side(self._texts[name])
        return self._tokens[name]

    def _word_groups(self, name: str) -> WordGroups:
        if name not in self._words:
            self._words[name] = WordGroups.build(self._texts[name], self._device)
        return self._words[name]

    def rows(self, kind: Kind) -> list[int]:
        """How many rows of each text's maps are real."""
        return [len(text) for text in self._texts[self._sides(kind)[0]]]

    def maps(
        self, level: str, index: int, layout: HeadLayout, weights: Float[torch.Tensor, "b h q k"], replicates: Float64[np.ndarray, "b r"]
    ) -> MapBatch:
        """The maps of one site at one level."""
        queries, keys = self._sides(layout.sites[index].kind)
        if level == "token":
            return MapBatch(index, layout, weights, self._token_side(queries), self._token_side(keys), replicates)
        rows, columns = self._word_groups(queries), self._word_groups(keys)
        return MapBatch(index, layout, word_map(weights, rows, columns, self._rows), rows.side, columns.side, replicates)


class Accumulator:
    """The states of all measures, fed one site of one batch at a time. The word map is made once for all that want it."""

    def __init__(self, measures: Sequence[Measure], layout: HeadLayout, replicates: int) -> None:
        self.measures = measures
        self.layout = layout
        self.levels = sorted({measure.level for measure in measures})
        self.states: States = {measure.name: measure.start(layout, replicates) for measure in measures}

    def add(self, view: BatchView, index: int, weights: Float[torch.Tensor, "b h q k"], replicates: Float64[np.ndarray, "b r"]) -> None:
        """Let every measure see one site's maps. Overwrites the padded rows of `weights`, which hold whatever the model left there."""
        weights = weights.float()
        for text, length in enumerate(view.rows(self.layout.sites[index].kind)):
            weights[text, :, length:] = 0
        for level in self.levels:
            maps = view.maps(level, index, self.layout, weights, replicates)
            for measure in self.measures:
                if measure.level == level:
                    measure.update(self.states[measure.name], maps)


class ShardRunner:
    """Runs a model over shards of texts. `layers` (1-based) restricts the work to some layers of each kind."""

    def __init__(
        self,
        model: Model,
        measures: Sequence[Measure],
        *,
        word_rows: Rows = "mean",
        layers: Sequence[int] | None = None,
        replicates: int = 500,
        seed: int = 0,
        batch_tokens: int = 4096,
    ) -> None:
        self.model = model
        self.measures = measures
        self.word_rows: Rows = word_rows
        self.replicates = replicates
        self.seed = seed
        self.batch_tokens = batch_tokens
        available = {site.layer + 1 for site in model.sites}
        unknown = sorted(set(layers or ()) - available)
        if unknown:
            raise RunError(f"{model.name} has no layer {unknown[0]}", f"Its layers with attention are {min(available)} to {max(available)}")
        self._wanted = [index for index, site in enumerate(model.sites) if layers is None or site.layer + 1 in layers]
        self.layout = HeadLayout(tuple(model.sites[index] for index in self._wanted))

    def __call__(self, texts: Sequence[Encoded]) -> States:
        """The states of one shard."""
        accumulator = Accumulator(self.measures, self.layout, self.replicates)
        position = {index: place for place, index in enumerate(self._wanted)}
        for batch in batches(texts, self.batch_tokens):
            view = BatchView(batch, self.word_rows, self.model.device)
            weights = poisson_weights([text.document for text in batch], self.replicates, self.seed)
            self.model.stream(
                self.model.inputs(batch),
                lambda index, maps, view=view, weights=weights: accumulator.add(view, position[index], maps, weights),  # type: ignore[misc]
                frozenset(self._wanted),
            )
        return accumulator.states
