"""Ways to find the words of keyphrases: each learns from some texts and scores the words of others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.document import Document, Sentence
from headscope.corpora.tags import OUTSIDE, phrase_tags
from headscope.errors import RunError
from headscope.stats.bootstrap import group_of
from headscope.stats.classification import KeyphraseF1, Level
from headscope.stats.logistic import LogisticFit, log_losses, logistic, one_by_one
from headscope.studies.keywords.features import Rarity, Words

if TYPE_CHECKING:
    import torch
    from jaxtyping import Bool, Float, Float64, Int64

    Scoring = Callable[[Words], Float64[np.ndarray, "word"]]

LEVELS: tuple[Level, ...] = ("token", "span")
STEPS = 300  # of the scalar mix
TUNING = 7  # thresholds are tuned on one of so many groups
LONGEST, MOST = 3, 40  # words of a phrase, and phrases of a text


@dataclass(frozen=True)
class Standard:
    """Standardisation of features: their mean and spread in the texts that were learnt from."""

    mean: Float64[np.ndarray, "feature"]
    spread: Float64[np.ndarray, "feature"]

    @classmethod
    def learnt(cls, x: Float[np.ndarray, "word feature"]) -> Standard:
        """The standardisation learnt from these words; a feature that never changes becomes 0."""
        spread = x.std(0, dtype=np.float64)
        return cls(x.mean(0, dtype=np.float64), np.where(spread > 0, spread, np.inf))

    def of(self, x: Float[np.ndarray, "word feature"]) -> Float[np.ndarray, "word feature"]:
        """The standardised features of any words."""
        scaled: Float[np.ndarray, "word feature"] = ((x - self.mean) / self.spread).astype(np.float32)
        return scaled


@dataclass(frozen=True)
class Learnt:
    """A way to score words, the weights of its features if it has some, and its fitted regression."""

    score: Scoring
    weights: Float64[np.ndarray, "how head"] | None = None
    scale: Standard | None = None
    fit: LogisticFit | None = None


def every_word(words: Words, penalty: float) -> Learnt:
    """A baseline that scores all words alike."""
    return Learnt(lambda other: np.zeros(len(other.text_of)))


def position(words: Words, penalty: float) -> Learnt:
    """A regression on the place of a word."""
    return regression(lambda other: other.places, words, penalty)


def tf_idf(words: Words, penalty: float) -> Learnt:
    """A regression on tf-idf: how frequent a word is in its text and how rare in others."""
    known = Rarity.learnt(words)
    return regression(lambda other: other.rarity(known), words, penalty)


def best_head(words: Words, penalty: float) -> Learnt:
    """A regression on the single best head and kind of summary."""
    flat = words.received.reshape(len(words.received), -1)
    scale = Standard.learnt(flat)
    x = scale.of(flat)
    slopes, bases = one_by_one(x, words.keys, penalty)
    best = int(log_losses(x * slopes + bases, words.keys[:, None].astype(np.float64)).mean(0).argmin())
    weights = np.zeros(flat.shape[1])
    weights[best] = slopes[best]

    def score(other: Words) -> Float64[np.ndarray, "word"]:
        column = other.received.reshape(len(other.received), -1)[:, best]
        logits: Float64[np.ndarray, "word"] = slopes[best] * (column - scale.mean[best]) / scale.spread[best] + bases[best]
        return logits

    return Learnt(score, weights.reshape(words.received.shape[1:]))


def heads(words: Words, penalty: float) -> Learnt:
    """A regression on all heads together."""
    return regression(_received, words, penalty)


def heads_and_more(words: Words, penalty: float) -> Learnt:
    """A regression on all heads, the place of a word, and its tf-idf."""
    known = Rarity.learnt(words)
    return regression(lambda other: np.concatenate([_received(other), other.places, other.rarity(known)], 1), words, penalty)


def scalar_mix(words: Words, penalty: float) -> Learnt:
    """A mix of all heads, log odds = γ Σ softmax(a) x + b, with the penalty on a and γ."""
    import torch
    from scipy.optimize import minimize

    scale = Standard.learnt(words.received[:, 0])
    x, truth = torch.from_numpy(scale.of(words.received[:, 0])).double(), torch.from_numpy(words.keys).double()

    def logits(x: torch.Tensor, at: torch.Tensor) -> torch.Tensor:
        return at[-2] * (x @ at[:-2].softmax(0)) + at[-1]

    def loss(values: Float64[np.ndarray, "term"]) -> tuple[float, Float64[np.ndarray, "term"]]:
        at = torch.from_numpy(values).requires_grad_()
        total = torch.nn.functional.binary_cross_entropy_with_logits(logits(x, at), truth, reduction="sum")
        total = total + penalty / 2 * at[:-1].square().sum()
        (slope,) = torch.autograd.grad(total, at)
        return float(total.detach()), slope.numpy()

    start = np.zeros(words.received.shape[2] + 2)
    start[-2] = 1.0
    at = torch.from_numpy(minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x)
    weights = np.zeros(words.received.shape[1:])
    weights[0] = at[:-2].softmax(0).numpy()
    return Learnt(lambda other: logits(torch.from_numpy(scale.of(other.received[:, 0])).double(), at).numpy(), weights)


def yake(words: Words, penalty: float) -> Learnt:
    """YAKE (Campos et al. 2020), which learns nothing: a word scores as the best of its phrases."""
    return Learnt(scores_by_yake)


TOGETHER = "all heads"
SYSTEMS: Mapping[str, Callable[[Words, float], Learnt]] = {
    "every word": every_word,
    "position": position,
    "tf-idf": tf_idf,
    "best head": best_head,
    "scalar mix": scalar_mix,
    TOGETHER: heads,
    "all heads, position, tf-idf": heads_and_more,
    "yake": yake,
}


def _received(words: Words) -> Float[np.ndarray, "word feature"]:
    return words.received.reshape(len(words.received), -1)


def regression(features: Callable[[Words], Float[np.ndarray, "word feature"]], words: Words, penalty: float) -> Learnt:
    """A logistic regression on standardised features of words."""
    x = features(words)
    scale = Standard.learnt(x)
    fit = logistic(scale.of(x), words.keys, penalty)
    size = words.received[0].size if len(words.received) else 0
    weights = fit.coefficients[:size].reshape(words.received.shape[1:]) if x.shape[1] >= size > 0 else None
    return Learnt(lambda other: fit.logits(scale.of(features(other))), weights, scale, fit)


def threshold(scores: Float64[np.ndarray, "word"], words: Words, level: Level, most: int = 200) -> float:
    """The score from which words are marked as part of a keyphrase, so that F1 is best in these texts."""
    candidates = np.unique(np.quantile(scores, np.linspace(0, 1, most + 1), method="nearest"))
    tried = [KeyphraseF1(level).of(counts(scores, words, level, cut)) for cut in candidates]
    return float(candidates[int(np.nanargmax(np.nan_to_num(tried, nan=-1.0)))])


def counts(scores: Float64[np.ndarray, "word"], words: Words, level: Level, cut: float) -> Float64[np.ndarray, "text 3"]:
    """True positives, false positives and false negatives of each text at a threshold; neighbours form one phrase."""
    taken: Int64[np.ndarray, "word"] = (scores >= cut).astype(np.int64)
    return KeyphraseF1(level).counted(taken, words.kinds, words.text_of, len(words.texts))


def folds_of(words: Words, number: int, seed: int) -> Iterator[tuple[Words, Words]]:
    """Pairs of texts to learn from and to test on; each document is tested once, and its fold depends on its name."""
    fold = np.array([group_of(f"{seed}/{name}", number) for name in words.documents])
    if len(set(fold)) < 2:
        raise RunError(f"{len(words.texts)} documents all fall into one fold", "Use more documents, or a separate corpus with --dev")
    for held in sorted(set(fold)):
        yield words.some(fold != held), words.some(fold == held)


def tuning(words: Words) -> Bool[np.ndarray, "text"]:
    """The texts that thresholds are tuned on, chosen by name."""
    return np.array([group_of(f"tuning/{name}", TUNING) == 0 for name in words.documents], dtype=bool)


def tuned(learn: Callable[[Words, float], Learnt], words: Words, penalty: float, tuning: Bool[np.ndarray, "text"]) -> Sequence[float]:
    """The thresholds for words and for phrases: learnt from some texts, tuned on the others."""
    rest, held = tuning_parts(words, tuning)
    return thresholds(learn(rest, penalty), held)


def tuning_parts(words: Words, tuning: Bool[np.ndarray, "text"]) -> tuple[Words, Words]:
    """The texts to learn from and those to tune thresholds on; all texts for both if either would be empty."""
    return (words.some(~tuning), words.some(tuning)) if tuning.any() and not tuning.all() else (words, words)


def thresholds(learnt: Learnt, words: Words) -> Sequence[float]:
    """The best thresholds for words and for phrases in these texts."""
    scores = learnt.score(words)
    return [threshold(scores, words, level) for level in LEVELS]


def has_yake() -> bool:
    """Whether YAKE is installed."""
    return find_spec("yake") is not None


def scores_by_yake(words: Words) -> Float64[np.ndarray, "word"]:
    """For each word, minus the log of the smallest (best) YAKE score of its phrases."""
    from yake import KeywordExtractor  # type: ignore[import-not-found, unused-ignore]

    extractor = KeywordExtractor(lan="en", n=LONGEST, top=MOST)
    parts = []
    for text in words.texts:
        sentence = Sentence(text.words)
        worth = np.full(len(text.words), -1e3)
        for phrase, score in extractor.extract_keywords(sentence.text):
            tags = phrase_tags(Document("", (sentence,), keyphrases=(phrase,)))
            here = np.array([tag != OUTSIDE for tag in tags])
            worth[here] = np.maximum(worth[here], -np.log(max(float(score), 1e-12)))
        parts.append(worth)
    return np.concatenate(parts) if parts else np.zeros(0)
