"""The settings of a study of ablation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import Field, field_validator, model_validator

from headscope.corpora.readers.fields import PAIRS
from headscope.corpora.tags import Tagging
from headscope.encoding.choices import Unit
from headscope.errors import RunError
from headscope.models import MODEL_HELP
from headscope.models.importance_choices import BATCH_TEXTS, AbsOver, Normalise
from headscope.results.specification import Role
from headscope.stats.choices import Test
from headscope.studies.spec import StudySpec, some_and_once

Part = Literal["heads", "all_but_one", "layers", "importance", "pruning"]
PARTS: tuple[Part, ...] = get_args(Part)
# The scores of each kind of model, the default first.
SCORES: Mapping[str, tuple[str, ...]] = {
    "classes": ("accuracy", "f1", "f1_macro", "matthews", "loss"),
    "masked": ("loss", "masked_accuracy", "perplexity"),
    "causal": ("loss", "perplexity", "accuracy"),
    "tags": ("accuracy", "loss"),
    "keyphrases": ("keyphrase_tokens", "keyphrase_spans", "accuracy", "loss"),
    "translation": ("bleu", "bleu_tokenized", "chrf"),
}
OWN = "own"  # a score that is a user's function


class AblationSpec(StudySpec):
    """The settings of a study of ablation. A field that is None depends on the model; `resolved` fills it in."""

    model: Annotated[str, Role.CONTENT] = Field("mini", description=f"{MODEL_HELP}; with its prediction head")
    parts: tuple[Part, ...] = Field(
        PARTS, description="heads (one by one), all_but_one (of a layer), layers, importance, pruning (cumulatively)"
    )
    score: str | None = Field(
        None,
        description="accuracy, f1, f1_macro, matthews, loss, perplexity, masked_accuracy, bleu, chrf, keyphrase_tokens, keyphrase_spans "
        "[default: by what the model does]",
    )
    how: Literal["zero", "mean"] = Field("zero", description="output of a head that is off: zero, or its mean over the texts")
    tags: Tagging | None = Field(None, description="tags that the model was trained on: upos, xpos, keyphrases [default: by its labels]")
    unit: Unit | None = Field(None, description="unit of text: sentence, paragraph, document, pair [default: as the model needs it]")
    limit: int | None = Field(120, ge=1, description="texts, drawn from all documents; 0: all of them")
    mask_share: float = Field(0.15, gt=0, le=1, description="share of the word pieces that a masked model predicts")
    test: Test | None = Field(
        None,
        description="mcnemar, bootstrap, paired_t, unpaired_t "
        "[default: mcnemar for accuracy if each document has one example, else bootstrap]",
    )
    abs_over: AbsOver = Field(
        "example",
        description="importance: gradient norms per example (the paper), per token (its code), or per batch (Hugging Face)",
    )
    batch_texts: int = Field(BATCH_TEXTS, ge=1, description="importance per batch: texts of a batch, in the order of the corpus")
    normalise: Normalise = Field("layer_l2", description="importance: layer_l2, global_minmax or none")
    steps: int = Field(10, ge=1, description="pruning: steps from all heads to none")
    orders: int = Field(3, ge=0, description="pruning: random orders, as a control")
    run: Annotated[str | None, Role.CONTENT] = Field(
        None, title="by_run", description="pruning: run of the same model, for orders by its quantities"
    )
    by: tuple[str, ...] = Field((), description="pruning: quantities of the run, lowest first; with - highest first: entropy,-to_sep")
    reestimate: bool = Field(False, description="pruning: also estimate importance again after each step")
    most_first: bool = Field(False, description="pruning: also remove the most important heads first")
    tolerance: float = Field(0.01, ge=0, description="pruning: the share of the score that may be lost")
    beams: int = Field(5, ge=1, description="translations: beam size")
    replicates: int = Field(10_000, ge=0, le=100_000, description="bootstrap replicates for intervals")
    batch_tokens: Annotated[int | None, Role.NEUTRAL] = Field(None, ge=1, description="tokens per batch")

    @field_validator("parts")
    @classmethod
    def _once(cls, value: tuple[Part, ...]) -> tuple[Part, ...]:
        return some_and_once(value)

    @model_validator(mode="after")
    def _run_and_by(self) -> AblationSpec:
        if bool(self.by) != (self.run is not None):
            raise ValueError("run and by go together: a run, and the quantities to order heads by")
        return self

    def resolved(self, objective: str, translates: bool, pairs: bool, tags: Tagging | None = None) -> AblationSpec:
        """The complete settings for a model with this objective; an error if it cannot be scored in this way."""
        known = (*SCORES["keyphrases" if tags == "keyphrases" else objective], *(SCORES["translation"] if translates else ()))
        score = self.score or (SCORES["translation"][0] if translates and pairs else known[0])
        if score not in (*known, OWN):
            raise RunError(f"{self.model} cannot be scored by {score}", f"Use one of {', '.join(known)}")
        if score in SCORES["translation"] and not pairs:
            problem = f"{score} compares translations, and {', '.join(self.corpus)} has no pairs of texts"
            raise RunError(problem, f"Use JSON lines or a table with the keys {' or '.join(' and '.join(pair) for pair in PAIRS)}")
        unit: Unit = self.unit or ("pair" if pairs else "document" if objective == "classes" or tags == "keyphrases" else "sentence")
        return self.model_copy(update={"score": score, "unit": unit, "tags": tags})
