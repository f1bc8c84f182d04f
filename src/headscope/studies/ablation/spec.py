"""What a study of ablation is to do, as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import Field, field_validator, model_validator

from headscope.corpora.fields import PAIRS
from headscope.corpora.tags import Tagging
from headscope.encoding.choices import Unit
from headscope.errors import RunError
from headscope.models.importance import BATCH_TEXTS, AbsOver, Normalise
from headscope.results.specification import Role, Specification, validated
from headscope.stats.contrast import Test

Part = Literal["heads", "all_but_one", "layers", "importance", "pruning"]
PARTS: tuple[Part, ...] = get_args(Part)
# By what a model predicts: the scores that can be taken of it, the usual one first.
SCORES: Mapping[str, tuple[str, ...]] = {
    "classes": ("accuracy", "f1", "f1_macro", "matthews", "loss"),
    "masked": ("loss", "masked_accuracy", "perplexity"),
    "causal": ("loss", "perplexity", "accuracy"),
    "tags": ("accuracy", "loss"),
    "keyphrases": ("keyphrase_tokens", "keyphrase_spans", "accuracy", "loss"),
    "translation": ("bleu", "bleu_tokenized", "chrf"),
}


OWN = "own"  # a score that is a function of the user's


class AblationSpec(Specification):
    """The settings of a study. A field left at None is decided by the model; `resolved` fills it in."""

    model: Annotated[str, Role.CONTENT] = "mini"
    dtype: Literal["float32", "float16", "bfloat16"] = "float32"
    corpus: Annotated[tuple[str, ...], Role.CONTENT] = ("sampler",)
    format: str | None = None
    on_error: Literal["raise", "skip"] = "raise"
    parts: tuple[Part, ...] = PARTS
    score: str | None = None
    how: Literal["zero", "mean"] = "zero"
    tags: Tagging | None = None
    unit: Unit | None = None
    max_length: int = Field(128, ge=8)
    limit: int | None = Field(200, ge=1)
    mask_share: float = Field(0.15, gt=0, le=1)
    test: Test | None = None
    abs_over: AbsOver = "example"
    batch_texts: int = Field(BATCH_TEXTS, ge=1)
    normalise: Normalise = "layer_l2"
    steps: int = Field(10, ge=1)
    orders: int = Field(3, ge=0)
    run: Annotated[str | None, Role.CONTENT] = Field(None, title="by_run")
    by: tuple[str, ...] = ()
    reestimate: bool = False
    most_first: bool = False
    tolerance: float = Field(0.01, ge=0)
    beams: int = Field(5, ge=1)
    replicates: int = Field(10_000, ge=0, le=100_000)
    seed: int = 0
    batch_tokens: Annotated[int | None, Role.NEUTRAL] = Field(None, ge=1)

    @field_validator("corpus", "parts", "by", mode="before")
    @classmethod
    def _one(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("corpus", "parts")
    @classmethod
    def _some(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value or len(set(value)) < len(value):
            raise ValueError("name at least one, and none twice")
        return value

    @model_validator(mode="after")
    def _run_and_by(self) -> AblationSpec:
        if bool(self.by) != (self.run is not None):
            raise ValueError("run and by go together: a run, and its quantities that heads are to be ordered by")
        return self

    def resolved(self, objective: str, translates: bool, pairs: bool, tags: Tagging | None = None) -> AblationSpec:
        """The settings with nothing left open, for a model that predicts this; an error for a score that it has not."""
        known = (*SCORES["keyphrases" if tags == "keyphrases" else objective], *(SCORES["translation"] if translates else ()))
        score = self.score or (SCORES["translation"][0] if translates and pairs else known[0])
        if score not in (*known, OWN):
            raise RunError(f"{self.model} has no {score}", f"Use one of {', '.join(known)}")
        if score in SCORES["translation"] and not pairs:
            problem = f"{score} compares translations, and {', '.join(self.corpus)} has no pairs of texts"
            raise RunError(problem, f"Use JSON lines or a table with the keys {' or '.join(' and '.join(pair) for pair in PAIRS)}")
        unit: Unit = self.unit or ("pair" if pairs else "document" if objective == "classes" or tags == "keyphrases" else "sentence")
        return self.model_copy(update={"score": score, "unit": unit, "tags": tags})


def make_ablation_spec(settings: Mapping[str, Any], where: str = "the settings") -> AblationSpec:
    """The specification of a study from plain values."""
    return validated(AblationSpec, settings, where)
