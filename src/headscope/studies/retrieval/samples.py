"""Texts that end in a question, each with the passage that holds the answer, and the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from headscope.core.batch import WORD
from headscope.core.document import Word
from headscope.corpora import Corpus
from headscope.corpora.needles import ANSWER
from headscope.corpora.words import word_spans
from headscope.encoding.passages import marked_words
from headscope.encoding.texts import Encoded, Encoder
from headscope.results.counts import Counts
from headscope.studies.picking import picked

if TYPE_CHECKING:
    from jaxtyping import Bool

    from headscope.encoding.tokenizer import Tokenizer
    from headscope.models.model import Model
    from headscope.studies.retrieval.spec import RetrievalSpec


@dataclass(frozen=True)
class RetrievalSample:
    """A prompt that ends in a question; which of its tokens are the passage; the tokens of the answer, and its text."""

    prompt: Encoded
    passage: Bool[np.ndarray, "token"]
    answer: tuple[int, ...]
    right: str

    def followed_by(self, ids: Sequence[int]) -> Encoded:
        """The prompt with tokens after it, as one input."""
        prompt, size = self.prompt, len(ids)
        return replace(
            prompt,
            ids=np.concatenate([prompt.ids, np.array(ids, dtype=np.int64)]),
            segments=np.concatenate([prompt.segments, np.zeros(size, dtype=np.int64)]),
            roles=prompt.roles + (WORD,) * size,
            word_of=prompt.word_of + (-1,) * size,
            pieces=prompt.pieces + ("",) * size,
        )


def read_samples(corpus: Corpus, model: Model, spec: RetrievalSpec, counts: Counts) -> list[RetrievalSample]:
    """The samples of a corpus; texts that cannot be samples are counted."""
    encoder = Encoder(model.tokenizer, "document", spec.max_length, "drop")
    tally = counts.dropped
    samples = []
    for text in picked(encoder.texts(corpus, tally), spec.limit, seed=spec.seed, tally=tally, corpus=corpus):
        sample = sample_of(text, model.tokenizer)
        if isinstance(sample, str):
            tally.add(sample, text.id)
        elif len(text) + len(sample.answer) > spec.max_length:
            tally.add("texts skipped that leave no room for their answer", text.id)
        else:
            counts.add(text)
            samples.append(sample)
    tally.update(corpus.skipped)
    return samples


def sample_of(text: Encoded, tokenizer: Tokenizer) -> RetrievalSample | str:
    """The sample of a text, up to the end of its question; or the reason why it has none."""
    answer = str(text.metadata.get(ANSWER, "")).split()
    if not text.annotation.passages:
        return "texts skipped without a marked question and passage"
    if not answer:
        return "texts skipped without an answer"
    question, passage = (side[list(text.word_of)] & (np.array(text.word_of) >= 0) for side in marked_words(text.annotation))
    end = int(np.flatnonzero(question)[-1]) + 1
    if not passage[:end].any() or passage[end:].any():
        return "texts skipped whose passage does not precede the end of the question"
    prompt = replace(
        text, ids=text.ids[:end], segments=text.segments[:end], roles=text.roles[:end], word_of=text.word_of[:end], pieces=text.pieces[:end]
    )
    return RetrievalSample(prompt, passage[:end], _continuation(text.words[text.word_of[end - 1]], answer, tokenizer), " ".join(answer))


def _continuation(last: Word, forms: Sequence[str], tokenizer: Tokenizer) -> tuple[int, ...]:
    """The tokens of words that follow the last word of a text, with a space between them."""
    ids, word_of = tokenizer.tokens([replace(last, space_after=True), *map(Word, forms)])
    return tuple(token for token, word in zip(ids, word_of, strict=True) if word > 0)


def recall(right: str, written: str) -> float:
    """ROUGE-1 recall: the share of the words of the right answer that are in the written text, ignoring case."""
    wanted, there = (Counter(_words(text)) for text in (right, written))
    return (wanted & there).total() / wanted.total() if wanted else 0.0


def _words(text: str) -> Iterator[str]:
    folded = text.casefold()
    return (folded[start:end] for start, end in word_spans(folded) if any(letter.isalnum() for letter in folded[start:end]))
