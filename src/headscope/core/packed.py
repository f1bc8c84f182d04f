"""Compact arrays: without rows of zeros, and with the smallest integer type that holds the values.

Counts by label, group of documents and head are mostly zeros where a state has seen few documents.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64] | NDArray[np.int64]


class PackedArray(NamedTuple):
    """The rows of an array that are not all zeros, and which ones they are; `places` begins with the number of rows."""

    places: NDArray[np.int64]
    rows: NDArray[np.generic]

    @classmethod
    def of(cls, array: Array) -> PackedArray:
        """An array of one axis or more, packed."""
        used = np.flatnonzero(array.any(tuple(range(1, array.ndim))))
        rows = array[used]
        if array.dtype == np.int64 and rows.min(initial=0) >= 0:
            rows = rows.astype(np.min_scalar_type(int(rows.max(initial=0))))
        return cls(np.concatenate([[len(array)], used]), rows)

    def whole(self) -> Array:
        """The array as it was."""
        kind = np.float64 if self.rows.dtype.kind == "f" else np.int64
        array: Array = np.zeros((int(self.places[0]), *self.rows.shape[1:]), dtype=kind)
        array[self.places[1:]] = self.rows
        return array


Packed = Mapping[str, PackedArray | Array]  # the arrays of a state; only sums are packed


def unpacked(packed: Packed) -> dict[str, Array]:
    """The arrays as they were."""
    return {name: array.whole() if isinstance(array, PackedArray) else array.copy() for name, array in packed.items()}
