"""Sentences that an encoder-decoder makes of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from headscope.encoding.texts import Encoded
from headscope.errors import ModelError
from headscope.models.answers import whole_of
from headscope.models.load import quietly

if TYPE_CHECKING:
    from headscope.models.model import Model

LONGER = 1.5  # how much longer than its source a sentence may be, with ten tokens more


def generated(model: Model, texts: Sequence[Encoded], beams: int = 5) -> list[str]:
    """What the model makes of each source, by beam search, without special tokens."""
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
