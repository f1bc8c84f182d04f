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
Columns = Mapping[str, Any]  # a table: column name -> values, all of equal length


@dataclass(frozen=True)
class Champion:
    """The scores of a label's best heads, as in the table of best heads, on the data and in every replicate."""

    kind: str
    label: str
    heads: str
    scores: Resampled


@dataclass(frozen=True, kw_only=True)
class Measure(ABC):
    """A statistic of attention maps, accumulated batch by batch. Its dataclass fields are its options. `unit` and
    `overlong`, if given, say what one text is for this measure, independently of the rest of the run.

    `start` makes the state, `update` adds to it in place, states are merged as declared, and `tables` reads a state
    without changing it.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = {}
    reads: ClassVar[str | None] = None  # the annotation that it requires: trees, mentions, passages or keyphrases
    natural: ClassVar[tuple[Unit, Overlong] | None] = None  # the default unit and overlong of this measure

    level: Level = "token"
    unit: Unit | None = None
    overlong: Overlong | None = None

    @abstractmethod
    def start(self, layout: HeadLayout, replicates: int, seed: int = 0) -> State:
        """The neutral state for a model's heads. `replicates` bootstrap replicates are drawn with `seed`."""

    def prepare(self, queries: Side, keys: Side, device: torch.device) -> Any:
        """The data that depend on the texts of a batch and not on the maps, for one kind of attention.
        `MapBatch.prepared` returns them. If a device other than the CPU makes the maps, the data are prepared before
        the maps.
        """
        return None

    @abstractmethod
    def update(self, state: State, batch: MapBatch) -> None:
        """Add the maps of one site, for one batch, to the state."""

    @abstractmethod
    def tables(self, state: State, layout: HeadLayout) -> dict[str, Columns]:
        """Tidy tables: under the measure's name one row per head and quantity, under `<name>_layers` one row per layer
        and quantity.
        """

    def resampled(self, state: State, layout: HeadLayout, least: int | None = None) -> Iterator[Resampled]:
        """Every quantity of every head with its replicates. `least`, if given, is the smallest number of cases of a
        label that is included.
        """
        return iter(())

    def champions(self, state: State, layout: HeadLayout) -> Iterator[Champion]:
        """The best head of each label with its replicates, for measures that choose best heads."""
        return iter(())

    def glimpse(self, state: State, layout: HeadLayout) -> Glimpse:
        """The value and n of each head by quantity, named as in the table of heads, also for
        quantities with few cases.
        """
        return {one.quantity: (one.values[0], one.n) for one in self.resampled(state, layout, least=1)}

    def expected(self, state: State, layout: HeadLayout) -> dict[str, Float64[np.ndarray, "head"]]:
        """The baseline of each head by quantity, on the data that the state has seen, for measures that have one."""
        return {}

    @property
    def needs(self) -> str | None:
        """The layer of annotation that the measure requires with these options; None if it requires none."""
        return self.reads

    def row_needs(self) -> RowNeeds | None:
        """The statistics of rows that the measure needs, if it needs no maps; None if it reads maps.

        If no measure of a run reads maps, no maps are made: texts of any length then fit into memory.
        """
        return None

    def slope(self) -> Slope | None:
        """For a measure of gradients, how they are taken; else None. Such a measure receives values computed from
        gradients in place of weights.
        """
        return None

    def options(self) -> dict[str, Any]:
        """The options in force, as written in a specification."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


class Rows:
    """Columns to which blocks of rows are appended. The types are declared, so a table without rows has typed columns
    too.
    """

    def __init__(self, types: Mapping[str, type]) -> None:
        self._types = types
        self._blocks: dict[str, list[np.ndarray]] = {name: [np.array([], dtype=type)] for name, type in types.items()}

    def add(self, size: int, **values: object) -> None:
        """Add `size` rows. A single value is used for all of them."""
        for name, type in self._types.items():
            self._blocks[name].append(np.broadcast_to(np.array(values[name], dtype=type), (size,)))

    @property
    def columns(self) -> dict[str, np.ndarray]:
        """The columns, each as one array."""
        return {name: np.concatenate(blocks) for name, blocks in self._blocks.items()}
