"""The mergeable state of a measure: named arrays, each declared with how two of them become one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from headscope.errors import RunError

Merge = Literal["sum", "max", "min", "concat"]
Array = NDArray[np.float64] | NDArray[np.int64]

_MERGE: dict[Merge, Callable[[Array, Array], Array]] = {
    "sum": lambda a, b: a + b,
    "max": lambda a, b: np.maximum(a, b),
    "min": lambda a, b: np.minimum(a, b),
    "concat": lambda a, b: np.concatenate([a, b]),
}


class State:
    """Arrays with declared merges. Only sums, counts and extremes live here; a mean appears when a table is made.

    An empty state must be neutral: `sum` starts at 0, `max` and `min` at the least and greatest value of the array's type,
    `concat` with no rows. Merging is commutative, for `concat` up to the order of rows.
    """

    def __init__(self, arrays: Mapping[str, Array], merges: Mapping[str, Merge]) -> None:
        for name, array in arrays.items():
            if array.dtype not in (np.float64, np.int64):
                raise TypeError(f"state array {name!r} is {array.dtype}: use float64 or int64")
        if arrays.keys() != merges.keys():
            raise TypeError(f"every state array needs a declared merge: {sorted(arrays.keys() ^ merges.keys())}")
        self.arrays = dict(arrays)
        self.merges = dict(merges)

    def __getitem__(self, name: str) -> Array:
        return self.arrays[name]

    def merge(self, other: State) -> State:
        """A new state that has seen what both have seen."""
        if self.merges != other.merges:
            raise RunError("states of different measures cannot be merged", "Use one run folder for one specification")
        for name, merge in self.merges.items():
            mine, theirs = self[name].shape, other[name].shape
            if (mine[1:] != theirs[1:]) if merge == "concat" else (mine != theirs):
                raise RunError(f"state array {name!r} has shape {mine} here and {theirs} there", "Use one run folder for one model")
        return State({name: _MERGE[merge](self[name], other[name]) for name, merge in self.merges.items()}, self.merges)


States = dict[str, State]  # one state a measure, by the measure's name
