"""The settings of a study by edge probing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator

from headscope.results.specification import Role
from headscope.stats.choices import Negatives
from headscope.studies.spec import DType, HiddenStatesSpec, Weights, some_and_once

if TYPE_CHECKING:
    from headscope.studies.edge_probe.tasks import Choices
    from headscope.studies.edge_probe.training import EdgeRecipe

Tags = Literal["auto", "upos", "xpos"]
# Tasks for which the paper's code checks its probes ten times as often, and trains for fewer steps.
SMALL = ("spr", "relations", "dpr")
# The settings of each preset. The paper trains slowly and for long, and selects the best state of a probe on the texts
# that it is scored on.
_PRESETS: Mapping[str, Mapping[str, Any]] = {
    "recommended": {"rate": 2e-3, "mix_rate": 10.0, "batch": 16, "checks": 10, "select": "held_out"},
    "reference": {
        "rate": 1e-4, "mix_rate": 1.0, "batch": 32, "checks": 250, "select": "dev", "check_every": 1000, "halve_after": 6, "stop_after": 21,
    },
}  # fmt: skip


class EdgeSpec(HiddenStatesSpec):
    """The settings of a study by edge probing. A field that is None depends on the preset or the corpus; `resolved`
    fills it in.

    Probes are scored on `dev`, or without it on a share `test` of the documents. `look` is a corpus whose targets are
    shown one by one.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = _PRESETS

    corpus: Annotated[tuple[str, ...], Role.CONTENT] = Field(
        ("sampler",), description="file to train on, or 'sampler' (embedded); may be repeated"
    )
    dev: Annotated[tuple[str, ...], Role.CONTENT] = Field(
        (), description="file to score on; may be repeated [default: part of the documents]"
    )
    look: Annotated[tuple[str, ...], Role.CONTENT] = Field(
        (), description="file whose targets are shown one by one, with probabilities by layer"
    )
    weights: Weights = Field("trained", description="trained, or random: a control, with all weights but the embeddings redrawn")
    preset: Literal["recommended", "reference"] = Field(
        "recommended", description="recommended, or reference (slow and long, as the paper trains)"
    )
    tasks: tuple[str, ...] | None = Field(
        None,
        description="pos, deps, constituents, entities, srl, coref, spr, relations, or any other that the corpus names "
        "[default: all it has]",
    )
    tags: Tags = Field("auto", description="pos: upos, xpos, or auto (upos if there is any)")
    subtypes: bool = Field(True, description="deps: keep subtypes, such as nsubj:pass, as separate labels")
    apart: int | None = Field(0, ge=-1, description="coref: most sentences between the two mentions of a pair; -1: any number")
    singletons: bool = Field(False, description="coref: include entities that are mentioned once")
    unit: Literal["sentence", "document"] | None = Field(
        None, description="unit of text: sentence or document [default: sentence; document with --apart]"
    )
    max_length: int = Field(
        128, ge=8, description="longest text, in tokens; longer sentences are skipped, longer documents cut into windows"
    )
    limit: int | None = Field(2000, ge=2, description="texts to train on, drawn from all documents; 0: all of them")
    limit_dev: int | None = Field(None, ge=1, description="texts to score on; 0: all of them [default: all]")
    test: float = Field(0.2, gt=0, lt=1)
    held_out: float = Field(0.1, gt=0, lt=1)
    select: Literal["held_out", "dev"] | None = None
    single: bool = Field(False, description="also probe each layer alone")
    control: bool = Field(True, description="also train probes on random labels, for selectivity")
    negatives: Negatives = Field(
        "keep", description="expected layer: keep layers that make it worse (the paper), clip them, or running_max"
    )
    seeds: int = Field(1, ge=1, le=100, description="trainings of each probe, with different seeds")
    seed: int = Field(0, description="random seed; the first of the probes' seeds")
    hidden: int = Field(256, ge=1, description="width of a probe")
    rate: float | None = Field(None, gt=0, description="learning rate [default: 0.002]")
    mix_rate: float | None = Field(None, gt=0)
    batch: int | None = Field(None, ge=1, description="texts per training step [default: 16]")
    dropout: float = Field(0.3, ge=0, lt=1)
    checks: int | None = Field(None, ge=1, description="most checks: one per epoch, or per 25 steps if an epoch is shorter [default: 10]")
    examples: int = Field(8, ge=0, description="examples to show per task, whose decision changes between layers")
    searched: int = Field(1000, ge=0)
    cache_dtype: DType = "float16"
    batch_tokens: Annotated[int, Role.NEUTRAL] = Field(4096, ge=1)

    @field_validator("tasks")
    @classmethod
    def _some(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return some_and_once(value)

    @field_validator("apart")
    @classmethod
    def _any_number(cls, value: int | None) -> int | None:
        return None if value == -1 else value

    @property
    def choices(self) -> Choices:
        """How targets are derived from the annotation."""
        from headscope.studies.edge_probe.tasks import Choices

        return Choices(self.tags, self.subtypes, self.apart, self.singletons)

    def recipe(self, task: str) -> EdgeRecipe:
        """How the probes of a task are trained."""
        from headscope.studies.edge_probe.training import EdgeRecipe

        settings = dict(_PRESETS[self.preset])
        settings.pop("select")
        if self.preset == "reference" and task in SMALL:
            settings |= {"check_every": 100, "checks": 100}
        settings |= {name: value for name in ("rate", "mix_rate", "batch", "checks") if (value := getattr(self, name)) is not None}
        return EdgeRecipe(**settings, dropout=self.dropout)

    def resolved(self, tasks: tuple[str, ...]) -> EdgeSpec:
        """The complete settings, except for what the recipe of each task decides."""
        unit = self.unit or ("sentence" if self.apart == 0 else "document")
        return self.model_copy(update={"tasks": tasks, "unit": unit, "select": self.select or _PRESETS[self.preset]["select"]})
