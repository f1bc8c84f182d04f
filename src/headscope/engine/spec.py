"""The specification of a run: exactly the settings that can change its numbers."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from headscope.core.maps import WEIGHTS, MapName
from headscope.core.paths import problem_of
from headscope.encoding.choices import Overlong, SegmentIds, Unit
from headscope.errors import RunError
from headscope.measures import DEFAULT, REGISTRY, Measure, class_of, make, own
from headscope.models.generation import Decoding
from headscope.results.specification import Role, Specification, validated

Preset = Literal["recommended", "paper", "reference"]

# What the presets decide beyond the options of measures. The released code gave every token the segment id 0 and took
# a word's attention from its first piece, where the paper takes the mean.
_PRESETS: Mapping[str, Mapping[str, str]] = {
    "recommended": {"overlong": "drop", "segment_ids": "pair", "word_rows": "mean"},
    "paper": {"overlong": "drop", "segment_ids": "pair", "word_rows": "mean"},
    "reference": {"overlong": "drop", "segment_ids": "zeros", "word_rows": "first"},
}


class RunSpec(Specification):
    """A run's settings. A field that is None is decided by the preset, the corpus or the model; `resolved` fills it
    in.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = _PRESETS

    model: Annotated[str, Role.CONTENT] = "mini"
    dtype: Literal["float32", "float16", "bfloat16"] = "float32"
    weights: Literal["trained", "random"] = "trained"
    map: MapName = "weights"
    corpus: Annotated[tuple[str, ...], Role.CONTENT] = ("sampler",)
    format: str | None = None
    on_error: Literal["raise", "skip"] = "raise"
    allow_unknown: Annotated[bool, Role.NEUTRAL] = False  # measure words even if the model cannot read the texts
    preset: Preset = "recommended"
    measures: dict[str, dict[str, Any]] = Field(default_factory=lambda: {name: dict[str, Any]() for name in DEFAULT})
    own: Annotated[tuple[str, ...], Role.NEUTRAL] = ()  # where the user's measures are found; a hash of their code serves as the version
    unit: Unit | None = None
    max_length: int = Field(128, ge=4)
    overlong: Overlong | None = None
    segment_ids: SegmentIds | None = None
    word_rows: Literal["mean", "first", "max"] | None = None
    layers: tuple[int, ...] | None = None
    limit: int | None = Field(None, ge=1)
    generate: int | None = Field(None, ge=1, le=100_000)  # tokens that the model generates after each text, which are measured with it
    prompt_tokens: int | None = Field(None, ge=4)  # tokens of each text that serve as the prompt [default: the whole text]
    temperature: float = Field(0.0, ge=0, le=100)  # 0: each generated token is the most probable one; above 0: tokens are sampled
    by: str | None = Field(None, min_length=1)  # a column of the documents, whose values divide the corpus into slices
    seed: int = 0
    replicates: int = Field(500, ge=0, le=100_000)
    batch_tokens: Annotated[int | None, Role.NEUTRAL] = Field(None, ge=1)
    shard_tokens: Annotated[int | None, Role.NEUTRAL] = Field(None, ge=1)

    @model_validator(mode="after")
    def _something_to_do(self) -> RunSpec:
        for name in ("corpus", "measures", "layers"):
            if getattr(self, name) in ((), {}):
                raise ValueError(f"{name} is empty")
        if self.generate is None and (self.prompt_tokens is not None or self.temperature):
            unused = "prompt_tokens" if self.prompt_tokens is not None else "temperature"
            raise ValueError(f"{unused} applies only to generated text: set the number of tokens with generate")
        if self.prompt_tokens is not None and self.overlong not in (None, "truncate"):
            raise ValueError("prompt_tokens cuts longer texts: omit overlong")
        return self

    @field_validator("limit", mode="before")
    @classmethod
    def _all(cls, value: object) -> object:
        """0 for no limit."""
        return None if value == 0 and not isinstance(value, bool) else value

    @field_validator("corpus", mode="before")
    @classmethod
    def _one_corpus(cls, value: object) -> object:
        return (value,) if isinstance(value, str) else value

    @field_validator("measures", mode="before")
    @classmethod
    def _names(cls, value: object) -> object:
        return {name: {} for name in value} if isinstance(value, list | tuple) else value

    @property
    def random(self) -> int | None:
        """The seed for redrawing weights; None if they are not redrawn."""
        return self.seed if self.weights == "random" else None

    def _natural(self, measure: str) -> dict[str, Any]:
        """How a measure's texts are cut if neither the measure nor the run sets it. Generated text is the same for all
        measures.
        """
        if self.generate is not None:
            return {}
        unit, overlong = class_of(measure).natural or (None, None)
        ways = {"unit": (self.unit, unit), "overlong": (self.overlong, overlong)}
        return {name: way for name, (said, way) in ways.items() if said is None and way is not None}

    def build_measures(self) -> list[Measure]:
        """The measures with their preset's options and the given ones."""
        own.known(self.own, REGISTRY)
        return [make(name, options, self.preset) for name, options in self.measures.items()]

    @property
    def differentiates(self) -> bool:
        """Whether a measure needs gradients, for which the model must be able to predict."""
        return any(measure.slope() is not None for measure in self.build_measures())

    @property
    def decoding(self) -> Decoding | None:
        """How each text is continued; None if it is measured as it is."""
        return None if self.generate is None else Decoding(self.generate, self.temperature, self.seed)

    @property
    def predicts(self) -> bool:
        """Whether the model must be able to predict: for gradients, or to generate text."""
        return self.differentiates or self.generate is not None

    def resolved(self, pairs: bool, device: str = "cpu") -> Self:
        """The settings with all defaults filled in; `pairs` tells whether the corpus consists of pairs of
        paragraphs.
        """
        measures = {name: {**self._natural(name), **options} for name, options in self.measures.items()}
        unit = self.unit or ("pair" if pairs else "sentence")
        # On a CPU a batch's maps should fit into the cache; a GPU needs large batches to be busy.
        batch = self.batch_tokens or (2048 if device == "cpu" else 32768)
        # Between shards a device waits until their sums are saved: a GPU computes eight batches in a tenth of a second.
        sizes = {"batch_tokens": batch, "shard_tokens": self.shard_tokens or (8 if device == "cpu" else 32) * batch}
        cut = {"overlong": "truncate"} if self.prompt_tokens is not None else {}
        return self.model_copy(update={**self.by_preset(), **cut, **sizes, "measures": measures, "unit": unit})


