"""Measure text that the model generates: each text of a shard is a prompt, which is continued and then measured.

Generated text depends only on the prompt (models/generation.py), so shards, workers and resuming do not change it. The
tokens are stored next to the states of measures, and are merged and saved with them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, get_args

import numpy as np

from headscope.core.state import State, States
from headscope.encoding.continuation import continued, prompt_of
from headscope.encoding.texts import Encoded
from headscope.encoding.tokenizer import Tokenizer
from headscope.engine.compute import ShardRunner
from headscope.models.generation import Decoding, Stop, generate
from headscope.results.columns import StateColumns
from headscope.results.counts import Sizes

NAME = "generated"  # the key among the states of a shard, and the name of the table
_STOPS: tuple[Stop, ...] = get_args(Stop)


@dataclass(frozen=True)
class GeneratedText:
    """One prompt and the text that the model generated after it."""

    id: str
    slice: str
    prompt: tuple[int, ...]
    tokens: tuple[int, ...]
    stopped: Stop
    sizes: Sizes  # of both together

    @property
    def document(self) -> str:
        """The id of the document that the prompt is from."""
        return self.id.rpartition("/")[0]


class GeneratingRunner(ShardRunner):
    """A shard runner that continues the texts of shards, and measures prompts and continuations together."""

    def __init__(self, *args: Any, decoding: Decoding, **options: Any) -> None:
        super().__init__(*args, **options)
        self._decoding = decoding

    def __call__(self, texts: Sequence[Encoded], names: frozenset[str] | None = None) -> States:
        """The states of one shard, with its generated texts under `generated`."""
        written, stops = self._written(texts)
        return {**super().__call__(written, names), NAME: _state(written, stops)}

    def measured(self, texts: Sequence[Encoded]) -> Sequence[Encoded]:
        """The texts with their continuations."""
        return self._written(texts)[0]

    def _written(self, texts: Sequence[Encoded]) -> tuple[list[Encoded], list[Stop]]:
        if not texts:
            return [], []
        prompts = [prompt_of(text) for text in texts]
        with self._explained(texts):
            made = generate(self.model, [text.ids.tolist() for text in prompts], self._decoding, self.batch_tokens)
        tokenizer = self.model.tokenizer
        both = [continued(prompt, new.ids, tokenizer) for prompt, new in zip(prompts, made, strict=True)]
        return both, [new.stopped for new in made]


def _state(texts: Sequence[Encoded], stops: Sequence[Stop]) -> State:
    kept = StateColumns()
    if texts:
        kept.add_words("texts", [text.id for text in texts])
        kept.add_words("slices", [text.annotation.slice for text in texts])
        kept.add("tokens", np.concatenate([text.ids for text in texts]))
        kept.add("lengths", [len(text) for text in texts])
        kept.add("prompts", [text.generated_from or 0 for text in texts])
        kept.add("stopped", [_STOPS.index(stop) for stop in stops])
        kept.add("sizes", np.array([Sizes.of(text) for text in texts], dtype=np.float64))
    return kept.state


def generated_texts(states: States) -> Iterator[GeneratedText]:
    """The generated texts of the shards of these states, in the order of the texts."""
    kept = StateColumns(states[NAME])
    tokens = kept.numbers("tokens").astype(np.int64).tolist()
    ends = np.cumsum([0, *kept.numbers("lengths")]).astype(np.int64).tolist()
    prompts, stops = (kept.numbers(name).astype(np.int64).tolist() for name in ("prompts", "stopped"))
    sizes = kept.numbers("sizes").astype(np.int64).tolist()
    rows = zip(kept.words("texts"), kept.words("slices"), pairwise(ends), prompts, stops, sizes, strict=True)
    for name, slice, (start, end), prompt, stop, size in rows:
        ids = tuple(tokens[start:end])
        yield GeneratedText(name, slice, ids[:prompt], ids[prompt:], _STOPS[stop], Sizes(*size))


def columns_of(texts: Sequence[GeneratedText], tokenizer: Tokenizer) -> dict[str, list[Any]]:
    """The columns of the table of generated texts: one row per text. `tokens` are the ids of the generated tokens."""
    return {
        "document": [text.document for text in texts],
        "text": [text.id for text in texts],
        "prompt": [tokenizer.decode([token for token in text.prompt if token not in tokenizer.special]) for text in texts],
        "generated": [tokenizer.decode_after(text.prompt[-1], text.tokens) for text in texts],
        "prompt_tokens": [len(text.prompt) for text in texts],
        "generated_tokens": [len(text.tokens) for text in texts],
        "stopped": [text.stopped for text in texts],
        "tokens": [" ".join(map(str, text.tokens)) for text in texts],
    }


def summary_of(texts: Sequence[GeneratedText], decoding: Decoding) -> dict[str, Any]:
    """The summary of generated texts for a manifest."""
    return {
        "asked": decoding.count,
        "how": decoding.described(),
        "texts": len(texts),
        "prompt_tokens": sum(len(text.prompt) for text in texts),
        "tokens": sum(len(text.tokens) for text in texts),
        "stopped": {stop: sum(text.stopped == stop for text in texts) for stop in _STOPS},
    }
