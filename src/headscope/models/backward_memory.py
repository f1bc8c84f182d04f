"""The memory of a backward pass, worked out for a batch before it runs, and batches that stay within a bound.

A forward pass whose gradients are wanted keeps what every layer computed: so many bytes per token, and so many per pair
of tokens of a text, for the maps. Both follow from what torch keeps for two short texts of different lengths. Where
words are predicted, the scores of the whole vocabulary come on top.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from headscope.encoding.batches import grouped
from headscope.encoding.texts import Encoded
from headscope.models import capture
from headscope.models.answers import whole_of
from headscope.models.dry_run import dry_inputs

if TYPE_CHECKING:
    from headscope.models.model import Model

MOST = 384 << 20  # bytes of one backward pass on a CPU
MOST_ELSEWHERE = 4 << 30  # on a GPU, which is busy with large batches alone
SCORES = 3  # how often the scores of a prediction are held at the peak: their logarithms, and the gradients of both


@dataclass(frozen=True)
class BackwardMemory:
    """Bytes that a backward pass holds per token, per pair of tokens of a text, and per prediction, and the most that
    it may hold.
    """

    token: float
    pair: float
    prediction: int
    most: int

    @classmethod
    def of(cls, model: Model) -> BackwardMemory:
        """That of a model with what it predicts with."""
        inputs = dry_inputs(model.network)
        long = min(tensor.shape[1] for tensor in inputs.values())
        short = long // 2
        first, second = (saved_bytes(model, {name: tensor[:1, :size] for name, tensor in inputs.items()}) for size in (short, long))
        pair = max(0.0, (second / long - first / short) / (long - short))
        return cls(second / long - long * pair, pair, SCORES * 4 * model.answers, MOST if model.device.type == "cpu" else MOST_ELSEWHERE)

    def planned(self, texts: int, longest: int, share: float = 1.0) -> int:
        """The bytes of so many texts, padded to the longest, if `share` of their tokens are predicted."""
        return round(texts * longest * (self.token + longest * self.pair + share * self.prediction))

    def batches(self, texts: Sequence[Encoded], share: float = 1.0) -> Iterator[list[Encoded]]:
        """The texts, the shortest first, in batches within the bound. A text that is beyond it stands alone."""
        ordered = sorted(texts, key=lambda text: text.cost)
        return grouped(ordered, lambda batch, text: self.planned(len(batch) + 1, text.cost, share) > self.most)


def saved_bytes(model: Model, inputs: Mapping[str, torch.Tensor]) -> int:
    """The bytes that torch keeps of a forward pass by eager attention for the backward pass, beside the weights."""
    from headscope.models.gradients import from_embeddings

    whole = whole_of(model)
    weights = {tensor.untyped_storage().data_ptr() for tensor in (*whole.parameters(), *whole.buffers())}
    kept: dict[int, torch.Tensor] = {}  # held, so that no address is used twice

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        if (place := tensor.untyped_storage().data_ptr()) not in weights:
            kept.setdefault(place, tensor)
        return tensor

    hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
    with torch.enable_grad(), from_embeddings(model, []), capture.implementation(model.network, "eager"), hooks:
        result = whole(**inputs, use_cache=False)
    del result
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())
