"""What a study of flow is to do, as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field, field_validator

from headscope.errors import RunError
from headscope.flows.attachment import Labels
from headscope.flows.classes import Deletion
from headscope.flows.grouping import Grouping
from headscope.flows.trees import Punct, Resample
from headscope.models.jacobian import KINDS
from headscope.models.jacobian.flow import Kind, Method
from headscope.models.jacobian.layers import Mode
from headscope.models.jacobian.norms import Norm
from headscope.runs.settings import Role, Specification
from headscope.runs.spec import validated
from headscope.runs.studies import Pick

Part = Literal["coreference", "classes", "trees", "agreement"]
Draw = Literal["balanced", "matched", "alternating"]
PARTS: tuple[Part, ...] = get_args(Part)
NEEDS: Mapping[Part, str] = {"coreference": "mentions", "classes": "parts of speech", "trees": "trees"}

FEW, MANY = 16, 500
LONGEST = 64  # tokens of a text whose maximum flow is found
# METHODS §7: what the released code does, where it differs.
_PRESETS: Mapping[str, Mapping[str, str]] = {
    "recommended": {
        "norm": "frobenius", "draw": "balanced", "deletion": "comparison", "labels": "main", "resample": "document", "pick": "random",
        "mode": "eval",
    },
    "reference": {
        "norm": "sum", "draw": "alternating", "deletion": "listwise", "labels": "whole", "resample": "sentence", "pick": "first",
        "mode": "train",
    },
}  # fmt: skip


def _usual(settings: dict[str, Any]) -> int:
    """As many sentences, and pairs, as the paper has; with G* and the recommended settings few, which take minutes and not hours."""
    return FEW if "G*" in settings.get("measures", ()) and settings.get("preset") == "recommended" else MANY


class FlowSpec(Specification):
    """The settings of a study. A field left at None is decided by the preset or by what the corpus has; `resolved` fills it in."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = _PRESETS

    model: Annotated[str, Role.CONTENT] = "mini"
    dtype: Literal["float32", "float16", "bfloat16"] = "float32"
    weights: Literal["trained", "random"] = "trained"
    corpus: Annotated[tuple[str, ...], Role.CONTENT] = ("sampler",)
    format: str | None = None
    on_error: Literal["raise", "skip"] = "raise"
    preset: Literal["recommended", "reference"] = "recommended"
    parts: tuple[Part, ...] | None = None
    measures: tuple[Kind, ...] = KINDS
    norm: Norm | None = None
    method: Method = "auto"
    probes: int = Field(32, ge=2)
    mode: Mode | None = None
    limit: int | None = Field(default_factory=_usual, ge=1)
    pick: Pick | None = None
    items: int = Field(default_factory=_usual, ge=2)
    draw: Draw | None = None
    context: int = Field(64, ge=8)
    max_length: int = Field(128, ge=8)
    grouping: Grouping = "mean"
    punct: Punct = "include"
    deletion: Deletion | None = None
    labels: Labels | None = None
    transpose: bool = False
    resample: Resample | None = None
    replicates: int = Field(1000, ge=0, le=100_000)
    seed: int = 0

    @field_validator("corpus", "parts", "measures", mode="before")
    @classmethod
    def _one(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("corpus", "parts", "measures")
    @classmethod
    def _some(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if value is not None and (not value or len(set(value)) < len(value)):
            raise ValueError("name at least one, and none twice")
        return value

    @property
    def random(self) -> int | None:
        """The seed to redraw weights with, if they are to be redrawn."""
        return self.seed if self.weights == "random" else None

    def resolved(self, layers: set[str]) -> FlowSpec:
        """The settings with nothing left open; `layers` are what the corpus has. An error if a part asked for lacks its annotation."""
        possible = [part for part in PARTS if NEEDS.get(part) in {None, *layers} and not (part == "agreement" and len(self.measures) < 2)]
        for part in self.parts or ():
            if part not in possible and part == "agreement":
                raise RunError("agreement compares measures, and there is one", "Name two or more with --measures, as in A,G")
            if part not in possible:
                remedy = f"Use a corpus with {NEEDS[part]}, or leave {part} out of --parts"
                raise RunError(f"{part} needs {NEEDS[part]}, and {', '.join(self.corpus)} has none", remedy)
        length = min(self.max_length, LONGEST) if "maxflow" in self.measures else self.max_length
        decided = {"parts": self.parts or tuple(possible), "max_length": length, "context": min(self.context, length)}
        return self.model_copy(update={**self.by_preset(), **decided})


def make_flow_spec(settings: Mapping[str, Any], where: str = "the settings") -> FlowSpec:
    """The specification of a study from plain values."""
    return validated(FlowSpec, settings, where)
