"""The maps of a model that can be measured: attention weights, or alternatives to them (docs/maps.md)."""

from __future__ import annotations

from headscope.core.maps import MapName
from headscope.models.maps.base import AttentionMaps
from headscope.models.maps.norm import NormMaps
from headscope.models.maps.value_zeroing import ValueZeroing
from headscope.models.model import Model

_KINDS: dict[MapName, type[AttentionMaps]] = {"weights": AttentionMaps, "norm": NormMaps, "value-zeroing": ValueZeroing}


def maps_of(model: Model, name: MapName = "weights") -> AttentionMaps:
    """The maps of a model, by their name; an error says why a model has no maps of that name."""
    return _KINDS[name](model)
