"""Wu et al.'s score: the share of steps in which a head attends most to the token of the passage that comes next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headscope.studies.retrieval.samples import RetrievalSample

if TYPE_CHECKING:
    import torch
    from jaxtyping import Bool, Float, Float64, Int64

    from headscope.models.model import Model


def copy_scores(model: Model, sample: RetrievalSample, written: Sequence[int]) -> Float64[np.ndarray, "head"]:
    """For each head, the number of written tokens that it copied from the passage, divided by the tokens of the answer.

    One pass over the prompt and the written tokens gives the attention of all steps, because in a causal model a row
    does not depend on later tokens. Step s, which writes token s, is the row of the token before it.
    """
    layout = model.layout
    scores = np.zeros(layout.size)
    if not written:
        return scores
    text = sample.followed_by(written)
    steps = slice(len(sample.prompt) - 1, len(text) - 1)

    def take(index: int, weights: torch.Tensor, *seen: object) -> None:
        most = weights[0, :, steps].argmax(-1).cpu().numpy()
        scores[layout.slice(index)] = copied(most, text.ids, sample.passage, written).sum(1) / len(sample.answer)

    model.stream(model.inputs([text]), take)
    return scores


def copied(
    most: Int64[np.ndarray, "head step"], ids: Int64[np.ndarray, "token"], passage: Bool[np.ndarray, "prompt"], written: Sequence[int]
) -> Bool[np.ndarray, "head step"]:
    """Whether the token that a head attends to most in a step lies in the passage and equals the written token."""
    inside = np.zeros(len(ids), dtype=bool)
    inside[: len(passage)] = passage
    copies: Bool[np.ndarray, "head step"] = inside[most] & (ids[most] == np.array(written))
    return copies


def chance(sample: RetrievalSample, written: Sequence[int]) -> float:
    """The expected score of a head that attends most to a random visible token."""
    inside = sample.prompt.ids[sample.passage]
    seen = len(sample.prompt) + np.arange(len(written))
    shares: Float[np.ndarray, "step"] = np.array([(inside == token).sum() for token in written]) / seen
    return float(shares.sum() / len(sample.answer))
