"""The mergeable state of a measure: named arrays, each with a declared way to merge two of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal, Protocol, TypeVar

import numpy as np

from headscope.core.packed import Array, Packed, PackedArray, unpacked
from headscope.core.slices import SLICES
from headscope.errors import RunError

if TYPE_CHECKING:
    from jaxtyping import Int64

Merge = Literal["sum", "max", "min", "concat", "keyed"]
MOST_KEYS = 4096  # of a keyed array: it does not grow with the corpus


__all__ = ["MOST_KEYS", "Array", "Merge", "Pending", "State", "States"]


def _keyed(a: Array, b: Array) -> Array:
    rows = np.concatenate([a, b])
    rows = rows[np.argsort(rows[:, 0], kind="stable")]
    starts = np.flatnonzero(np.diff(rows[:, 0], prepend=rows[:1, 0] - 1))[: MOST_KEYS + 1]
    sums = np.add.reduceat(rows[:, 1:], starts, axis=0) if len(rows) else rows[:, 1:]
    return np.column_stack([rows[starts, 0], sums])[:MOST_KEYS]


_MERGE: dict[Merge, Callable[[Array, Array], Array]] = {
    "sum": lambda a, b: a + b,
    "max": lambda a, b: np.maximum(a, b),
    "min": lambda a, b: np.minimum(a, b),
    "concat": lambda a, b: np.concatenate([a, b]),
    "keyed": _keyed,
}


class Pending(Protocol):
    """Collected values that are not yet part of a state's arrays."""

    def settle(self, state: State) -> None:
        """Add the values to the arrays."""


P = TypeVar("P", bound=Pending)


