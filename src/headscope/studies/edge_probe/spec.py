"""What a study by edge probing is to do, as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator

from headscope.results.specification import Role, Specification, validated
from headscope.stats.layers import Negatives
from headscope.studies.edge_probe.tasks import Choices, Tags
from headscope.studies.edge_probe.training import Recipe

# Tasks for which the paper's code checks its probes ten times as often, and which end sooner.
SMALL = ("spr", "relations", "dpr")
# What the presets decide. The paper trains slowly and for long, and chooses the best state of a probe on what it is scored on.
_PRESETS: Mapping[str, Mapping[str, Any]] = {
    "recommended": {"rate": 2e-3, "mix_rate": 10.0, "checks": 10, "select": "held_out"},
    "reference": {"rate": 1e-4, "mix_rate": 1.0, "checks": 250, "select": "dev", "check_every": 1000, "halve_after": 6, "stop_after": 21},
}


class EdgeSpec(Specification):
    """The settings of a study. A field left at None is decided by the preset or the corpus; `resolved` fills it in.

    `dev` is what probes are scored on; without it, a share `test` of the documents. `look` is a corpus whose targets are shown one by one.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = _PRESETS

    model: Annotated[str, Role.CONTENT] = "mini"
    dtype: Literal["float32", "float16", "bfloat16"] = "float32"
    weights: Literal["trained", "random"] = "trained"
    corpus: Annotated[tuple[str, ...], Role.CONTENT] = ("sampler",)
    dev: Annotated[tuple[str, ...], Role.CONTENT] = ()
    look: Annotated[tuple[str, ...], Role.CONTENT] = ()
    format: str | None = None
    on_error: Literal["raise", "skip"] = "raise"
    preset: Literal["recommended", "reference"] = "recommended"
    tasks: tuple[str, ...] | None = None
    tags: Tags = "auto"
    subtypes: bool = True
    apart: int | None = Field(0, ge=0)
    singletons: bool = False
    unit: Literal["sentence", "document"] | None = None
    max_length: int = Field(128, ge=8)
    limit: int | None = Field(2000, ge=2)
    dev_limit: int | None = Field(None, ge=1)
    test: float = Field(0.2, gt=0, lt=1)
    held_out: float = Field(0.1, gt=0, lt=1)
    select: Literal["held_out", "dev"] | None = None
    single: bool = False
    control: bool = True
    negatives: Negatives = "keep"
    seeds: int = Field(2, ge=1, le=100)
    seed: int = 0
    hidden: int = Field(256, ge=1)
    rate: float | None = Field(None, gt=0)
    mix_rate: float | None = Field(None, gt=0)
    batch: int = Field(32, ge=1)
    dropout: float = Field(0.3, ge=0, lt=1)
    checks: int | None = Field(None, ge=1)
    examples: int = Field(8, ge=0)
    searched: int = Field(1000, ge=0)
    replicates: int = Field(1000, ge=0, le=100_000)
    cache: Annotated[str | None, Role.NEUTRAL] = None
    cache_dtype: Literal["float16", "float32"] = "float16"
    cache_limit: Annotated[float, Role.NEUTRAL] = Field(8.0, gt=0)  # GiB
    batch_tokens: Annotated[int, Role.NEUTRAL] = Field(4096, ge=1)

    @field_validator("corpus", "dev", "look", "tasks", mode="before")
    @classmethod
    def _one(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("corpus", "tasks")
    @classmethod
    def _some(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if value is not None and (not value or len(set(value)) < len(value)):
            raise ValueError("name at least one, and none twice")
        return value

    @property
    def random(self) -> int | None:
        """The seed to redraw weights with, if they are to be redrawn."""
        return self.seed if self.weights == "random" else None

    @property
    def choices(self) -> Choices:
        """How targets are made."""
        return Choices(self.tags, self.subtypes, self.apart, self.singletons)

    def recipe(self, task: str) -> Recipe:
        """How the probes of a task are trained."""
        said = dict(_PRESETS[self.preset])
        said.pop("select")
        if self.preset == "reference" and task in SMALL:
            said |= {"check_every": 100, "checks": 100}
        said |= {name: value for name in ("rate", "mix_rate", "checks") if (value := getattr(self, name)) is not None}
        return Recipe(**said, batch=self.batch, dropout=self.dropout)

    def resolved(self, tasks: tuple[str, ...]) -> EdgeSpec:
        """The settings with nothing left open but what the recipe of each task decides."""
        unit = self.unit or ("sentence" if self.apart == 0 else "document")
        return self.model_copy(update={"tasks": tasks, "unit": unit, "select": self.select or _PRESETS[self.preset]["select"]})


def make_edge_spec(settings: Mapping[str, Any], where: str = "the settings") -> EdgeSpec:
    """The specification of a study from plain values."""
    return validated(EdgeSpec, settings, where)
