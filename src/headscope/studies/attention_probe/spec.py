"""The settings of a study of attention probes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, get_args

from pydantic import Field, field_validator

from headscope.results.specification import Role
from headscope.studies.spec import StudySpec, some_and_once

if TYPE_CHECKING:
    from headscope.studies.attention_probe.training import AttentionRecipe

Name = Literal["attention", "attention-words", "words-distances", "random-attention", "random-attention-words", "right-branching"]
Words = Literal["glove", "learned", "model"]
Unknown = Literal["zeros", "first"]
Root = Literal["shared", "separate"]
Alignment = Literal["fixed", "reference"]
Optimiser = Literal["adam", "sgd"]
Decay = Literal["none", "linear"]
Order = Literal["shuffled", "file"]
NAMES: tuple[Name, ...] = get_args(Name)
EPOCHS, MOST_EPOCHS, STEPS = 4, 20, 400  # recommended: epochs; if sentences are few, more epochs up to this many, to reach this many steps
# `reference` follows the released code where it differs from the paper.
_PRESETS: Mapping[str, Mapping[str, Any]] = {
    "recommended": {
        "alignment": "fixed", "unknown": "zeros", "word_rows": "mean", "standardise": False, "decay": "linear", "batch": 32,
        "order": "shuffled",
    },
    "reference": {
        "alignment": "reference", "unknown": "first", "word_rows": "first", "standardise": False, "decay": "none", "epochs": 1, "batch": 1,
        "order": "file", "rate": 0.002,
    },
}  # fmt: skip


class AttentionProbeSpec(StudySpec):
    """The settings of a study of attention probes.

    A field that is None depends on the preset. Three fields do not: the rate depends on the probe, the words on the
    vectors, and the epochs on the number of sentences.
    """

    presets: ClassVar[Mapping[str, Mapping[str, Any]]] = _PRESETS

    corpus: Annotated[tuple[str, ...], Role.CONTENT] = Field(
        ("sampler",), description="treebank to learn from, or 'sampler' (embedded); may be repeated"
    )
    dev: Annotated[tuple[str, ...] | None, Role.CONTENT] = Field(
        None, description="treebank to test on [default: held-out documents of the other]"
    )
    probes: tuple[Name, ...] = Field(NAMES, description="probes, separated by commas")
    words: Words | None = Field(None, description="vectors of words: glove, model, learned [default: glove if available, else model]")
    vectors: Annotated[str | None, Role.CONTENT] = Field(None, description="GloVe as text, or an npz with words and vectors")
    preset: Literal["recommended", "reference"] = Field("recommended", description="recommended, or reference: as the released code trains")
    unknown: Unknown | None = None
    root: Root = Field("shared", description="the root's score: shared weights, as in the paper, or separate ones")
    alignment: Alignment | None = Field(None, description="word vectors of candidates: fixed, or reference: off by one [default: fixed]")
    bias: bool = Field(True, description="add a weight per head that does not depend on words")
    standardise: bool | None = Field(None, description="scale the attention of all heads to equal variance [default: no]")
    word_rows: Literal["mean", "first", "max"] | None = Field(
        None, description="attention of a word of several tokens: mean, first, max [default: mean]"
    )
    optimiser: Optimiser = Field("adam", description="adam or sgd")
    rate: float | None = Field(None, gt=0, description="learning rate [default: depends on the probe]")
    decay: Decay | None = Field(None, description="decay of the learning rate: linear, none [default: linear]")
    epochs: int | None = Field(None, ge=1, description="passes over the sentences [default: 4, more if they are few]")
    batch: int | None = Field(None, ge=1, description="sentences per step [default: 32]")
    order: Order | None = None
    patience: int = Field(0, ge=0, description="stop after this many epochs without gain on held-out documents; 0: never")
    seeds: int = Field(3, ge=1, description="probes of each kind, from different initial weights")
    decode: Literal["argmax", "tree"] = Field("argmax", description="argmax: each word alone; tree: also the best tree of all")
    held_out: float = Field(0.2, gt=0, lt=1, description="share of documents to test on, without --dev")
    max_length: int = Field(128, ge=8, description="longest sentence, in tokens; longer ones are skipped")
    limit: int | None = Field(None, ge=1, description="sentences to learn from; 0: all of them")
    limit_dev: int | None = Field(None, ge=1, description="sentences to test on; 0: all of them")
    seed: int = Field(0, description="the first seed, also of all random draws")
    batch_tokens: Annotated[int | None, Role.NEUTRAL] = Field(None, ge=1)
    cache_limit: Annotated[float, Role.NEUTRAL] = Field(8.0, ge=0, description="GiB of maps kept between epochs; more are computed again")

    @field_validator("dev", "probes")
    @classmethod
    def _once(cls, value: tuple[str, ...] | None) -> tuple[str, ...] | None:
        return some_and_once(value)

    def epochs_for(self, sentences: int) -> int:
        """The number of epochs for that many sentences."""
        return self.epochs or min(max(EPOCHS, math.ceil(STEPS * (self.batch or 1) / sentences)), MOST_EPOCHS)

    @property
    def recipe(self) -> AttentionRecipe:
        """How the probes are trained; the settings must be resolved."""
        from headscope.studies.attention_probe.training import AttentionRecipe

        return AttentionRecipe(
            self.optimiser,
            self.rate,
            self.decay or "none",
            self.epochs or 1,
            self.batch or 1,
            self.order or "file",
            self.patience,
            self.seed,
        )

    @property
    def every_seed(self) -> range:
        """The seeds of the initial weights."""
        return range(self.seed, self.seed + self.seeds)

    def parts(self) -> dict[str, tuple[Name, ...]]:
        """The requested probes, by what they are trained on: the model, its random control, words alone, or nothing."""
        trained_on: dict[Name, str] = {
            "attention": "trained", "attention-words": "trained", "words-distances": "words", "random-attention": "random",
            "random-attention-words": "random", "right-branching": "rules",
        }  # fmt: skip
        parts: dict[str, tuple[Name, ...]] = {}
        for part in ("rules", "trained", "random", "words"):
            if names := tuple(name for name in NAMES if name in self.probes and trained_on[name] == part):
                parts[part] = names
        return parts
