"""How much memory attention maps take."""

from __future__ import annotations

from dataclasses import dataclass

from headscope.models.model import Model


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes: the model's weights, the maps of its largest layer and of all layers, and the maps held at one time by
    a run.
    """

    weights: int
    layer: int
    everything: int
    maps: int


def estimate(model: Model, batch: int, length: int, without_maps: bool = False) -> Memory:
    """The memory of a batch of equally long texts.

    A map of one head is length x length float32 numbers. Eager attention holds a layer's maps three times at its peak
    (logits, masked logits, weights), a measure one more; models read through their outputs hold all layers besides. A
    run that needs no maps holds none.
    """
    one_head = 4 * batch * length * length
    layer = one_head * max(site.heads for site in model.sites)
    everything = one_head * model.layout.size
    weights = sum(parameter.numel() * parameter.element_size() for parameter in model.network.parameters())
    held = 4 * layer if model.capture == "interface" else everything + 4 * layer
    return Memory(weights, layer, everything, 0 if without_maps else held)
