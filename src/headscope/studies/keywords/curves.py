"""F1 of the regression on heads (Štefánik) by the threshold of a word, and by the number of heads kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from headscope.stats.logistic import log_losses, one_by_one
from headscope.studies.keywords.features import Words
from headscope.studies.keywords.learning import LEVELS, Standard, counts, regression, thresholds, tuning_parts

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Float64, Int64

THRESHOLDS = np.linspace(0.0, 1.0, 41)  # probabilities of being part of a keyphrase


def sizes(heads: int) -> list[int]:
    """How many heads are kept at each step: 1, 2, 4, 8, … and all of them."""
    return [*(2**step for step in range(heads.bit_length()) if 2**step < heads), heads]


def by_threshold(logits: Float64[np.ndarray, "word"], words: Words) -> Float64[np.ndarray, "text threshold level 3"]:
    """For each text, what is found, wrongly found and missed if words from each probability on are marked."""
    chances = 1 / (1 + np.exp(-np.clip(logits, -500, 500)))
    return np.stack([np.stack([counts(chances, words, level, cut) for level in LEVELS], 1) for cut in THRESHOLDS], 1)


def by_heads(learnt_from: Words, held: Words, penalty: float, tuning: Bool[np.ndarray, "text"]) -> Float64[np.ndarray, "text size level 3"]:
    """What is found with a regression on the best heads, by their number; thresholds are tuned for each number."""
    rest, tried = tuning_parts(learnt_from, tuning)
    first, second = ranking(learnt_from, penalty), ranking(rest, penalty)
    steps = []
    for size in sizes(held.received.shape[2])[:-1]:
        scores = regression(_received(first[:size]), learnt_from, penalty).score(held)
        cuts = thresholds(regression(_received(second[:size]), rest, penalty), tried)
        steps.append(np.stack([counts(scores, held, level, cut) for level, cut in zip(LEVELS, cuts, strict=True)], 1))
    return np.stack(steps, 1) if steps else np.zeros((len(held.texts), 0, len(LEVELS), 3))


def ranking(words: Words, penalty: float) -> Int64[np.ndarray, "head"]:
    """Heads by the cross-entropy of a regression on one head, lowest first, with the better of the two summaries."""
    flat = words.received.reshape(len(words.received), -1)
    x = Standard.learnt(flat).of(flat)
    slopes, bases = one_by_one(x, words.keys, penalty)
    losses = log_losses(x * slopes + bases, words.keys[:, None].astype(np.float64)).mean(0)
    order: Int64[np.ndarray, "head"] = np.argsort(losses.reshape(words.received.shape[1:]).min(0), kind="stable")
    return order


def _received(heads: Int64[np.ndarray, "head"]) -> Callable[[Words], Float[np.ndarray, "word feature"]]:
    return lambda words: words.received[:, :, heads].reshape(len(words.received), -1)
