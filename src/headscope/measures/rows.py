"""Tables under construction: columns that grow by blocks of rows."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np


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
