"""The settings of a comparison of the heads of two models."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator

from headscope.core.heads import Kind
from headscope.encoding.choices import Rows, Unit
from headscope.models import MODEL_HELP
from headscope.results.specification import Role
from headscope.studies.spec import StudySpec


class TwinsSpec(StudySpec):
    """The settings of a comparison of two models, which tables and signatures call a and b.

    `kind` and `unit` are None until they are completed from the models and the corpus; `kind` becomes one kind per
    model.
    """

    model: Annotated[str, Role.CONTENT] = Field("mini", title="a", description=MODEL_HELP)
    other: Annotated[str, Role.CONTENT] = Field(
        title="b", description="the second model: heads of each model are matched with those of the other"
    )
    level: Literal["word", "token"] = Field("word", description="word, or token for models that read the same tokens")
    kind: tuple[Kind, ...] | None = Field(
        None, description="kind of attention: encoder or decoder, or one per model: encoder,decoder [default: that with the most heads]"
    )
    control: bool = Field(False, description="also compare with untrained copies; takes three times as long")
    epsilons: tuple[float, ...] = Field((0.02, 0.05, 0.1), description="distances below which twins are counted, in nats")
    least: float = Field(0.1, description="heads that give less than this share of their attention to words are marked as faint")
    unit: Unit | None = Field(None, description="unit of text: sentence, paragraph, document, pair, segment [default: sentence]")
    max_length: int = Field(128, ge=4, description="longest text, in tokens of either model; longer ones are skipped")
    limit: int | None = Field(None, ge=1, description="stop after this many texts; 0: all of them")
    word_rows: Rows = Field("mean", description="row of a word: mean of its tokens' rows, first, or max")
    replicates: int = Field(500, ge=0, le=100_000, description="bootstrap replicates for intervals")
    seed: int = Field(0, description="random seed of the bootstrap and of untrained weights")
    batch_tokens: Annotated[int | None, Role.NEUTRAL] = Field(None, ge=1, description="tokens per batch [default: 2048, on a GPU 32768]")
    shard_tokens: Annotated[int | None, Role.NEUTRAL] = Field(None, ge=1)  # tokens between two savings; by default 8 batches

    @field_validator("kind")
    @classmethod
    def _for_two_models(cls, value: tuple[Kind, ...] | None) -> tuple[Kind, ...] | None:
        if value is not None and len(value) not in (1, 2):
            raise ValueError(f"{len(value)} kinds for two models: name one, or one for each")
        return value

    @field_validator("epsilons")
    @classmethod
    def _above_zero(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if not all(epsilon > 0 for epsilon in value):
            raise ValueError(f"epsilon is {min(value):g}: use distances above 0, in nats")
        return value

    @field_validator("least")
    @classmethod
    def _share(cls, value: float) -> float:
        if not 0 <= value <= 1:
            raise ValueError(f"{value:g} is not a share of attention: use a number from 0 to 1")
        return value
