"""The state of a comparison of two models: sums of divergences between all their heads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from headscope.core.state import Array, Merge, State

if TYPE_CHECKING:
    from jaxtyping import Float64, Int64

_UNTRAINED = "untrained/"  # of states; then the model that is an untrained copy
# The later of two states includes the earlier one, and sums of non-negative numbers only grow: the maximum is the later
# one. Sums of shards, added up, would be rounded differently from those of one pass over all texts.
_MERGES: dict[str, Merge] = {"rows": "max", "words": "max", "pairs": "max", _UNTRAINED: "max"}


@dataclass
class Sums:
    """Sums over the texts that two models read, by group of documents.

    `rows` is the number of rows; `words` the attention to words of every head, those of the first model first; `pairs`
    the divergences of all pairs of these heads, in the order of np.triu_indices. `untrained` has the divergences of
    the first model's heads with an untrained copy of the second, and of a copy of the first with the second's heads.
    """

    rows: Int64[np.ndarray, "group"]
    words: Float64[np.ndarray, "group head"]
    pairs: Float64[np.ndarray, "group pair"]
    untrained: tuple[Float64[np.ndarray, "group a b"], Float64[np.ndarray, "group a b"]] | None = None

    @classmethod
    def of(cls, state: State) -> Self:
        """The sums in a state, as copies."""
        rows, words, pairs = (state[name].copy() for name in ("rows", "words", "pairs"))
        copies = state.family(_UNTRAINED)
        return cls(rows, words, pairs, (copies["b"].copy(), copies["a"].copy()) if copies else None)

    def state(self) -> State:
        """The current sums, over all texts so far."""
        arrays: dict[str, Array] = {"rows": self.rows, "words": self.words, "pairs": self.pairs}
        if self.untrained is not None:
            arrays |= {f"{_UNTRAINED}b": self.untrained[0], f"{_UNTRAINED}a": self.untrained[1]}
        return State({name: array.copy() for name, array in arrays.items()}, _MERGES)
