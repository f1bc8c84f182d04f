"""Maps of four heads with known behaviour."""

from __future__ import annotations

import numpy as np

TOKENS = ["[CLS]", "a", "b", "c", "[SEP]"]


def planted() -> np.ndarray:
    """Two layers of two heads: one attends to the previous token, one only to [SEP], and two attend evenly."""
    maps = np.full((2, 2, 5, 5), 0.2)
    maps[0, 0] = np.eye(5, k=-1)
    maps[0, 0, 0] = 0.2
    maps[0, 1] = 0
    maps[0, 1, :, 4] = 1
    return maps
