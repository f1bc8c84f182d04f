"""What a study of keywords is to do, as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from headscope.results.specification import Role, Specification, validated
from headscope.studies.keywords.features import Source


class KeywordSpec(Specification):
    """The settings of a study. Without `dev` documents, those of the corpus take turns: learnt from in all folds but one."""

    model: Annotated[str, Role.CONTENT] = "mini"
    dtype: Literal["float32", "float16", "bfloat16"] = "float32"
    corpus: Annotated[tuple[str, ...], Role.CONTENT] = ("sampler",)
    dev: Annotated[tuple[str, ...], Role.CONTENT] = ()
    format: str | None = None
    on_error: Literal["raise", "skip"] = "raise"
    source: Source = "all"
    penalty: float = Field(1.0, gt=0)
    folds: int = Field(5, ge=2, le=100)
    max_length: int = Field(512, ge=8)
    limit: int | None = Field(None, ge=2)
    replicates: int = Field(1000, ge=0, le=100_000)
    seed: int = 0

    @field_validator("corpus", "dev", mode="before")
    @classmethod
    def _one(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("corpus")
    @classmethod
    def _some(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise ValueError("name at least one corpus")
        return value


def make_keyword_spec(settings: Mapping[str, Any], where: str = "the settings") -> KeywordSpec:
    """The specification of a study from plain values."""
    return validated(KeywordSpec, settings, where)
