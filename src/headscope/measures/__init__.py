"""Measures: statistics of attention maps, computed in one pass. Each file contains one measure; `REGISTRY` lists them
by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from types import MappingProxyType
from typing import Any, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from headscope.core.batch import MapBatch
from headscope.core.suggest import choose_from
from headscope.errors import MeasureError
from headscope.measures import own
from headscope.measures.base import Measure
from headscope.measures.coreference import Coreference
from headscope.measures.distances import Distances
from headscope.measures.entropy import Entropy
from headscope.measures.groups import group
from headscope.measures.keywords import Keywords
from headscope.measures.means import HeadMeans
from headscope.measures.positions import Positions
from headscope.measures.pronouns import Pronouns
from headscope.measures.relations import Relations
from headscope.measures.retrieval import Retrieval
from headscope.measures.saliency import Saliency
from headscope.measures.sequences import Sequences
from headscope.measures.sinks import Sinks
from headscope.measures.tokens import Tokens
from headscope.measures.trees import SpanningTrees

_SURFACE = (Positions, Tokens, Entropy, Sinks, Sequences)
_ANNOTATED = (Relations, SpanningTrees, Coreference, Pronouns, Retrieval)
REGISTRY: Mapping[str, type[Measure]] = MappingProxyType({cls.name: cls for cls in (*_SURFACE, *_ANNOTATED, Distances, Saliency, Keywords)})
DEFAULT = ("positions", "tokens", "entropy")  # measures that need no annotation
PRESETS = ("recommended", "paper", "reference")


def class_of(name: str) -> type[Measure]:
    """The measure class with this name, from the registry or among the user's own measures."""
    if name in REGISTRY:
        return REGISTRY[name]
    if name not in own.OWN:
        remedy = f"{choose_from(name, (*REGISTRY, *own.OWN))}; a user-defined measure is named by its file and class, as in reach.py:Reach"
        raise MeasureError(f"measure {name!r} is unknown", remedy)
    return own.OWN[name]


def make(name: str, options: Mapping[str, Any] | None = None, preset: str = "recommended") -> Measure:
    """The measure called `name`, with the options of a preset, overridden by `options`."""
    cls = class_of(name)
    if preset not in PRESETS:
        raise MeasureError(f"preset {preset!r} is unknown", choose_from(preset, PRESETS))
    known = {field.name for field in fields(cls)}
    unknown = sorted(set(options or {}) - known)
    if unknown:
        raise MeasureError(f"{name} has no option {unknown[0]!r}", choose_from(unknown[0], sorted(known), "It takes"))
    hints = get_type_hints(cls)
    given: dict[str, Any] = {**cls.presets.get(preset, {}), **(options or {})}
    return cls(**{option: _value(name, option, value, hints[option]) for option, value in given.items()})


def _value(measure: str, option: str, value: Any, hint: Any) -> Any:
    """An option's value, converted to the type that the measure declares. Where several values are allowed, a single
    one is accepted too.
    """
    several = get_origin(hint) is tuple
    if several and not isinstance(value, list | tuple):
        value = (value,)
    try:
        valid = TypeAdapter(hint).validate_python(value)
    except ValidationError as error:
        raise MeasureError(f"{measure}: option {option} is {value!r}", error.errors()[0]["msg"]) from None
    if several and len(set(valid)) < len(valid):
        raise MeasureError(f"{measure}: option {option} is {value!r}", "Name each only once")
    return valid


__all__ = [
    "DEFAULT",
    "PRESETS",
    "REGISTRY",
    "Coreference",
    "Distances",
    "Entropy",
    "HeadMeans",
    "Keywords",
    "MapBatch",
    "Measure",
    "Positions",
    "Pronouns",
    "Relations",
    "Retrieval",
    "Saliency",
    "Sequences",
    "Sinks",
    "SpanningTrees",
    "Tokens",
    "class_of",
    "group",
    "make",
]
