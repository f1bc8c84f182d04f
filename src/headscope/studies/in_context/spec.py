"""The settings of a study of in-context learning."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from headscope.models import MODEL_HELP
from headscope.results.specification import Role
from headscope.studies.spec import StudySpec, Weights, some_and_once

CONTEXT = 512  # tokens of the context in which `early` and `late` are places


class InContextSpec(StudySpec):
    """The settings of a study of in-context learning. Places refer to a context of 512 tokens, and are scaled to a
    shorter one.
    """

    model: Annotated[str, Role.CONTENT] = Field("mini-decoder", description=f"{MODEL_HELP}; a language model")
    weights: Weights = Field("trained", description="trained, or random as a control")
    corpus: Annotated[tuple[str, ...], Role.CONTENT] = Field(
        ("repeats:50",), description="file, folder, 'sampler', or 'repeats:50' (random sequences, twice); may be repeated"
    )
    chosen_on: Annotated[tuple[str, ...], Role.CONTENT] = Field(("repeats:50@1",), description="corpus of other texts, to choose heads on")
    by: Literal["induction", "duplicate", "previous_token", "name_induction", "name_copy"] = Field(
        "induction", description="score to choose heads by: induction, duplicate, previous_token, name_induction, name_copy"
    )
    heads: tuple[int, ...] = Field((1, 4), description="how many of the strongest heads to switch off; several numbers in turn")
    draws: int = Field(5, ge=1, le=1000, description="draws of as many random heads of the same layers, as a control")
    how: Literal["mean", "zero"] = Field("mean", description="output of a head that is off: its mean over the texts, or zero")
    early: int = Field(50, ge=1, lt=CONTEXT, description="an early token, in a context of 512")
    late: int = Field(500, ge=2, lt=CONTEXT, description="a late token, in a context of 512")
    width: int = Field(21, ge=1, lt=CONTEXT, description="tokens around each that are averaged, in a context of 512; 1: as Olsson et al.")
    max_length: int = Field(CONTEXT, ge=8, description="tokens of a text, the context; shorter texts are skipped")
    limit: int | None = Field(200, ge=1, description="texts, drawn from all documents; 0: all of them")
    batch_tokens: Annotated[int | None, Role.NEUTRAL] = Field(None, ge=1, description="tokens per batch [default: 2048, on a GPU 32768]")

    @field_validator("chosen_on")
    @classmethod
    def _once(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return some_and_once(value)

    @field_validator("heads")
    @classmethod
    def _numbers(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if any(number < 1 for number in value):
            raise ValueError("numbers of heads begin with 1")
        return tuple(sorted(some_and_once(value)))

    @model_validator(mode="after")
    def _in_order(self) -> InContextSpec:
        if self.early >= self.late:
            raise ValueError(f"the early token, {self.early}, must be before the late token, {self.late}")
        return self
