"""Estimates of the memory of attention maps and backward passes before a batch runs, and batches whose backward passes
stay within a bound.

A forward pass with gradients keeps the results of every layer: a number of bytes per token and, for the maps, a number
of bytes per pair of tokens of a text. Both follow from what torch keeps for two short texts of different lengths. If
words are predicted, the logits of the whole vocabulary are added.
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
MOST_ELSEWHERE = 4 << 30  # on a GPU, which only large batches keep busy
SCORES = 3  # copies of a prediction's scores at the peak: their logarithms, and the gradients of both


@dataclass(frozen=True, slots=True)
class Memory:
    """Numbers of bytes: the model's weights, the maps of its largest layer and of all layers, the maps that a run holds
    at one time, and what a layer computes besides maps.
    """

    weights: int
    layer: int
    everything: int
    maps: int
    activations: int


def estimate(model: Model, batch: int, length: int, without_maps: bool = False) -> Memory:
    """The memory of a batch of equally long texts.

    A map of one head is length x length float32 numbers. Eager attention holds a layer's maps three times at its peak
    (logits, masked logits, weights), and a measure holds one more copy. Models whose maps are read from their outputs
    also hold the maps of all layers. A run that needs no maps holds none. Besides maps, a layer holds for each token
    about six vectors of the model's width and three of its widest part.
    """
    one_head = 4 * batch * length * length
    layer = one_head * max(site.heads for site in model.sites)
    everything = one_head * model.layout.size
    weights = sum(parameter.numel() * parameter.element_size() for parameter in model.network.parameters())
    held = 4 * layer if model.capture == "interface" else everything + 4 * layer
    embeddings = model.network.get_input_embeddings().weight
    tables = {id(module.weight) for module in model.network.modules() if isinstance(module, torch.nn.Embedding)}
    widest = max((max(weight.shape) for weight in model.network.parameters() if weight.ndim == 2 and id(weight) not in tables), default=0)
    activations = batch * length * embeddings.element_size() * (6 * embeddings.shape[1] + 3 * widest)
    return Memory(weights, layer, everything, 0 if without_maps else held, activations)


@dataclass(frozen=True)
class BackwardMemory:
    """The bytes that a backward pass holds per token, per pair of tokens of a text, and per prediction, and the most
    bytes that it may hold.
    """

    token: float
    pair: float
    prediction: int
    most: int

    @classmethod
    def of(cls, model: Model) -> BackwardMemory:
        """The estimate for a model with its prediction head."""
        inputs = dry_inputs(model.network)
        long = min(tensor.shape[1] for tensor in inputs.values())
        short = long // 2
        first, second = (saved_bytes(model, {name: tensor[:1, :size] for name, tensor in inputs.items()}) for size in (short, long))
        pair = max(0.0, (second / long - first / short) / (long - short))
        return cls(second / long - long * pair, pair, SCORES * 4 * model.answers, MOST if model.device.type == "cpu" else MOST_ELSEWHERE)

    def planned(self, texts: int, longest: int, share: float = 1.0) -> int:
        """The bytes of `texts` texts, padded to `longest` tokens, if `share` of their tokens are predicted."""
        return round(texts * longest * (self.token + longest * self.pair + share * self.prediction))

    def batches(self, texts: Sequence[Encoded], share: float = 1.0) -> Iterator[list[Encoded]]:
        """The texts, the shortest first, in batches within the bound. A text that exceeds the bound is a separate
        batch.
        """
        ordered = sorted(texts, key=lambda text: text.cost)
        return grouped(ordered, lambda batch, text: self.planned(len(batch) + 1, text.cost, share) > self.most)


def saved_bytes(model: Model, inputs: Mapping[str, torch.Tensor]) -> int:
    """The bytes that torch saves in a forward pass with eager attention for the backward pass, not counting the
    weights.
    """
    from headscope.models.gradients import from_embeddings

    whole = whole_of(model)
    weights = {tensor.untyped_storage().data_ptr() for tensor in (*whole.parameters(), *whole.buffers())}
    kept: dict[int, torch.Tensor] = {}  # kept alive, so that no address is used twice

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        if (place := tensor.untyped_storage().data_ptr()) not in weights:
            kept.setdefault(place, tensor)
        return tensor

    hooks = torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor)
    with torch.enable_grad(), from_embeddings(model, []), capture.implementation(model.network, "eager"), hooks:
        result = whole(**inputs, use_cache=False)
    del result
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())
