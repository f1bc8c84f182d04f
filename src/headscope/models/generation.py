"""Text that a language model writes: each next token is the most probable one after all tokens before it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from headscope.errors import ModelError
from headscope.models.answers import whole_of

if TYPE_CHECKING:
    from headscope.models.model import Model


@dataclass(frozen=True)
class Generated:
    """The tokens that a model wrote after a prompt, without the one that ends the text."""

    ids: tuple[int, ...]


def require_generator(model: Model) -> Any:
    """The network that predicts next tokens; an error for a model that does not continue texts."""
    if model.objective != "causal" or {site.kind for site in model.sites} != {"decoder"}:
        raise ModelError(f"{model.name} does not continue texts", "Use a decoder, such as mini-decoder")
    return whole_of(model)


def greedy(model: Model, prompts: Sequence[Sequence[int]], count: int) -> list[Generated]:
    """What the model writes after each prompt, given as token ids: up to `count` tokens, each the most probable one.

    Each prompt is read alone, so that no other text changes a token. In a causal model a row of attention does not
    depend on later tokens: the attention of every step can be had from one pass over the prompt and what was written.
    """
    whole = require_generator(model)
    with torch.inference_mode():
        return [Generated(tuple(_continuation(model, whole, list(prompt), count))) for prompt in prompts]


def _continuation(model: Model, whole: Any, prompt: list[int], count: int) -> list[int]:
    ends, written = end_tokens(model), list[int]()
    read, cache = torch.tensor([prompt], device=model.device), None
    while len(written) < count:
        output = whole(input_ids=read, past_key_values=cache, use_cache=True)
        token = int(output.logits[0, -1].argmax())
        if token in ends:
            break
        written.append(token)
        read, cache = torch.tensor([[token]], device=model.device), output.past_key_values
    return written


def end_tokens(model: Model) -> frozenset[int]:
    """The tokens that end a text."""
    whole = whole_of(model)
    places = (whole.config, getattr(whole, "generation_config", None), model.tokenizer.hf)
    named = [getattr(place, "eos_token_id", None) for place in places]
    return frozenset(int(token) for tokens in named if tokens is not None for token in (tokens if isinstance(tokens, list) else [tokens]))
