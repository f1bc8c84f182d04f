"""The settings that all studies share."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, field_validator

from headscope.results.specification import Role, Specification

Names = TypeVar("Names", bound=tuple[Any, ...] | None)
Weights = Literal["trained", "random"]
Pick = Literal["random", "first"]


class StudySpec(Specification):
    """The settings that all studies share. A setting left at None is decided by the preset, the corpus or the model.

    A setting with a description is an option of the command line, too.
    """

    model: Annotated[str, Role.CONTENT] = Field("mini", description="mini (embedded), a local folder, or a hub id")
    dtype: Literal["float32", "float16", "bfloat16"] = Field("float32", description="float32, float16 or bfloat16 weights")
    corpus: Annotated[tuple[str, ...], Role.CONTENT] = Field(("sampler",), description="file, or 'sampler' (embedded); may be repeated")
    format: str | None = Field(None, description="format of the corpus, if the file name does not tell")
    on_error: Literal["raise", "skip"] = Field("raise", description="raise, or skip bad sentences and count them")
    max_length: int = Field(128, ge=8, description="tokens a text may have")
    limit: int | None = Field(None, ge=1, description="texts, drawn from all documents; 0: all of them")
    replicates: int = Field(1000, ge=0, le=100_000, description="bootstrap replicates for intervals")
    seed: int = Field(0, description="seed of what is drawn")

    @field_validator("*", mode="before")
    @classmethod
    def _several(cls, value: object, info: Any) -> object:
        """A single value where several are expected, and 0 for no limit."""
        if info.field_name.startswith("limit") and value == 0 and not isinstance(value, bool):
            return None
        if isinstance(value, str | int | float) and holds_several(cls.model_fields[info.field_name].annotation):
            return (value,)
        return value

    @field_validator("corpus")
    @classmethod
    def _named(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return some_and_once(value)

    @property
    def random(self) -> int | None:
        """The seed to redraw weights with, if they are to be redrawn."""
        return self.seed if getattr(self, "weights", "trained") == "random" else None


def holds_several(annotation: Any) -> bool:
    """Whether a field holds a tuple of any length."""
    return any(str(part).startswith("tuple[") for part in (annotation, *getattr(annotation, "__args__", ())))


def some_and_once(value: Names) -> Names:
    """The names of a setting, of which there must be at least one and none twice."""
    if value is not None and (not value or len(set(value)) < len(value)):
        raise ValueError("name at least one, and none twice")
    return value
