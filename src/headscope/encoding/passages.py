"""The words of a text that form a question, and those of the passage that answers it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headscope.core.annotation import Annotation

if TYPE_CHECKING:
    from jaxtyping import Bool


class MarkedWords(NamedTuple):
    """The words of a question, and those of the passage that answers it; both empty if the text has none."""

    question: Bool[np.ndarray, "word"]
    passage: Bool[np.ndarray, "word"]


def marked_words(text: Annotation) -> MarkedWords:
    """The question and the passage of a text.

    Marked words are used, all together if there are several marks. In a text with keyphrases and no marks, the last
    sentence is the question, and the words of keyphrases before it are the passage. A word that is in both belongs to
    the question.
    """
    question, passage = np.zeros((2, len(text.words)), dtype=bool)
    for edge in text.passages:
        assert edge.second is not None
        question[slice(*edge.first)] = True
        passage[slice(*edge.second)] = True
    if not text.passages and any(text.keywords):
        question = text.sentence_of == text.sentence_of[-1]
        passage = np.array(text.keywords, dtype=bool)
    passage = passage & ~question
    return MarkedWords(question & passage.any(), passage)
