"""Whether a head attends more to words of keyphrases than to other words (Štefánik): the attention that words receive,
text by text.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np

from headscope.core.batch import IS_WORD, MapBatch
from headscope.encoding.choices import Overlong, Unit
from headscope.errors import MeasureError
from headscope.measures.base import Level
from headscope.measures.groups import group
from headscope.measures.means import HeadMeans

if TYPE_CHECKING:
    import torch
    from jaxtyping import Float, Int64

    from headscope.measures.means import Counts, Sums

    Places = list[tuple[Int64[torch.Tensor, "key"], Int64[torch.Tensor, "other"]]]

How = Literal["mean", "max", "sum"]


@dataclass(frozen=True, kw_only=True)
class Keywords(HeadMeans):
    """Means over texts: `to_keywords` is the attention that a word of a keyphrase receives, `to_others` that of another
    word, `relative` their difference, and `auc` the probability that a word of a keyphrase receives more than another
    word.

    A word receives the `mean`, the `max` or the `sum` over the rows of a group (`source`: `all`, `cls`, `word`, ...).
    Special tokens do not count as words. A text without a keyphrase, or with nothing else, is skipped.
    """

    name: ClassVar[str] = "keywords"
    summary: ClassVar[str] = "attention to the words of keyphrases, and to the others"
    within: ClassVar[tuple[float, float]] = (0.0, np.inf)
    reads: ClassVar[str | None] = "keyphrases"
    natural: ClassVar[tuple[Unit, Overlong] | None] = ("document", "truncate")

    level: Level = "word"
    source: str = "all"
    how: How = "mean"

    def __post_init__(self) -> None:
        group(self.source)
        if self.level != "word":
            raise MeasureError(f"keywords: level is {self.level!r}", "Keyphrases are made of words: leave level out")

    def quantities(self) -> tuple[str, ...]:
        """`relative`, `to_keywords`, `to_others`, `auc`."""
        return ("relative", "to_keywords", "to_others", "auc")

    def bounds(self, quantity: str) -> tuple[float, float]:
        """`relative` is a difference and can be below 0; `auc` is a share."""
        return {"relative": (-np.inf, np.inf), "auc": (0.0, 1.0)}.get(quantity, self.within)

    def observe(self, batch: MapBatch) -> tuple[Sums, Counts]:
        """The attention that words of keyphrases and other words receive in each text."""
        import torch

        received = received_by(batch, self.source, self.how)
        places = batch.once("keywords", lambda: _places(batch))
        sums = received.new_zeros(len(places), 4, received.shape[1])
        counts = np.zeros((len(places), 4))
        for text, (keys, others) in enumerate(places):
            if len(keys) and len(others) and batch.queries.chosen(self.source, group(self.source))[text].any():
                key, other = received[text][:, keys], received[text][:, others]
                above = key[:, :, None] - other[:, None, :]
                auc = ((above > 0).float() + 0.5 * (above == 0)).mean((1, 2))
                sums[text] = torch.stack([key.mean(1) - other.mean(1), key.mean(1), other.mean(1), auc.to(key.dtype)])
                counts[text] = 1
        return sums, counts


def received_by(batch: MapBatch, source: str, how: How) -> Float[torch.Tensor, "text head key"]:
    """The attention that each position receives from the rows of a group; 0 if there are no such rows."""
    rows = batch.queries.mask(source, group(source), batch.weights.device)[:, None, :, None]
    given = batch.weights * rows
    if how == "max":
        return given.amax(-2)
    received = given.sum(-2)
    return received / rows.sum(2).clamp_min(1) if how == "mean" else received


def _places(batch: MapBatch) -> Places:
    """For each text, the positions of words of keyphrases and those of other words."""
    import torch

    words = batch.keys.chosen("word", IS_WORD)
    found = []
    for positions, annotation in zip(words, batch.keys.texts, strict=True):
        places = np.flatnonzero(positions)
        keys = np.array(annotation.keywords or (False,) * len(places), dtype=bool)
        found.append(tuple(torch.from_numpy(places[side]).to(batch.weights.device) for side in (keys, ~keys)))
    return found  # type: ignore[return-value]
