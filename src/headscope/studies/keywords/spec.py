"""The settings of a study of keywords."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from headscope.results.specification import Role
from headscope.studies.spec import StudySpec, some_and_once

Source = Literal["all", "cls", "words"]
BASELINES = ("every word", "position", "tf-idf", "yake")  # ways to find keywords without attention


class KeywordSpec(StudySpec):
    """The settings of a study of keywords; without `dev` documents the corpus is cross-validated."""

    corpus: Annotated[tuple[str, ...], Role.CONTENT] = Field(
        ("sampler",), description="file with keyphrases, or 'sampler' (embedded); may be repeated"
    )
    dev: Annotated[tuple[str, ...] | None, Role.CONTENT] = Field(
        None, description="file to test on [default: documents of the corpus in turn]"
    )
    source: Source = Field("all", description="attention from all positions, from the opening token (cls), or from words")
    folds: int = Field(5, ge=2, le=100, description="cross-validation folds, if there is no --dev")
    penalty: float = Field(1.0, gt=0, description="L2 penalty")
    max_length: int = Field(512, ge=8, description="tokens of a document to read")
    limit: int | None = Field(None, ge=2, description="documents to learn from, drawn at random; 0: all of them")

    @field_validator("dev", mode="before")
    @classmethod
    def _in_turn(cls, value: object) -> object:
        """None if there is no file to test on; older studies have an empty list."""
        return value or None

    @field_validator("dev")
    @classmethod
    def _once(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return some_and_once(value)
