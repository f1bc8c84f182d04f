"""The settings of a study of flow."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, get_args

from pydantic import Field, field_validator, model_validator

from headscope.errors import RunError
from headscope.models.jacobian.choices import KINDS, Kind, Method, Mode, Norm
from headscope.studies.spec import Pick, StudySpec, Weights, some_and_once

Part = Literal["coreference", "classes", "trees", "agreement"]
Draw = Literal["balanced", "matched", "alternating"]
Grouping = Literal["mean", "sum"]
Deletion = Literal["comparison", "listwise"]
Labels = Literal["whole", "main"]
Punct = Literal["include", "exclude"]
Resample = Literal["document", "sentence"]
GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)
DELETIONS: tuple[Deletion, ...] = get_args(Deletion)
LABELS: tuple[Labels, ...] = get_args(Labels)
RESAMPLES: tuple[Resample, ...] = get_args(Resample)
PARTS: tuple[Part, ...] = get_args(Part)
NEEDS: Mapping[Part, str] = {"coreference": "mentions", "classes": "parts of speech", "trees": "trees"}

FEW, MANY = 16, 500
LONGEST = 64  # most tokens of a text whose maximum flow is computed
# `reference` follows the released code where it differs from the recommended settings.
_PRESETS: Mapping[str, Mapping[str, str]] = {
    "recommended": {
        "norm": "frobenius", "draw": "balanced", "deletion": "comparison", "labels": "main", "resample": "document", "pick": "random",
        "mode": "eval",
    },
    "reference": {
        "norm": "sum", "draw": "alternating", "deletion": "listwise", "labels": "whole", "resample": "sentence", "pick": "first",
        "mode": "train",
    },
}  # fmt: skip


def _usual(settings: dict[str, Any]) -> int:
    """The default number of sentences and pairs: as in the paper, but few with G* and the recommended settings, which
    take minutes.
    """
    return FEW if "G*" in settings.get("measures", ()) and settings.get("preset") == "recommended" else MANY


class FlowSpec(StudySpec):
    """The settings of a study of flow; `resolved` fills in fields that are None from the preset and the corpus."""

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = _PRESETS

    weights: Weights = Field("trained", description="trained, or random: a control, with all weights but the embeddings redrawn")
    preset: Literal["recommended", "reference"] = Field("recommended", description="recommended, or reference (what the released code did)")
    parts: tuple[Part, ...] | None = Field(
        None, description="coreference, classes, trees, agreement [default: all that the annotation of the corpus allows]"
    )
    measures: tuple[Kind, ...] = Field(
        KINDS, description="A (attention), G (gradient over a layer), G* (gradient with respect to the input); also rollout, maxflow, norms"
    )
    norm: Norm | None = Field(None, description="norm of a Jacobian: frobenius, sum, mean, spectral [default: frobenius]")
    method: Method = Field("auto", description="auto, exact or sketch")
    probes: int = Field(32, ge=2, description="random vectors of a sketch")
    mode: Mode | None = Field(None, description="eval, or train: with dropout, as the paper's numbers were made [default: eval]")
    max_length: int = Field(128, ge=8, description="longest text, in tokens; longer ones are skipped")
    limit: int | None = Field(
        default_factory=_usual,
        ge=1,
        description="sentences; 0: all of them [default: 500; 16 if G* is measured, which takes long]",
    )
    pick: Pick | None = Field(None, description="sentences: random ones, or the first [default: random]")
    items: int = Field(default_factory=_usual, ge=2, description="pairs of a noun and a pronoun [default: 500; 16 if G* is measured]")
    draw: Draw | None = Field(None, description="pairs: balanced, matched in distance, or alternating (as released) [default: balanced]")
    context: int = Field(64, ge=8, description="tokens of context of a pair, ending with the pronoun's sentence")
    grouping: Grouping = Field("mean", description="from word pieces to words: mean or sum")
    punct: Punct = Field("include", description="punctuation in trees: include or exclude")
    deletion: Deletion | None = None
    labels: Labels | None = None
    transpose: bool = Field(False, description="spanning trees: influence from j to i is evidence for i as the head")
    resample: Resample | None = None

    @model_validator(mode="before")
    @classmethod
    def _sizes(cls, settings: Any) -> Any:
        """The settings with the default numbers of texts and pairs, unless they are set."""
        return {**dict.fromkeys(("limit", "items"), _usual({"measures": KINDS, "preset": "recommended", **settings})), **settings}

    @field_validator("parts", "measures")
    @classmethod
    def _once(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return some_and_once(value)

    def resolved(self, layers: set[str]) -> FlowSpec:
        """The complete settings; an error if a part lacks its annotation, given the corpus's `layers`."""
        possible = [part for part in PARTS if NEEDS.get(part) in {None, *layers} and not (part == "agreement" and len(self.measures) < 2)]
        for part in self.parts or ():
            if part not in possible and part == "agreement":
                raise RunError("agreement compares measures, and only one was requested", "Name two or more with --measures, as in A,G")
            if part not in possible:
                remedy = f"Use a corpus with {NEEDS[part]}, or leave {part} out of --parts"
                raise RunError(f"{part} needs {NEEDS[part]}, and {', '.join(self.corpus)} has none", remedy)
        length = min(self.max_length, LONGEST) if "maxflow" in self.measures else self.max_length
        decided = {"parts": self.parts or tuple(possible), "max_length": length, "context": min(self.context, length)}
        return self.model_copy(update={**self.by_preset(), **decided})
