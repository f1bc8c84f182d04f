"""Packed arrays: unpacking restores them, and they take few bytes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from headscope.core.packed import PackedArray


@pytest.mark.parametrize(("largest", "kind"), [(0, "uint8"), (255, "uint8"), (256, "uint16"), (2**40, "uint64"), (-1, "int64")])
def test_integers_are_stored_in_a_type_that_fits_and_unpacking_restores_them(largest: int, kind: str) -> None:
    array = np.zeros((128, 2, 3), dtype=np.int64)
    array[[5, 127], 1] = largest
    packed = PackedArray.of(array)
    assert packed.rows.dtype == kind
    assert packed.places.tolist() == [128, *([5, 127] if largest else [])]
    assert packed.whole().dtype == np.int64
    assert_array_equal(packed.whole(), array)


def test_unpacking_restores_fractions_and_nan() -> None:
    array = np.array([[0.0, 0.0], [0.1, np.nan], [0.0, -1e300]])
    packed = PackedArray.of(array)
    assert packed.places.tolist() == [3, 1, 2]
    assert_array_equal(packed.whole(), array)
    assert PackedArray.of(np.zeros((0, 4))).whole().shape == (0, 4)
