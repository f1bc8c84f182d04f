"""What a study of attention probes is to do, as data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field, field_validator

from headscope.results.specification import Role, Specification, validated
from headscope.studies.attention_probe.lexicon import Unknown, Words
from headscope.studies.attention_probe.probes import Alignment, Root
from headscope.studies.attention_probe.training import Decay, Optimiser, Order, Recipe

EPOCHS, MOST_EPOCHS, STEPS = 4, 20, 400  # of the recommended recipe: epochs, more of them where sentences are few, to have so many steps
Name = Literal["attention", "attention-words", "words-distances", "random-attention", "random-attention-words", "right-branching"]
NAMES: tuple[Name, ...] = get_args(Name)
# METHODS §5: what the released code does, where it differs.
_PRESETS: Mapping[str, Mapping[str, Any]] = {
    "recommended": {
        "alignment": "fixed", "unknown": "zeros", "word_rows": "mean", "standardise": False, "decay": "linear", "batch": 32,
        "order": "shuffled",
    },
    "reference": {
        "alignment": "reference", "unknown": "first", "word_rows": "first", "standardise": False, "decay": "none", "epochs": 1, "batch": 1,
        "order": "file", "rate": 0.002,
    },
}  # fmt: skip


class AttentionProbeSpec(Specification):
    """The settings of a study. A field left at None is decided by the preset; `resolved` fills it in."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = _PRESETS

    model: Annotated[str, Role.CONTENT] = "mini"
    dtype: Literal["float32", "float16", "bfloat16"] = "float32"
    corpus: Annotated[tuple[str, ...], Role.CONTENT] = ("sampler",)
    dev: Annotated[tuple[str, ...] | None, Role.CONTENT] = None
    format: str | None = None
    on_error: Literal["raise", "skip"] = "raise"
    preset: Literal["recommended", "reference"] = "recommended"
    probes: tuple[Name, ...] = NAMES
    words: Words | None = None
    vectors: Annotated[str | None, Role.CONTENT] = None
    unknown: Unknown | None = None
    root: Root = "shared"
    alignment: Alignment | None = None
    bias: bool = True
    standardise: bool | None = None
    word_rows: Literal["mean", "first", "max"] | None = None
    optimiser: Optimiser = "adam"
    rate: float | None = Field(None, gt=0)
    decay: Decay | None = None
    epochs: int | None = Field(None, ge=1)
    batch: int | None = Field(None, ge=1)
    order: Order | None = None
    patience: int = Field(0, ge=0)
    seeds: int = Field(3, ge=1)
    decode: Literal["argmax", "tree"] = "argmax"
    held_out: float = Field(0.2, gt=0, lt=1)
    limit: int | None = Field(None, ge=1)
    limit_dev: int | None = Field(None, ge=1)
    max_length: int = Field(128, ge=8)
    replicates: int = Field(1000, ge=0, le=100_000)
    seed: int = 0
    batch_tokens: Annotated[int | None, Role.NEUTRAL] = Field(None, ge=1)
    cache_bytes: Annotated[int, Role.NEUTRAL] = Field(8 << 30, ge=0)

    @field_validator("corpus", "dev", "probes", mode="before")
    @classmethod
    def _one(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("corpus", "dev", "probes")
    @classmethod
    def _some(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if value is not None and (not value or len(set(value)) < len(value)):
            raise ValueError("name at least one, and none twice")
        return value

    def resolved(self) -> AttentionProbeSpec:
        """The settings as the preset has them. Left open are the rate, which each probe has its own of, the words, which the vectors
        decide, and the epochs, which the number of sentences does.
        """
        return self.model_copy(update=self.by_preset())

    def epochs_for(self, sentences: int) -> int:
        """How often that many sentences are gone through."""
        return self.epochs or min(max(EPOCHS, math.ceil(STEPS * (self.batch or 1) / sentences)), MOST_EPOCHS)

    @property
    def recipe(self) -> Recipe:
        """How the probes are trained, of settings that are resolved."""
        return Recipe(
            self.optimiser,
            self.rate,
            self.decay or "none",
            self.epochs or 1,
            self.batch or 1,
            self.order or "file",
            self.patience,
            self.seed,
        )

    @property
    def every_seed(self) -> range:
        """The seeds that weights are drawn by."""
        return range(self.seed, self.seed + self.seeds)

    def parts(self) -> dict[str, tuple[Name, ...]]:
        """The probes asked for, by what they are trained on: the model, its random control, words alone, or nothing."""
        of: dict[Name, str] = {
            "attention": "trained", "attention-words": "trained", "words-distances": "words", "random-attention": "random",
            "random-attention-words": "random", "right-branching": "rules",
        }  # fmt: skip
        found: dict[str, tuple[Name, ...]] = {}
        for part in ("rules", "trained", "random", "words"):
            if own := tuple(name for name in NAMES if name in self.probes and of[name] == part):
                found[part] = own
        return found


def make_attention_probe_spec(settings: Mapping[str, Any], where: str = "the settings") -> AttentionProbeSpec:
    """The specification of a study from plain values."""
    return validated(AttentionProbeSpec, settings, where)
