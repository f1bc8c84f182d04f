"""Other people's finders of keyphrases, to be compared with, where they are installed."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.document import Document, Sentence
from headscope.corpora.tags import OUTSIDE, phrase_tags
from headscope.studies.keywords.features import Words

if TYPE_CHECKING:
    from jaxtyping import Float64

LONGEST, MOST = 3, 40  # words of a phrase, and phrases of a text


def has_yake() -> bool:
    """Whether YAKE is installed."""
    return find_spec("yake") is not None


def scores_by_yake(words: Words) -> Float64[np.ndarray, "word"]:
    """For each word minus the logarithm of the smallest score, small ones being good, of YAKE's phrases that it is
    part of.
    """
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
