"""Where losses are compared: early and late in a context, in both copies of a sequence, and by position."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.batch import WORD
from headscope.core.document import DrawnWord
from headscope.studies.in_context.spec import CONTEXT

if TYPE_CHECKING:
    from jaxtyping import Float64

    from headscope.encoding.texts import Encoded
    from headscope.studies.in_context.spec import InContextSpec

LOSSES = ("early", "late", "first_copy", "second_copy", "loss")
BINS, TEXT_BINS = 128, 32  # most bins of positions, for drawn sequences and for other texts


@dataclass(frozen=True)
class ContextPlaces:
    """The places in a context of `context` tokens. Tokens are counted from 0, and the first is never predicted."""

    context: int
    early: tuple[int, int]  # the first token, and the token after the last
    late: tuple[int, int]
    needed: int  # tokens that a text must have
    bins: int  # of positions, in a curve

    @classmethod
    def of(cls, spec: InContextSpec, context: int, drawn: bool) -> ContextPlaces:
        """The places of the settings, scaled to a context that is shorter than 512 tokens."""
        share = min(1.0, context / CONTEXT)
        half = round((spec.width - 1) / 2 * share)
        centres = [min(max(1, round(place * share)), context - 1) for place in (spec.early, spec.late)]
        early, late = ((max(1, centre - half), min(centre + half + 1, context)) for centre in centres)
        return cls(context, early, late, centres[1] + 1, min(BINS if drawn else TEXT_BINS, context - 1))

    def bin_of(self) -> np.ndarray:
        """The number of the bin of each token, from the second token on."""
        return np.arange(self.context - 1) * self.bins // (self.context - 1)

    def curve(self, losses: Float64[np.ndarray, "*system token"]) -> Float64[np.ndarray, "*system bin"]:
        """The mean loss in each bin of a text that is predicted from its second token on; NaN beyond its end."""
        tokens = min(losses.shape[-1], self.context - 1)
        own = np.eye(self.bins)[self.bin_of()[:tokens]]
        with np.errstate(invalid="ignore", divide="ignore"):
            means: Float64[np.ndarray, "*system bin"] = losses[..., :tokens] @ own / own.sum(0)
        return means

    def means(self, text: Encoded, losses: Float64[np.ndarray, "*system token"]) -> Float64[np.ndarray, "*system loss"]:
        """The mean losses of a text that `LOSSES` names; NaN for copies if the text is not a repeated sequence."""
        copies = _copies(text)
        parts = [np.arange(*self.early), np.arange(*self.late), *copies, np.arange(1, len(text))]
        found = [losses[..., part[(part >= 1) & (part < len(text))] - 1] for part in parts]
        return np.stack([part.mean(-1) if part.shape[-1] else np.full(part.shape[:-1], np.nan) for part in found], -1)


def is_drawn(text: Encoded) -> bool:
    """Whether a text is a sequence of drawn words, written twice."""
    return len(text.words) > 0 and all(isinstance(word, DrawnWord) for word in text.words)


def _copies(text: Encoded) -> tuple[np.ndarray, np.ndarray]:
    """The tokens of the first and of the second copy of a sequence of drawn words; none for other texts."""
    places = np.flatnonzero(np.array(text.roles) == WORD) if is_drawn(text) else np.zeros(0, dtype=np.int64)
    return places[: len(places) // 2], places[len(places) // 2 :]
