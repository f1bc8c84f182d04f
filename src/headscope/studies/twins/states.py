"""What is kept of the texts that two models read: sums of divergences between all their heads, as a state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import numpy as np

from headscope.core.state import Array, Merge, State

if TYPE_CHECKING:
    from jaxtyping import Float64, Int64

_UNTRAINED = "untrained/"  # of states; then the model that is an untrained copy
# Of two states the later one has seen all that the earlier one has, and sums of what is never negative only grow: the
# later is the greater. Sums of shards, added up, would be rounded otherwise than those of one pass over all texts.
_MERGES: dict[str, Merge] = {"rows": "max", "words": "max", "pairs": "max", _UNTRAINED: "max"}


@dataclass
class Sums:
    """What is left of texts that two models read, by group of documents.

    `rows` are counted; `words` is what every head of both models, one after the other, gave to words; `pairs` are
    the divergences of all pairs of these heads, in the order of np.triu_indices. `untrained` are those of the first
    model's heads with an untrained copy of the second's, and of such a copy of the first's with the second's.
    """

    rows: Int64[np.ndarray, "group"]
    words: Float64[np.ndarray, "group head"]
    pairs: Float64[np.ndarray, "group pair"]
    untrained: tuple[Float64[np.ndarray, "group a b"], Float64[np.ndarray, "group a b"]] | None = None

    @classmethod
    def of(cls, state: State) -> Self:
        """The sums that a state holds; they may be added to."""
        rows, words, pairs = (state[name].copy() for name in ("rows", "words", "pairs"))
        copies = state.family(_UNTRAINED)
        return cls(rows, words, pairs, (copies["b"].copy(), copies["a"].copy()) if copies else None)

    def state(self) -> State:
        """The sums as they are now, of all texts so far."""
        arrays: dict[str, Array] = {"rows": self.rows, "words": self.words, "pairs": self.pairs}
        if self.untrained is not None:
            arrays |= {f"{_UNTRAINED}b": self.untrained[0], f"{_UNTRAINED}a": self.untrained[1]}
        return State({name: array.copy() for name, array in arrays.items()}, _MERGES)
