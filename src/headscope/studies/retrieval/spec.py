"""The settings of a study of retrieval heads."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from headscope.models import MODEL_HELP
from headscope.results.specification import Role
from headscope.studies.spec import StudySpec, Weights, some_and_once

ABOVE = 0.1  # Wu et al. call a head with a higher score a retrieval head
Decoding = Literal["greedy", "forced"]


class RetrievalSpec(StudySpec):
    """The settings of a study of retrieval heads."""

    model: Annotated[str, Role.CONTENT] = Field("mini-decoder", description=MODEL_HELP)
    corpus: Annotated[tuple[str, ...], Role.CONTENT] = Field(
        ("needles:96x40",), description="file with questions, passages and answers, or 'needles:96x40' (made); may be repeated"
    )
    max_length: int = Field(512, ge=8, description="longest text, in tokens, with its answer")
    decoding: Literal["auto", "greedy", "forced"] = Field(
        "auto",
        description="score what the model answers (greedy), or the right answer given to it (forced); auto: greedy if 6 texts are answered",
    )
    top: tuple[int, ...] = Field((1, 4, 8), description="how many of the strongest heads to switch off; several numbers in turn")
    draws: int = Field(5, ge=1, le=100, description="random draws of as many heads")
    weights: Weights = Field("trained", description="trained, or random: a control, with all weights but the embeddings redrawn")

    @field_validator("top")
    @classmethod
    def _counts(cls, value: tuple[int, ...]) -> tuple[int, ...]:
        if any(number < 1 for number in value):
            raise ValueError("numbers of heads begin with 1")
        return tuple(sorted(some_and_once(value)))
