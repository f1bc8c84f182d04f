"""The settings of a structural probe."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field, field_validator

from headscope.results.specification import Role
from headscope.studies.spec import DType, HiddenStatesSpec, some_and_once

if TYPE_CHECKING:
    from headscope.studies.structural_probe.training import StructuralRecipe

Baseline = Literal["linear", "decay", "projection", "random"]
Scale = Literal["unit", "none"]
Punct = Literal["tag", "ptb"]
HeldOut = Literal["train", "dev"]
BASELINES: tuple[Baseline, ...] = get_args(Baseline)
# `reference` follows the released code where it differs from the recommended settings.
_PRESETS: Mapping[str, Mapping[str, str]] = {
    "recommended": {"scale": "unit", "punct": "tag", "held_out": "train"},
    "reference": {"scale": "none", "punct": "ptb", "held_out": "dev"},
}


class StructuralSpec(HiddenStatesSpec):
    """The settings of a structural probe. A field that is None depends on the preset or on the model."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = _PRESETS

    corpus: Annotated[tuple[str, ...], Role.CONTENT] = Field(
        ("sampler",), description="file to train on, or 'sampler' (embedded); may be repeated"
    )
    dev: Annotated[tuple[str, ...] | None, Role.CONTENT] = Field(
        None, description="file to score on; may be repeated [default: some documents of the corpus]"
    )
    preset: Literal["recommended", "reference"] = Field("recommended", description="recommended, or reference (what the released code did)")
    layers: tuple[int, ...] | None = Field(None, description="layers, as in 0,6-8; 0: embeddings, n: output of block n [default: all]")
    rank: int | None = Field(None, ge=1, description="rank of the probes of each layer [default: the dimensions of a vector]")
    ranks: tuple[int, ...] | None = Field(
        None, description="ranks to test on one layer, as in 1,2,4,8; none: no test [default: powers of 2]"
    )
    ranks_layer: int | None = Field(None, ge=0, description="layer to test ranks on [default: the best one]")
    baselines: tuple[Baseline, ...] = Field(BASELINES, description="of linear,decay,projection,random; none: no baseline")
    seeds: int = Field(1, ge=1, le=100, description="probes to train of each kind, from different initial weights")
    scale: Scale | None = Field(
        None, description="scale vectors and initial matrices to unit size (unit), or leave them (none) [default: unit]"
    )
    punct: Punct | None = Field(
        None, description="punctuation by tag and relation (tag), or by the Penn Treebank's tags (ptb) [default: tag]"
    )
    held_out: HeldOut | None = Field(
        None, description="early stopping on a part of the training corpus (train), or on the scored sentences (dev) [default: train]"
    )
    rate: float = Field(1e-3, gt=0, description="learning rate")
    batch: int = Field(20, ge=1, description="sentences per step")
    epochs: int = Field(40, ge=1, description="most epochs")
    patience: int = Field(5, ge=1, description="epochs without gain before training stops")
    reset: bool = Field(False, description="reset Adam whenever the learning rate is lowered, as the paper says")
    store: DType = Field("float16", description="hidden states on disk as float16 or float32")
    cache_limit: Annotated[float, Role.NEUTRAL] = Field(
        8.0, gt=0, description="GiB that the hidden states of a part of the corpus may take"
    )
    max_length: int = Field(128, ge=8, description="longest sentence, in tokens; longer ones are skipped")
    limit: int | None = Field(None, ge=1, description="sentences of the corpus, drawn from all documents; 0: all of them [default: all]")
    resample: Literal["document", "sentence"] = Field("document", description="what intervals resample: document or sentence")

    @field_validator("layers")
    @classmethod
    def _some(cls, value: tuple[int, ...] | None) -> tuple[int, ...] | None:
        return some_and_once(value)

    @field_validator("dev", "ranks", "baselines")
    @classmethod
    def _once(cls, value: tuple[Any, ...] | None) -> tuple[Any, ...] | None:
        return some_and_once(value) if value else value

    @field_validator("ranks")
    @classmethod
    def _positive(cls, value: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if value is not None and any(rank < 1 for rank in value):
            raise ValueError("a rank is 1 or more")
        return value

    @property
    def reference(self) -> bool:
        """Whether the released code is followed."""
        return self.preset == "reference"

    @property
    def recipe(self) -> StructuralRecipe:
        """How probes are trained."""
        from headscope.studies.structural_probe.training import StructuralRecipe

        return StructuralRecipe(
            self.rate, self.batch, self.epochs, self.patience, reset=self.reset, sorted=not self.reference, seed=self.seed
        )
