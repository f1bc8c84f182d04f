"""Columns of numbers and of words, as a state that merges: what a study records about the texts it has read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.state import Merge, State

if TYPE_CHECKING:
    from jaxtyping import Float, Float64

_MERGES: dict[str, Merge] = {"numbers/": "concat", "bytes/": "concat", "lengths/": "concat"}


class StateColumns:
    """Named columns that only grow. Numbers are rows of one shape per column; words are kept as bytes."""

    def __init__(self, state: State | None = None) -> None:
        self._rows: dict[str, list[np.ndarray]] = {}
        if state is not None:
            self._rows = {name: [array] for name, array in state.arrays.items()}

    def add(self, name: str, rows: Float[np.ndarray, "n *shape"] | Sequence[float]) -> None:
        """Append rows of numbers to a column."""
        self._rows.setdefault(f"numbers/{name}", []).append(np.asarray(rows, dtype=np.float64))

    def add_words(self, name: str, texts: Sequence[str]) -> None:
        """Append words to a column of words."""
        spelled = [text.encode("utf-8", "surrogatepass") for text in texts]
        self._rows.setdefault(f"lengths/{name}", []).append(np.array([len(word) for word in spelled], dtype=np.int64))
        self._rows.setdefault(f"bytes/{name}", []).append(np.frombuffer(b"".join(spelled), dtype=np.uint8).astype(np.int64))

    def numbers(self, name: str) -> Float64[np.ndarray, "n *shape"]:
        """A column of numbers; empty if there is none."""
        return self._column(f"numbers/{name}", np.float64)

    def words(self, name: str) -> list[str]:
        """A column of words; empty if there is none."""
        ends = np.cumsum(self._column(f"lengths/{name}", np.int64))
        spelled = self._column(f"bytes/{name}", np.int64).astype(np.uint8).tobytes()
        return [spelled[start:end].decode("utf-8", "surrogatepass") for start, end in zip([0, *ends[:-1]], ends, strict=False)]

    def under(self, prefix: str) -> list[str]:
        """The names of the columns of numbers that begin with `prefix`, without it, sorted."""
        whole = f"numbers/{prefix}"
        return sorted(name.removeprefix(whole) for name in self._rows if name.startswith(whole))

    @property
    def state(self) -> State:
        """All columns as a state."""
        return State({name: np.concatenate(rows) for name, rows in sorted(self._rows.items())}, _MERGES)

    def _column(self, name: str, kind: type) -> np.ndarray:
        rows = self._rows.get(name, [])
        if len(rows) > 1:
            self._rows[name] = rows = [np.concatenate(rows)]
        return rows[0] if rows else np.zeros(0, dtype=kind)