def make_spec(settings: Mapping[str, Any], where: str = "the settings", own: Sequence[str] = ()) -> RunSpec:
    """The specification of a run from plain values. `own`, where the user's measures are found, is not taken from these
    values: code that a file or a manifest names is imported only if the person who runs it names it, too.
    """
    named = settings.get("own", ())
    if unasked := [one for one in (named if isinstance(named, list | tuple) else [named]) if one not in own]:
        raise RunError(f"{where}: {unasked[0]} is code to run, and was not requested", f"Name it yourself, with --measures {unasked[0]}")
    spec = validated(RunSpec, {**settings, **({"own": tuple(own)} if own else {})}, where)
    for measure in spec.build_measures():  # find unknown measures and options now, before a model is loaded
        if spec.map != WEIGHTS and measure.slope() is not None:
            raise RunError(
                f"{measure.name} takes gradients of attention weights, and maps of {spec.map} are not weights",
                f"Use --map weights, or remove {measure.name} from --measures",
            )
    return spec


def read_spec(path: Path) -> dict[str, Any]:
    """The settings in a TOML file."""
    if found := problem_of(path):
        raise RunError(f"{path}: {found[0]}", f"{found[1]}; it should be a TOML file with settings")
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:  # also for numbers that are too long and brackets that are too deep
        raise RunError(f"{path} is not a TOML file ({error})", "docs/runs.md has an example") from None
    if not isinstance(settings.get("out", ""), str):
        raise RunError(f"{path}: out = {settings['out']!r}: this should be the name of a folder", 'Write it as text, as in out = "RUN"')
    return settings