class State:
    """Arrays with declared merges. A state holds only sums, counts and extremes; means are computed when a table is
    made.

    An empty state must be neutral: `sum` starts at 0, `max` and `min` at the least and greatest value of the array's
    type, `concat` and `keyed` with no rows. `keyed` sums the rows that have the same key, which is the first column,
    and keeps the `MOST_KEYS` smallest keys, in order: documents are counted exactly up to this number, however a
    document is split over shards. (A key that is among the smallest of all is among the smallest of every part, so that
    its sums are complete.) Merging is commutative, for `concat` up to the order of rows.

    A declared name that ends in / is a family, for labels that only the corpus knows: its members (`correct/nsubj`)
    are created when they first occur, and a member that one of two states lacks is taken from the other.

    Values that are cheaper to add for many batches together can wait as `pending`: they are added when the arrays are
    read.

    A divided state also has parts: for each slice of the corpus, a state that has seen only the texts of that slice.
    Parts are stored packed, except while they grow.
    """

    def __init__(self, arrays: Mapping[str, Array], merges: Mapping[str, Merge], parts: Mapping[str, Packed] | None = None) -> None:
        for name, array in arrays.items():
            if array.dtype not in (np.float64, np.int64):
                raise TypeError(f"state array {name!r} is {array.dtype}: use float64 or int64")
        self._arrays = dict(arrays)
        self._pending: dict[str, Pending] = {}
        self._packed = dict(parts or {})
        self._growing: dict[str, State] = {}
        self._start: Callable[[], State] | None = None
        self.merges = dict(merges)
        alone = {name for name in merges if not name.endswith("/")}
        if stray := {name for name in arrays if self._declared(name) not in merges} | (alone - arrays.keys()):
            raise TypeError(f"every state array needs a declared merge, and every merge its array: {sorted(stray)}")

    @property
    def arrays(self) -> dict[str, Array]:
        """All arrays by name. What is pending is added first."""
        while self._pending:
            self._pending.popitem()[1].settle(self)
        return self._arrays

    def pending(self, name: str, make: Callable[[], P]) -> P:
        """The values collected under a name since the arrays were last read; created if there are none yet."""
        if name not in self._pending:
            self._pending[name] = make()
        return self._pending[name]  # type: ignore[return-value]

    @property
    def parts(self) -> dict[str, Packed]:
        """The arrays of parts by slice, packed; none if the state is not divided. What is pending is added first."""
        _ = self.arrays
        while self._growing:
            name, part = self._growing.popitem()
            self._packed[name] = part.pack()
        return self._packed

    def part(self, name: str) -> State:
        """The state of a slice."""
        return State(unpacked(self.parts[name]), self.merges)

    def pack(self) -> Packed:
        """The arrays, sums in fewer bytes."""
        arrays = self.arrays.items()
        return {name: PackedArray.of(array) if self.merges[self._declared(name)] == "sum" else array for name, array in arrays}

    def divide(self, start: Callable[[], State]) -> State:
        """Return the state itself, which from now on has a part for each slice that occurs; `start` makes neutral
        parts.
        """
        self._start = start
        return self

    def split(self, slices: Int64[np.ndarray, "row"]) -> Iterator[tuple[State, Int64[np.ndarray, "some"] | slice]]:
        """The states to which rows must be added, given the slice number of each row: this state with all rows and, if
        it is divided, the part of each slice with its rows.
        """
        yield self, slice(None)
        if self._start is None:
            return
        for number in np.unique(slices).tolist():
            name = SLICES.items[number]
            if name not in self._growing:
                packed = self._packed.pop(name, None)
                self._growing[name] = self._start() if packed is None else State(unpacked(packed), self.merges)
            yield self._growing[name], np.flatnonzero(slices == number)

    def copy(self) -> State:
        """A copy that shares no memory with this state."""
        parts = {name: self.part(name).pack() for name in self.parts}
        return State({name: array.copy() for name, array in self.arrays.items()}, self.merges, parts)

    def __getstate__(self) -> dict[str, object]:
        parts = {"_packed": self.parts, "_growing": {}, "_start": None}
        return {"_arrays": self.arrays, "_pending": {}, **parts, "merges": self.merges}

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def setting(self, name: str) -> Array:
        """An array that no batch changes, such as how to draw. Reading it does not add pending values."""
        return self._arrays[name]

    def family(self, prefix: str) -> dict[str, Array]:
        """The members of a family by label, labels sorted."""
        return {name.removeprefix(prefix): self.arrays[name] for name in sorted(self.arrays) if name.startswith(prefix)}

    def member(self, family: str, label: str, make: Callable[[], Array]) -> Array:
        """A member of a family, created if it does not exist yet."""
        name = family + label
        if name not in self.arrays:
            self.arrays[name] = make()
        return self.arrays[name]

    def add(self, name: str, rows: Array) -> None:
        """Merge rows into an array in the declared way."""
        self.arrays[name] = _MERGE[self.merges[self._declared(name)]](self[name], rows)

    def merge(self, other: State) -> State:
        """A new state that covers the data of both."""
        if self.merges != other.merges:
            raise RunError("states of different measures cannot be merged", "Use one run folder for one specification")
        merged: dict[str, Array] = {}
        for name in sorted(self.arrays.keys() | other.arrays.keys()):
            if name not in self.arrays or name not in other.arrays:
                merged[name] = (self if name in self.arrays else other)[name].copy()
                continue
            merge = self.merges[self._declared(name)]
            mine, theirs = self[name].shape, other[name].shape
            if (mine[1:] != theirs[1:]) if merge in ("concat", "keyed") else (mine != theirs):
                raise RunError(f"state array {name!r} has shape {mine} here and {theirs} there", "Use one run folder for one model")
            merged[name] = _MERGE[merge](self[name], other[name])
        both = {name: self.part(name).merge(other.part(name)).pack() for name in self.parts if name in other.parts}
        return State(merged, self.merges, {**self.parts, **other.parts, **both})  # what only one of them has is not copied

    def _declared(self, name: str) -> str:
        """The name under which the merge of an array is declared: its own, or its family's."""
        return name if "/" not in name else name.partition("/")[0] + "/"


States = dict[str, State]  # one state per measure, by the measure's name
