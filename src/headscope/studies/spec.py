"""The settings that all studies share, and those of studies that keep hidden states on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, field_validator, model_validator

from headscope.models import MODEL_HELP
from headscope.results.specification import Role, Specification

Names = TypeVar("Names", bound=tuple[Any, ...] | None)
Weights = Literal["trained", "random"]
Pick = Literal["random", "first"]
DType = Literal["float16", "float32"]
STATES_FOLDER = "states"  # of the results, while a study runs
# Settings of older versions: their old names, their current names, and the divisor of their values.
RENAMED = {"dev_limit": ("limit_dev", None), "cache_bytes": ("cache_limit", 2**30)}


class StudySpec(Specification):
    """The settings that all studies share. A setting that is None depends on the preset, the corpus or the model.

    A setting with a description is also an option of the command line.
    """

    model: Annotated[str, Role.CONTENT] = Field("mini", description=MODEL_HELP)
    dtype: Literal["float32", "float16", "bfloat16"] = Field("float32", description="float32, float16 or bfloat16 weights")
    corpus: Annotated[tuple[str, ...], Role.CONTENT] = Field(
        ("sampler",), description="file, folder, - (standard input) or 'sampler'; may be repeated"
    )
    format: str | None = Field(None, description="format of the corpus, if the file name does not show it")
    on_error: Literal["raise", "skip"] = Field("raise", description="what to do with bad sentences: raise an error, or skip and count them")
    max_length: int = Field(128, ge=8, description="longest text, in tokens")
    limit: int | None = Field(None, ge=1, description="texts, drawn from all documents; 0: all of them")
    replicates: int = Field(1000, ge=0, le=100_000, description="bootstrap replicates for intervals")
    seed: int = Field(0, description="random seed")

    @model_validator(mode="before")
    @classmethod
    def _renamed(cls, settings: Any) -> Any:
        """The settings with old names replaced by current ones."""
        if not isinstance(settings, dict):
            return settings
        renamed = dict(settings)
        for old, (name, unit) in RENAMED.items():
            if old in renamed and name in cls.model_fields and name not in renamed:
                value = renamed.pop(old)
                renamed[name] = value if unit is None or value is None else value / unit
        return renamed

    @field_validator("*", mode="before")
    @classmethod
    def _several(cls, value: object, info: Any) -> object:
        """A single value as a tuple if several are expected, and 0 as no limit."""
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
        """The seed to redraw weights with; None if they are not redrawn."""
        return self.seed if getattr(self, "weights", "trained") == "random" else None


def holds_several(annotation: Any) -> bool:
    """Whether a field holds a tuple of any length."""
    return any(str(part).startswith("tuple[") for part in (annotation, *getattr(annotation, "__args__", ())))


def some_and_once(value: Names) -> Names:
    """The names of a setting; an error if there is none, or if one is repeated."""
    if value is not None and (not value or len(set(value)) < len(value)):
        raise ValueError("name at least one, and none twice")
    return value


class HiddenStatesSpec(StudySpec):
    """The settings of studies that keep hidden states: in the folder `cache`, or without it only while they run."""

    cache: Annotated[str | None, Role.NEUTRAL] = Field(
        None, description="folder to keep hidden states in for other studies [default: kept only while the study runs]"
    )
    cache_limit: Annotated[float, Role.NEUTRAL] = Field(8.0, gt=0, description="GiB that hidden states may take")

    @field_validator("cache", mode="before")
    @classmethod
    def _name(cls, value: object) -> object:
        return str(value) if isinstance(value, Path) else value

    @property
    def cache_bytes(self) -> int:
        """Bytes that hidden states may take."""
        return int(self.cache_limit * 2**30)

    def cache_folder(self, out: Path | None) -> Path | None:
        """The folder of hidden states: the cache, or one in the results folder `out`; None without either."""
        if self.cache is not None:
            return Path(self.cache)
        return None if out is None else out / STATES_FOLDER
