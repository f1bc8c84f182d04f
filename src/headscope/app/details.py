"""What a page of texts offers for a model: the heads that served runs have labelled, and example texts."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Literal

from headscope.app.limits import Limits
from headscope.app.models import ServedModels
from headscope.app.served_runs import ServedRuns

if TYPE_CHECKING:
    from headscope.models.model import Model

ModelKind = Literal["encoder", "decoder", "encoder-decoder"]
CONTINUED = 20  # tokens that an example generates
_BLANK: dict[str, Any] = {"second": None, "mode": "one", "generate": None, "head": None}
_MINIMAL = {
    **{"text": "The keys to the cabinet are here.", "second": "The keys to the cabinet is here.", "mode": "compare"},
    "about": "a minimal pair: which heads notice the wrong verb?",
}
EXAMPLES: dict[ModelKind, tuple[dict[str, Any], ...]] = {
    "encoder": (
        {"text": "The keys to the cabinet are on the table.", "about": "a verb far from its subject"},
        {"text": "She opened the old door with a rusty key.", "about": "a verb, its object, and an instrument"},
        {"text": "Anna told Mary that the committee had rejected her proposal.", "about": "a pronoun with two possible antecedents"},
        _MINIMAL,
        {"text": "She called.", "second": "He did not answer.", "mode": "pair", "about": "two sentences in one input"},
    ),
    "decoder": (
        {"text": "The keys to the cabinet are on the table.", "about": "a verb far from its subject"},
        {"text": "Miss Halworth met Captain Drane. Miss Halworth thanked Captain", "about": "repeated names: heads that copy"},
        {"text": "When Mary and John went to the store, John gave a drink to", "about": "which name comes next?"},
        {"text": "The keys to the cabinet are on the", "generate": CONTINUED, "about": "the model writes on, step by step"},
        _MINIMAL,
    ),
    "encoder-decoder": (
        {"text": "The cat sleeps on the table.", "about": "the encoder alone"},
        {
            "text": "The cat sleeps on the table.",
            "second": "Die Katze schläft auf dem Tisch.",
            "mode": "pair",
            "about": "source and target",
        },
        _MINIMAL,
    ),
}


async def details(models: ServedModels, runs: ServedRuns, limits: Limits, name: str) -> dict[str, Any]:
    """A model as a page of texts offers it (ModelDetails); it is loaded if it was not."""
    kind, generate, fingerprint = await models.work(name, lambda model: _loaded(model, limits))
    known, seen = await runs.known(fingerprint)
    examples = [
        {**_BLANK, **example}
        for example in EXAMPLES[kind]
        if generate or example.get("generate") is None  # without its language-modelling head a decoder cannot continue a text
    ]
    found = [{**_BLANK, "text": text.text, "head": text.head, "about": f"{text.head} · {text.word}, from {text.run}"} for text in seen]
    return {
        **models.describe_one(name),
        **{"kind": kind, "generate": generate, "known": [asdict(head) for head in known], "examples": [*examples, *found]},
    }


def _loaded(model: Model, limits: Limits) -> tuple[ModelKind, int, str]:
    """The kind of a model, how many tokens it may generate, and its fingerprint."""
    from headscope.models.generation import generates

    kinds = {site.kind for site in model.sites}
    kind: ModelKind = "encoder-decoder" if model.encoder_decoder else "decoder" if kinds == {"decoder"} else "encoder"
    return kind, limits.generate_tokens if generates(model) else 0, model.fingerprint
