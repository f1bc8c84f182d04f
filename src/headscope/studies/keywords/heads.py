"""How well each head alone finds keywords: text by text, and by regressions scored on held-out texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headscope.core.heads import HeadId
from headscope.results.columns import StateColumns
from headscope.results.table import Table
from headscope.stats.bootstrap import poisson_weights
from headscope.stats.inference import Support, interval
from headscope.stats.logistic import log_losses, one_by_one
from headscope.stats.significance import holm, paired, welch
from headscope.studies.keywords.features import HOWS, Words
from headscope.studies.keywords.learning import Standard

if TYPE_CHECKING:
    from jaxtyping import Float64

NUMBERS = ("key", "other", "effect", "auc")
FLOOR = 1e-6  # shares of attention are clipped to this distance from 0 and 1 before a logarithm


def observe(learnt_from: Words, words: Words, penalty: float, kept: StateColumns) -> None:
    """Add one row per text for each head: means, effect, AUC, and losses of regressions learnt from other texts."""
    from scipy.stats import rankdata

    flat, other = (part.received.reshape(len(part.received), -1) for part in (learnt_from, words))
    scale = Standard.learnt(flat)
    slopes, bases = one_by_one(scale.of(flat), learnt_from.keys, penalty)
    truth = words.keys.astype(np.float64)
    losses = log_losses(scale.of(other).astype(np.float64) * slopes + bases, truth[:, None])
    shares = np.clip(other.astype(np.float64), FLOOR, 1 - FLOOR)
    direct = np.where(words.keys[:, None], -np.log(shares), -np.log1p(-shares))
    rate = float(np.clip(learnt_from.keys.mean(), FLOOR, 1 - FLOOR))
    constant = np.where(words.keys, -np.log(rate), -np.log1p(-rate))
    shape = words.received.shape[1:]
    for number in range(len(words.texts)):
        here = words.text_of == number
        keys, x = words.keys[here], other[here].astype(np.float64)
        numbers = np.full((len(NUMBERS), x.shape[1]), np.nan)
        if 0 < keys.sum() < len(keys):
            key, rest = x[keys], x[~keys]
            pooled = np.sqrt((key.var(0) * len(key) + rest.var(0) * len(rest)) / len(x))
            with np.errstate(invalid="ignore", divide="ignore"):
                effect = np.where(pooled > 0, (key.mean(0) - rest.mean(0)) / pooled, np.nan)
            ranks = rankdata(x, axis=0)[keys].sum(0)
            numbers[:] = key.mean(0), rest.mean(0), effect, (ranks - len(key) * (len(key) + 1) / 2) / (len(key) * len(rest))
        for name, row in zip(NUMBERS, numbers, strict=True):
            kept.add(name, row.reshape(1, *shape))
        kept.add("loss", losses[here].sum(0).reshape(1, *shape))
        kept.add("direct", direct[here].sum(0).reshape(1, *shape))
        kept.add("constant", [constant[here].sum()])
        kept.add("words", [float(here.sum())])


def head_table(kept: StateColumns, documents: list[str], heads: list[HeadId], replicates: int, seed: int) -> Table:
    """`keywords_heads`: one row per head and kind of summary (mean or max).

    `relative` is the attention that a word of a keyphrase receives minus that of another word, the mean over texts,
    with its interval; `effect` is the same in units of the spread within a text. `t` and `p` are those of Welch's test
    over texts, `paired_t` and `paired_p` those of a paired test, and `p_holm` is the latter corrected for all heads.
    `loss` is the cross-entropy of a regression on this one feature, in nats per word, with its interval; `gain` is how
    much smaller it is than the loss if only the share of keywords is known, with its interval; `direct` is the
    cross-entropy if attention itself is the probability.
    """
    key, other, effect, auc = (kept.numbers(name) for name in NUMBERS)
    weights = poisson_weights(documents, replicates, seed)
    usable = np.isfinite(key) & np.isfinite(other)
    apart = np.where(usable, key - other, 0.0)
    sums = np.einsum("dr,dhk->rhk", weights, apart)
    sizes = np.einsum("dr,dhk->rhk", weights, usable.astype(np.float64))
    with np.errstate(invalid="ignore", divide="ignore"):
        relative = sums / sizes
    names, unit = np.unique(documents, return_inverse=True)
    support = Support.of(np.stack([usable[unit == number].sum(0) for number in range(len(names))]))
    low, high = interval(relative[0], relative[1:], support)
    there = usable[:, 0, 0]
    test, both = welch(key[there], other[there]), paired(key[there], other[there])
    corrected = np.stack([holm(row) for row in both.p])
    words = kept.numbers("words")
    direct = kept.numbers("direct").sum(0) / words.sum()
    with np.errstate(invalid="ignore", divide="ignore"):
        losses = np.einsum("dr,dhk->rhk", weights, kept.numbers("loss")) / (words @ weights)[:, None, None]
        gains = (kept.numbers("constant") @ weights / (words @ weights))[:, None, None] - losses
    every = Support.of(np.bincount(unit, words))
    loss_low, loss_high = interval(losses[0], losses[1:], every, (0, np.inf))
    gain_low, gain_high = interval(gains[0], gains[1:], every)
    rows = [(how, place) for how in range(len(HOWS)) for place in range(len(heads))]

    def column(values: Float64[np.ndarray, "how head"]) -> list[float]:
        return [float(values[place]) for place in rows]

    with np.errstate(invalid="ignore"):
        effects, aucs = _mean(effect), _mean(auc)
    return Table.of(
        {
            "kind": [heads[place].kind for _, place in rows],
            "layer": [heads[place].layer + 1 for _, place in rows],
            "head": [heads[place].head + 1 for _, place in rows],
            "received": [HOWS[how] for how, _ in rows],
            "relative": column(relative[0]),
            "low": column(low),
            "high": column(high),
            "effect": column(effects),
            "auc": column(aucs),
            "t": column(test.t),
            "p": column(test.p),
            "paired_t": column(both.t),
            "paired_p": column(both.p),
            "p_holm": column(corrected),
            "loss": column(losses[0]),
            "loss_low": column(loss_low),
            "loss_high": column(loss_high),
            "gain": column(gains[0]),
            "gain_low": column(gain_low),
            "gain_high": column(gain_high),
            "direct": column(direct),
            "n": [int(there.sum())] * len(rows),
            "documents": [int(support.documents[place]) for place in rows],
        }
    )


def _mean(values: Float64[np.ndarray, "text how head"]) -> Float64[np.ndarray, "how head"]:
    """The mean over texts that have the value."""
    there = np.isfinite(values)
    means: Float64[np.ndarray, "how head"] = np.where(there, values, 0.0).sum(0) / np.maximum(there.sum(0), 1)
    return np.where(there.any(0), means, np.nan)
