"""What a checkpoint predicts, according to its configuration, and whether it has the weights for that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from transformers import (
    AutoModel,
    AutoModelForCausalLM,
    AutoModelForMaskedLM,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
)

from headscope.errors import ModelError, NoPredictionsError
from headscope.models.predictions import Objective

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# The classes for PEFT's types of tasks.
BY_TASK: Mapping[str, tuple[Any, Objective | None]] = {
    "CAUSAL_LM": (AutoModelForCausalLM, "causal"),
    "FEATURE_EXTRACTION": (AutoModel, None),
    "SEQ_2_SEQ_LM": (AutoModelForSeq2SeqLM, "causal"),
    "SEQ_CLS": (AutoModelForSequenceClassification, "classes"),
    "TOKEN_CLS": (AutoModelForTokenClassification, "tags"),
}


def objective_of(name: str, config: Any, architecture: str | None = None) -> tuple[Any, Objective]:
    """The class that loads a model with its head, and what it predicts. Both follow from its `architecture`, the name
    of a class; without one, from its configuration.
    """
    said = architecture or _saved_as(config)
    if said.endswith(("ForMaskedLM", "ForPreTraining", "WithLMHeadModel")):
        return AutoModelForMaskedLM, "masked"
    if said.endswith(("ForCausalLM", "LMHeadModel")):
        return AutoModelForCausalLM, "causal"
    if said.endswith(("ForConditionalGeneration", "MTModel")):
        return AutoModelForSeq2SeqLM, "causal"
    if said.endswith("ForSequenceClassification"):
        _require_classes(name, config)
        return AutoModelForSequenceClassification, "classes"
    if said.endswith("ForTokenClassification"):
        return AutoModelForTokenClassification, "tags"
    raise NoPredictionsError(
        f"{name} is {said}, which predicts neither words nor classes: it has no language-modelling head",
        "Use a checkpoint that has one, such as bert-base-uncased or gpt2, or a classifier",
    )


def require_weights(name: str, network: PreTrainedModel, objective: Objective | None, found: Mapping[str, Any]) -> None:
    """Refuse a checkpoint that lacks weights of a model, which would be random. `found` is transformers' loading
    info.
    """
    # Only a classifier uses a pooler, and computed positions, such as Marian's, are not weights.
    fixed = tuple(f"{path}." for path, module in network.named_modules() if "Sinusoidal" in type(module).__name__)
    missing = [
        key for key in sorted(found["missing_keys"]) if ("pooler" not in key or objective == "classes") and not key.startswith(fixed)
    ]
    body = f"{network.base_model_prefix}."
    if objective is not None and missing and not any(key.startswith(body) for key in missing):
        what = objective if objective in ("classes", "tags") else "words"
        said = _saved_as(network.config)
        raise NoPredictionsError(
            f"{name} was saved as {said}, without the {len(missing)} weights that predict {what} (first: {missing[0]})",
            "ELECTRA's discriminator predicts no words: use its generator, such as google/electra-small-generator"
            if said.startswith("Electra")
            else "Use a checkpoint that has them",
        )
    if missing or found["mismatched_keys"]:
        wrong = missing or sorted(str(key) for key in found["mismatched_keys"])
        raise ModelError(
            f"{name} lacks {len(wrong)} weights or has them in another shape (first: {wrong[0]}), so they would be random",
            "Check that the folder contains the whole checkpoint and that config.json belongs to it",
        )


def _require_classes(name: str, config: Any) -> None:
    """Refuse a classifier whose loss is not the cross-entropy of one class per text."""
    wrong = {
        "predicts numbers": config.num_labels < 2 or config.problem_type == "regression",
        "gives a text several labels at once": config.problem_type == "multi_label_classification",
        "has a decoder beside its encoder": config.is_encoder_decoder,
    }
    for problem in (problem for problem, found in wrong.items() if found):
        raise ModelError(f"{name} is {_saved_as(config)}, but {problem}", "Use a classifier of two or more classes without a decoder")
    if getattr(config, "pad_token_id", None) is None:
        raise ModelError(f"the config.json of {name} does not name a padding token", "Add pad_token_id to it")


def _saved_as(config: Any) -> str:
    return str((getattr(config, "architectures", None) or ["a model without a name"])[0])
