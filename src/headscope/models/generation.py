"""Text generation with a language model: each next token from all tokens before it.

The tokens depend on the model and the prompt, not on the other texts in a batch. Prompts of equal length go through the
model together, so that nothing is padded. The logits of a batch and of a single text still differ in their last bits,
which could change the choice if the logits of the two best tokens differ by less than `TIE`. In such a step, a full
pass over that text alone decides. In half precision, where rounding is coarse, each text is generated separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from headscope.core.hashing import hash64
from headscope.encoding.batches import grouped
from headscope.errors import ModelError, RunError
from headscope.models.answers import whole_of

if TYPE_CHECKING:
    from jaxtyping import Float

    from headscope.models.model import Model

Stop = Literal["length", "end", "context"]
# The reason why a model stopped, to follow "because".
STOPS: dict[Stop, str] = {
    "length": "it reached the number of tokens",
    "end": "it ended the text",
    "context": "its longest context was reached",
}
TIE = 1e-3  # difference of the two highest logits below which a pass over the text alone decides a step


@dataclass(frozen=True)
class Decoding:
    """How many tokens are generated, and how each is chosen: the most probable one, or, with a temperature above 0, one
    drawn from the probabilities at that temperature. A draw depends on the seed, the prompt and the step alone.
    """

    count: int
    temperature: float = 0.0
    seed: int = 0

    def __post_init__(self) -> None:
        if self.count < 1:
            raise RunError(f"{self.count} tokens cannot be generated", "Request at least one token")
        if not 0 <= self.temperature < float("inf"):
            raise RunError(f"a temperature of {self.temperature} cannot be used", "Use 0 for the most probable token, or a number above 0")

    @property
    def signature(self) -> str:
        """The part of a signature that describes the decoding: `generate:40`, or
        `generate:40|temperature:0.7|seed:1`.
        """
        drawn = f"|temperature:{self.temperature:g}|seed:{self.seed}" if self.temperature else ""
        return f"generate:{self.count}{drawn}"

    def described(self) -> str:
        """The choice of tokens, in words."""
        if not self.temperature:
            return "greedily: each is the most probable one"
        return f"by sampling at temperature {self.temperature:g} with seed {self.seed}"


@dataclass(frozen=True)
class Generated:
    """The tokens that a model wrote after a prompt, without the one that ends the text, and why there are no more."""

    ids: tuple[int, ...]
    stopped: Stop


def generates(model: Model) -> bool:
    """Whether the loaded model can generate text."""
    return model.whole is not None and model.objective == "causal" and {site.kind for site in model.sites} == {"decoder"}


def require_generator(model: Model) -> Any:
    """The network that predicts next tokens; an error for a model that cannot continue texts."""
    if model.encoder_decoder:
        raise ModelError(
            f"{model.name} is an encoder-decoder, and only decoders continue a text", "Give both texts to view: the source and the target"
        )
    whole = whole_of(model)
    if not generates(model):
        does = {"masked": "guesses masked words", "classes": "finds the class of a text", "tags": "tags words"}
        what = does.get(str(model.objective), "sees words on both sides")
        raise ModelError(f"{model.name} {what}: it cannot continue a text", "Use a decoder, such as mini-decoder")
    return whole


def greedy(model: Model, prompts: Sequence[Sequence[int]], count: int) -> list[Generated]:
    """The continuation of each prompt, which is given as token ids: up to `count` tokens, each the most probable
    one.
    """
    return generate(model, prompts, Decoding(count))


def generate(model: Model, prompts: Sequence[Sequence[int]], decoding: Decoding, batch_tokens: int = 2048) -> list[Generated]:
    """The continuation of each prompt. A batch has at most `batch_tokens` tokens, or one text."""
    require_generator(model)
    single = model.dtype != "float32"

    def full(batch: list[int], number: int) -> bool:
        size = len(prompts[number])
        return single or size != len(prompts[batch[0]]) or (len(batch) + 1) * (size + decoding.count) > batch_tokens

    order = sorted(range(len(prompts)), key=lambda number: len(prompts[number]))
    made: dict[int, Generated] = {}
    with torch.inference_mode():
        for numbers in grouped(order, full):
            texts = [[int(token) for token in prompts[number]] for number in numbers]
            made |= zip(numbers, _continuations(model, texts, decoding), strict=True)
    return [made[number] for number in range(len(prompts))]


def _continuations(model: Model, prompts: list[list[int]], decoding: Decoding) -> list[Generated]:
    """The continuations of prompts of equal length."""
    if not prompts[0]:
        raise ModelError(f"{model.name} puts no token before a text, so that it cannot continue an empty one", "Give at least one word")
    model.require_embeddings(max(map(max, prompts)))
    size, limit, ends = len(prompts[0]), model.max_length, end_tokens(model)
    room = decoding.count if limit is None else max(0, min(decoding.count, limit - size))
    texts = [list(prompt) for prompt in prompts]
    ended = [False] * len(texts)
    cache: Any = None
    read = torch.tensor(prompts, device=model.device)
    for step in range(room):
        logits, cache = _next_logits(model, read, cache)
        chosen = _choose(model, logits, texts, prompts, step, decoding)
        for number, token in enumerate(chosen):
            ended[number] = ended[number] or token in ends
            if not ended[number]:
                texts[number].append(token)
        if all(ended):
            break
        read = torch.tensor(chosen, device=model.device)[:, None]
    last: Stop = "length" if room == decoding.count else "context"
    return [Generated(tuple(text[size:]), "end" if over else last) for text, over in zip(texts, ended, strict=True)]


def _choose(
    model: Model, logits: Float[torch.Tensor, "text token"], texts: list[list[int]], prompts: list[list[int]], step: int, decoding: Decoding
) -> list[int]:
    """The next token of each text."""
    noise = [_noise(prompt, step, logits.shape[1], decoding) for prompt in prompts]
    scores = logits if noise[0] is None else logits + torch.stack([one for one in noise if one is not None]).to(logits.device)
    best = torch.topk(scores, 2)
    if not bool(torch.isfinite(best.values).all()):
        raise ModelError(f"{model.name} gives logits that are NaN or infinite", "Use --dtype float32, or check the model's weights")
    chosen = best.indices[:, 0].tolist()
    if model.dtype != "float32":
        return chosen
    for number in torch.nonzero(best.values[:, 0] - best.values[:, 1] < TIE).flatten().tolist():
        if len(texts[number]) == len(prompts[number]) + step:  # it has not ended
            alone, _ = _next_logits(model, torch.tensor([texts[number]], device=model.device), None, cached=False)
            own = noise[number]
            chosen[number] = int((alone[0] if own is None else alone[0] + own.to(alone.device)).argmax())
    return chosen


def _next_logits(model: Model, ids: torch.Tensor, cache: Any, cached: bool = True) -> tuple[Float[torch.Tensor, "text token"], Any]:
    """The logits of the next tokens, only for tokens of the tokenizer, and the cache of keys and values."""
    whole: Any = whole_of(model)
    last = {"logits_to_keep": 1} if "logits_to_keep" in signature(whole.forward).parameters else {}
    output = whole(input_ids=ids, past_key_values=cache, use_cache=cached, **last)
    return output.logits[:, -1, : model.tokenizer.size].float(), output.past_key_values if cached else None


def _noise(prompt: list[int], step: int, size: int, decoding: Decoding) -> Float[torch.Tensor, "token"] | None:
    """Gumbel noise times the temperature. The token with the highest sum of logit and noise is a draw from the softmax.
    None without a temperature.
    """
    if not decoding.temperature:
        return None
    key = hash64("generate", decoding.seed, np.array(prompt, dtype=np.int64).tobytes(), step)
    drawn = np.random.Generator(np.random.Philox(key)).gumbel(size=size)
    return torch.from_numpy((decoding.temperature * drawn).astype(np.float32))


def end_tokens(model: Model) -> frozenset[int]:
    """The tokens that end a text."""
    whole = whole_of(model)
    places = whole.config, getattr(whole, "generation_config", None), model.tokenizer.hf
    named = [getattr(place, "eos_token_id", None) for place in places]
    return frozenset(token for tokens in named for token in (tokens if isinstance(tokens, list) else [tokens]) if token is not None)
