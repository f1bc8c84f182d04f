"""The settings of studies that keep hidden states on disk."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from headscope.results.specification import Role
from headscope.studies.spec import StudySpec

DType = Literal["float16", "float32"]
STATES_FOLDER = "states"  # of the results, while a study runs


class HiddenStatesSpec(StudySpec):
    """The settings of studies that keep hidden states on disk: in a folder `cache` for other studies, or else only
    while they run.
    """

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
        """Where hidden states are kept: in the cache, or in the folder `out` of the results; None if there is
        neither.
        """
        if self.cache is not None:
            return Path(self.cache)
        return None if out is None else out / STATES_FOLDER
