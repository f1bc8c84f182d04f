"""Predictions of a model with a head: their targets in a batch of texts, the inputs, and the outputs at these positions
only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import torch

from headscope.encoding.texts import Encoded
from headscope.errors import ModelError
from headscope.models.predictions import Predictions, classes, predictions, tags

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from headscope.models.model import Model


LONGER = 1.5  # a generated sentence may be this many times as long as its source, plus ten tokens


def whole_of(model: Model) -> PreTrainedModel:
    """The network with its prediction head; an error with a remedy if it was loaded without one."""
    if model.whole is None or model.objective is None:
        raise ModelError(f"{model.name} was loaded without its prediction head", "Load it with head=True")
    return model.whole


def ask(model: Model, texts: Sequence[Encoded], share: float = 0.15, key: str = "0/0") -> Predictions:
    """The targets that the model predicts in these texts. For a masked model, they are `share` of the pieces, drawn
    from each text and `key` alone.
    """
    whole = whole_of(model)
    if model.objective is None or model.objective == "classes":
        return classes(texts, model.classes)
    if model.objective == "tags":
        return tags(texts, model.classes)
    return predictions(texts, model.objective, model.tokenizer.mask_id, whole.config.vocab_size, share, key)


def asking_inputs(model: Model, texts: Sequence[Encoded], asked: Predictions) -> dict[str, torch.Tensor]:
    """Padded tensors for the network, with the pieces to predict masked."""
    inputs = model.inputs(texts)
    for row, ids in enumerate(asked.ids):
        inputs["input_ids"][row, : len(ids)] = torch.from_numpy(ids).to(model.device)
    if model.objective == "classes":
        # A classifier on a decoder finds the last token of a text by the padding token of its configuration.
        inputs["input_ids"].masked_fill_(inputs["attention_mask"] == 0, whole_of(model).config.pad_token_id)
    return inputs


@contextmanager
def only(model: Model, asked: Predictions, copies: int = 1) -> Iterator[Callable[[torch.Tensor], torch.Tensor]]:
    """A function that selects the predicted positions from the model's outputs. If a language model's head is separate
    from its body, the head reads only these positions. With `copies`, the batch repeats all texts that many times, one
    copy after the other, and so do the outputs.
    """
    if model.objective == "classes":
        yield lambda logits: logits
        return
    rows, places = (torch.from_numpy(numbers).to(model.device) for numbers in (asked.texts, asked.places))
    if copies > 1:
        each = torch.arange(copies, device=model.device)[:, None] * len(asked.ids)
        rows, places = (rows + each).flatten(), places.repeat(copies)
    if model.network is model.whole:
        yield lambda logits: logits[rows, places]
        return

    def cut(module: torch.nn.Module, args: Any, output: Any) -> Any:
        output.last_hidden_state = output.last_hidden_state[rows, places][None]
        return output

    handle = model.network.register_forward_hook(cut)
    try:
        yield lambda logits: logits[0]
    finally:
        handle.remove()


def generated(model: Model, texts: Sequence[Encoded], beams: int = 5) -> list[str]:
    """The text that the model generates for each source, by beam search, without special tokens."""
    from headscope.models.load import quietly

    whole: Any = whole_of(model)
    if not model.encoder_decoder:
        raise ModelError(f"{model.name} reads one text and writes no other", "Use an encoder-decoder, such as a translation model")
    inputs = model.inputs(texts)
    longest = int(LONGER * max(len(text) for text in texts)) + 10
    with torch.inference_mode(), quietly():
        ids = whole.generate(
            input_ids=inputs["input_ids"],
            attention_mask=inputs["attention_mask"],
            num_beams=beams,
            max_new_tokens=longest,
            length_penalty=1.0,
            do_sample=False,
        )
    return [text.strip() for text in model.tokenizer.hf.batch_decode(ids, skip_special_tokens=True)]
