"""Gates on heads (Michel et al. 2019): the output of head h is multiplied by ξ_h before the output projection.

ξ = 0 switches a head off, and values between 0 and 1 scale its output. With `replace`, (1 − ξ) times a given vector,
such as the mean output of the head, is added. Biases of the output projection are kept, and the other heads are not
rescaled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np
import torch

from headscope.core.batch import WORD
from headscope.core.heads import HeadId
from headscope.encoding.texts import Encoded
from headscope.errors import ModelError
from headscope.models.contexts import changed
from headscope.models.model import Model

if TYPE_CHECKING:
    from jaxtyping import Float

    from headscope.models.contexts import Contexts

    # By site number: one gate per head, or one per text and head. Sites without an entry are not changed.
    Gates = Mapping[int, Float[torch.Tensor, "head"] | Float[torch.Tensor, "batch head"]]
    Vectors = Mapping[int, Float[torch.Tensor, "head d"]]


@contextmanager
def gated(model: Model, gates: Gates, replace: Vectors | None = None, start: int = 0) -> Iterator[None]:
    """Put gates on the model's heads within the context; gradients flow through the gates.

    Gates per text are in the order of the batch. If each text occurs several times in a row, as in beam search, its
    gates are repeated. `replace` has for each site the vectors [head, d] that are added, times (1 − ξ). `start` is the
    first site that passes within the context run.
    """
    for number, gate in gates.items():
        if not 0 <= number < len(model.sites) or gate.shape[-1] != model.sites[number].heads or gate.ndim not in (1, 2):
            known = (
                f"which has {model.sites[number].heads} heads"
                if 0 <= number < len(model.sites)
                else f"but there are {len(model.sites)} sites"
            )
            raise ModelError(f"gates of shape {tuple(gate.shape)} were given for site {number}, {known}", "Give one gate per head")
        if replace is not None and number not in replace:
            raise ModelError(
                f"there are no vectors to replace the heads of {model.sites[number].name} with", "Give them for every site that has gates"
            )

    def change(number: int, contexts: Contexts) -> Contexts:
        if number not in gates:
            return contexts
        gate = _fitted(gates[number], contexts)
        if replace is None:
            return contexts * gate
        return contexts * gate + replace[number].to(contexts) * (1 - gate)

    with changed(model, change, start):
        yield


def _fitted(gate: torch.Tensor, contexts: Contexts) -> torch.Tensor:
    """Gates [batch or 1, 1, head, 1], repeated as often as each text occurs in the batch."""
    rows = (gate if gate.ndim == 2 else gate[None]).to(contexts)
    if len(rows) not in (1, len(contexts)):
        if len(contexts) % len(rows):
            raise ModelError(f"gates of {len(rows)} texts for a batch of {len(contexts)}", "Give one row per text, or one row for all")
        rows = rows.repeat_interleave(len(contexts) // len(rows), 0)
    return rows[:, None, :, None]


def gates_without(model: Model, heads: Iterable[HeadId]) -> dict[int, torch.Tensor]:
    """Gates that are 0 for these heads and 1 for the other heads of their sites."""
    numbers = {(site.kind, site.layer): number for number, site in enumerate(model.sites)}
    gates: dict[int, torch.Tensor] = {}
    for head in heads:
        number = numbers.get((head.kind, head.layer))
        if number is None or not 0 <= head.head < model.sites[number].heads:
            known = ", ".join(f"{site.name} with {site.heads}" for site in model.sites)
            raise ModelError(f"{model.name} has no head {head}", f"Its heads are: {known}")
        gates.setdefault(number, torch.ones(model.sites[number].heads, device=model.device))[head.head] = 0
    return gates


def mean_contexts(model: Model, batches: Iterable[Sequence[Encoded]]) -> dict[int, Float[torch.Tensor, "head d"]]:
    """The mean output of each head over the words of these texts; for texts without words, over all their tokens."""
    sums: dict[int, torch.Tensor] = {}
    counts = dict.fromkeys(range(len(model.sites)), 0)
    words: dict[str, torch.Tensor] = {}

    def add(number: int, contexts: Contexts) -> Contexts:
        at = words["source" if model.sites[number].kind == "encoder" or not model.encoder_decoder else "target"]
        sums[number] = sums.get(number, 0) + contexts[at].double().sum(0)
        counts[number] += int(at.sum())
        return contexts

    with torch.inference_mode(), changed(model, add):
        for texts in batches:
            words["source"] = _words(texts, model.device)
            if model.encoder_decoder:
                words["target"] = _words([text.target for text in texts if text.target is not None], model.device)
            model.network(**model.inputs(texts), use_cache=False)
    if not any(counts.values()):
        raise ModelError("there are no words to average over", "Give some texts")
    return {number: (total / counts[number]).float().clone() for number, total in sums.items()}


def _words(texts: Sequence[Encoded], device: torch.device) -> torch.Tensor:
    """True at the words of each text, or at all its tokens if it has none."""
    found = np.zeros((len(texts), max(map(len, texts))), dtype=bool)
    for row, text in zip(found, texts, strict=True):
        roles = np.array(text.roles) == WORD
        row[: len(text)] = roles if roles.any() else True
    return torch.from_numpy(found).to(device)
