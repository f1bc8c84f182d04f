"""The base class of measures: options, a mergeable state, an update, and tables made from the state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np

from headscope.core.batch import MapBatch, Side, Slope
from headscope.core.heads import HeadLayout
from headscope.core.rows import RowNeeds
from headscope.core.state import State
from headscope.encoding.choices import Overlong, Unit
from headscope.stats.resampled import Resampled

if TYPE_CHECKING:
    import torch
    from jaxtyping import Float64

    Glimpse = dict[str, tuple[Float64[np.ndarray, "head"], Float64[np.ndarray, "head"]]]

Level = Literal["token", "word"]
Columns = Mapping[str, Any]  # a table: column name -> values, all of one length


@dataclass(frozen=True)
class Champion:
    """What a label's best heads score, as the table of best heads has it, on the data and in every replicate."""

    kind: str
    label: str
    heads: str
    scores: Resampled


@dataclass(frozen=True, kw_only=True)
class Measure(ABC):
    """A statistic of attention maps that streams. Its dataclass fields are its options; `unit` and `overlong`, where
    given, say what one text is for this measure, whatever the rest of the run reads.

    The state is built by `start`, grown in place by `update`, merged as declared, and read by `tables`, which
    changes nothing.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    reads: ClassVar[str | None] = None  # annotation without which there is nothing to measure: trees, mentions, passages or keyphrases
    natural: ClassVar[tuple[Unit, Overlong] | None] = None  # how the corpus is read for this measure if nothing is said
    weighs_texts: ClassVar[bool] = True  # whether it reads the bootstrap weights of texts, not only those of groups of documents

    level: Level = "token"
    unit: Unit | None = None
    overlong: Overlong | None = None

    @abstractmethod
    def start(self, layout: HeadLayout, replicates: int, seed: int = 0) -> State:
        """The neutral state for a model's heads and a number of bootstrap replicates, drawn with a seed."""

    def prepare(self, queries: Side, keys: Side, device: torch.device) -> Any:
        """What depends on the texts of a batch and not on the maps, for one kind of attention. `MapBatch.prepared`
        gives it; where a device other than the CPU makes the maps, it is made ahead of them.
        """
        return None

    @abstractmethod
    def update(self, state: State, batch: MapBatch) -> None:
        """Add what one batch of one site's maps shows."""

    @abstractmethod
    def tables(self, state: State, layout: HeadLayout) -> dict[str, Columns]:
        """Tidy tables: one row per head and quantity under the measure's name, one per layer and quantity under
        `<name>_layers`.
        """

    def resampled(self, state: State, layout: HeadLayout, least: int | None = None) -> Iterator[Resampled]:
        """Every quantity of every head with its replicates; of labels, those with at least `least` cases, if given."""
        return iter(())

    def champions(self, state: State, layout: HeadLayout) -> Iterator[Champion]:
        """The best head of each label with its replicates, for measures that have such."""
        return iter(())

    def glimpse(self, state: State, layout: HeadLayout) -> Glimpse:
        """Value and n of each head by quantity, as the table of heads names it, however few cases there are."""
        return {one.quantity: (one.values[0], one.n) for one in self.resampled(state, layout, least=1)}

    def expected(self, state: State, layout: HeadLayout) -> dict[str, Float64[np.ndarray, "head"]]:
        """By quantity what each head is compared with on what the state has seen, for measures that know it."""
        return {}

    @property
    def needs(self) -> str | None:
        """The layer of annotation without which, with these options, there is nothing to measure."""
        return self.reads

    def row_needs(self) -> RowNeeds | None:
        """For a measure that needs no more of attention than statistics of its rows, which; None if it reads maps.

        If no measure of a run reads maps, none are made: any length of text then fits into memory.
        """
        return None

    def slope(self) -> Slope | None:
        """For a measure of gradients how they are to be taken: it is then given what is made of them in the place of
        weights.
        """
        return None

    def options(self) -> dict[str, Any]:
        """The options in force, as a specification would write them."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


class Rows:
    """Columns that grow by blocks of rows. Their types are given, so that a table without rows has them too."""

    def __init__(self, types: Mapping[str, type]) -> None:
        self._types = types
        self._blocks: dict[str, list[np.ndarray]] = {name: [np.array([], dtype=type)] for name, type in types.items()}

    def add(self, size: int, **values: object) -> None:
        """Add `size` rows; a single value stands for all of them."""
        for name, type in self._types.items():
            self._blocks[name].append(np.broadcast_to(np.array(values[name], dtype=type), (size,)))

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """The columns, each in one piece."""
        return {name: np.concatenate(blocks) for name, blocks in self._blocks.items()}
