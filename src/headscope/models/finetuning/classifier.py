"""A pretrained model with a new head that classifies texts or tags words, and its predictions."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from transformers import AutoModelForSequenceClassification, AutoModelForTokenClassification

from headscope.errors import ModelError
from headscope.models.finetuning.examples import UNLABELLED, LabelledExample
from headscope.models.model import Model

if TYPE_CHECKING:
    from jaxtyping import Float, Int64


@dataclass(frozen=True)
class Classifier:
    """A network with a head, and the model that its body, tokenizer and inputs come from. With `tags`, each word has a
    class instead of each text.
    """

    network: Any
    model: Model
    tags: bool

    @classmethod
    def of(cls, model: Model, names: Sequence[str], tags: bool) -> Classifier:
        """The model's body with a new head for these classes, drawn by torch's seed."""
        if model.encoder_decoder:
            raise ModelError(
                f"{model.name} has a decoder beside its encoder", "Fine-tune an encoder such as bert-base-uncased, or a decoder"
            )
        config = deepcopy(model.network.config)
        config.id2label, config.label2id = dict(enumerate(names)), {name: number for number, name in enumerate(names)}
        config.problem_type = None if tags else "single_label_classification"
        if getattr(config, "pad_token_id", None) is None:
            config.pad_token_id = _padding(model)
        kind = AutoModelForTokenClassification if tags else AutoModelForSequenceClassification
        try:
            network = kind.from_config(config, dtype=torch.float32)
        except ValueError as error:
            raise ModelError(f"transformers has no such classifier for a {config.model_type} model", "Use a model such as BERT") from error
        body = network.base_model.load_state_dict(model.network.state_dict(), strict=False)
        if wrong := [*body.missing_keys, *(key for key in body.unexpected_keys if "pooler" not in key)]:
            raise ModelError(f"the classifier of {model.name} has another body ({wrong[0]})", "Use another model")
        return cls(network, model, tags)

    def logits(self, batch: Sequence[LabelledExample]) -> Float[torch.Tensor, "text *token label"]:
        """The network's logits for a batch."""
        inputs = self.model.inputs([example.text for example in batch])
        # A classifier on a decoder finds the last token of a text by the padding token of its configuration.
        inputs["input_ids"].masked_fill_(inputs["attention_mask"] == 0, self.network.config.pad_token_id)
        device = next(self.network.parameters()).device
        given: torch.Tensor = self.network(**{name: tensor.to(device) for name, tensor in inputs.items()}, **self._uncached).logits
        return given.float()

    def losses(self, batch: Sequence[LabelledExample]) -> tuple[Float[torch.Tensor, "n"], Int64[np.ndarray, "n"], Int64[np.ndarray, "n"]]:
        """For each label of a batch the cross-entropy, the predicted class and the true class."""
        logits = self.logits(batch)
        truth = np.full(logits.shape[:-1], UNLABELLED, dtype=np.int64)
        for row, example in zip(truth if self.tags else truth[:, None], batch, strict=True):
            row[: len(example.labels)] = example.labels
        labels = torch.from_numpy(truth).to(logits.device)
        known = labels != UNLABELLED
        losses = torch.nn.functional.cross_entropy(logits[known], labels[known], reduction="none")
        return losses, logits[known].argmax(-1).cpu().numpy(), truth[truth != UNLABELLED]

    @property
    def _uncached(self) -> dict[str, bool]:
        return {"use_cache": False} if getattr(self.network.config, "use_cache", None) else {}

    def step(self, batch: Sequence[LabelledExample]) -> float:
        """Compute the gradients of the mean loss of a batch, and return the loss."""
        loss = self.losses(batch)[0].mean()
        loss.backward()  # type: ignore[no-untyped-call]
        return float(loss.detach())

    def evaluate(
        self, given: Sequence[LabelledExample], size: int = 64
    ) -> tuple[float, list[Int64[np.ndarray, "n"]], list[Int64[np.ndarray, "n"]]]:
        """The mean loss over labels, and for each text, in order, the predicted and the true classes."""
        self.network.eval()
        found: list[np.ndarray] = [np.zeros(0, dtype=np.int64)] * len(given)
        true, total, count = list(found), 0.0, 0
        order = sorted(range(len(given)), key=lambda place: len(given[place].text))
        with torch.inference_mode():
            for start in range(0, len(order), size):
                places = order[start : start + size]
                losses, guesses, labels = self.losses([given[place] for place in places])
                total, count = total + float(losses.double().sum()), count + len(losses)
                cuts = np.cumsum([(given[place].labels != UNLABELLED).sum() for place in places])[:-1]
                parts = zip(places, np.split(guesses, cuts), np.split(labels, cuts), strict=True)
                for place, guess, label in parts:
                    found[place], true[place] = guess, label
        return total / max(count, 1), found, true


def _padding(model: Model) -> int:
    """The padding token of a model that defines none: a token that never occurs inside a text."""
    hf = model.tokenizer.hf
    return int(next(token for token in (hf.pad_token_id, hf.eos_token_id, hf.bos_token_id, 0) if token is not None))


def optimiser(network: Any, rate: float, decay: float, steps: int, warmup: float) -> tuple[Any, Any]:
    """AdamW, without weight decay of biases and scales of normalisation layers, and the schedule of its learning rate:
    linearly up from 0, then linearly down to 0.
    """
    matrices = [tensor for tensor in network.parameters() if tensor.requires_grad and tensor.ndim > 1]
    vectors = [tensor for tensor in network.parameters() if tensor.requires_grad and tensor.ndim < 2]
    adamw = torch.optim.AdamW([{"params": matrices, "weight_decay": decay}, {"params": vectors, "weight_decay": 0.0}], lr=rate, fused=True)
    return adamw, torch.optim.lr_scheduler.LambdaLR(adamw, partial(share_of_rate, steps=steps, warm=round(warmup * steps)))


def share_of_rate(step: int, steps: int, warm: int) -> float:
    """The share of the full learning rate for the step after `step` others."""
    return (step + 1) / (warm + 1) if step < warm else (steps - step) / max(1, steps - warm)
