"""What a structural probe is to do, as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field, field_validator

from headscope.results.specification import Role, Specification, validated
from headscope.studies.hidden_states import DType
from headscope.studies.structural_probe.training import Recipe
from headscope.studies.structural_probe.trees import Punct

Baseline = Literal["linear", "decay", "projection", "random"]
Scale = Literal["unit", "none"]
HeldOut = Literal["train", "dev"]
BASELINES: tuple[Baseline, ...] = get_args(Baseline)
# METHODS §10: what the released code does, where it differs.
_PRESETS: Mapping[str, Mapping[str, str]] = {
    "recommended": {"scale": "unit", "punct": "tag", "held_out": "train"},
    "reference": {"scale": "none", "punct": "ptb", "held_out": "dev"},
}


class StructuralSpec(Specification):
    """The settings of a study. A field left at None is decided by the preset or by the model; `resolved` fills it in."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = _PRESETS

    model: Annotated[str, Role.CONTENT] = "mini"
    dtype: Literal["float32", "float16", "bfloat16"] = "float32"
    corpus: Annotated[tuple[str, ...], Role.CONTENT] = ("sampler",)
    dev: Annotated[tuple[str, ...] | None, Role.CONTENT] = None
    format: str | None = None
    on_error: Literal["raise", "skip"] = "raise"
    preset: Literal["recommended", "reference"] = "recommended"
    layers: tuple[int, ...] | None = None
    rank: int | None = Field(None, ge=1)
    ranks: tuple[int, ...] | None = None
    ranks_layer: int | None = Field(None, ge=0)
    baselines: tuple[Baseline, ...] = BASELINES
    seeds: int = Field(1, ge=1, le=100)
    limit: int | None = Field(None, ge=1)
    max_length: int = Field(128, ge=8)
    scale: Scale | None = None
    punct: Punct | None = None
    held_out: HeldOut | None = None
    rate: float = Field(1e-3, gt=0)
    batch: int = Field(20, ge=1)
    epochs: int = Field(40, ge=1)
    patience: int = Field(5, ge=1)
    reset: bool = False
    store: DType = "float16"
    resample: Literal["document", "sentence"] = "document"
    replicates: int = Field(1000, ge=0, le=100_000)
    seed: int = 0

    @field_validator("corpus", "dev", "baselines", mode="before")
    @classmethod
    def _one(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("layers", "ranks", mode="before")
    @classmethod
    def _number(cls, value: object) -> object:
        return (value,) if isinstance(value, int) else value

    @field_validator("corpus", "dev", "layers", "ranks", "baselines")
    @classmethod
    def _once(cls, value: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        if value is not None and len(set(value)) < len(value):
            raise ValueError("name none twice")
        return value

    @field_validator("ranks")
    @classmethod
    def _positive(cls, value: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if value is not None and any(rank < 1 for rank in value):
            raise ValueError("a rank is 1 or more")
        return value

    @property
    def reference(self) -> bool:
        """Whether what the released code did is to be done."""
        return self.preset == "reference"

    @property
    def recipe(self) -> Recipe:
        """How probes are trained."""
        return Recipe(self.rate, self.batch, self.epochs, self.patience, reset=self.reset, sorted=not self.reference, seed=self.seed)

    def resolved(self) -> StructuralSpec:
        """The settings as the preset has them, where nothing else is said."""
        return self.model_copy(update=self.by_preset())


def make_structural_spec(settings: Mapping[str, Any], where: str = "the settings") -> StructuralSpec:
    """The specification of a study from plain values."""
    return validated(StructuralSpec, settings, where)
