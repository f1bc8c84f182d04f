"""What went through a run, and what did not."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from headscope.core.tally import Tally
from headscope.corpora import Corpus
from headscope.encoding.texts import Encoded, Encoder


@dataclass
class Counts:
    """Numbers of documents, texts, tokens and words, and a tally of what was passed over."""

    documents: int = 0
    texts: int = 0
    tokens: int = 0
    words: int = 0
    split_words: int = 0
    dropped: Tally = field(default_factory=Tally)
    _last: str | None = None

    def add(self, text: Encoded) -> None:
        """Count one input. The texts of a document come one after the other."""
        self.count(text.document, len(text), len(text.words), split_words(text))

    def count(self, document: str, tokens: int, words: int, split: int) -> None:
        """Count one input by its numbers."""
        self.documents += document != self._last
        self._last = document
        self.texts += 1
        self.tokens += tokens
        self.words += words
        self.split_words += split

    def numbers(self) -> dict[str, int]:
        """The counts by name."""
        return {name: getattr(self, name) for name in ("documents", "texts", "tokens", "words", "split_words")}


def split_words(text: Encoded) -> int:
    """How many words of a text have several tokens."""
    return sum(pieces > 1 for word, pieces in Counter(text.word_of).items() if word >= 0)


def count(corpus: Corpus, encoder: Encoder) -> Counts:
    """What a run over a corpus would see and pass over, without running a model."""
    counts = Counts()
    for text in encoder.texts(corpus, counts.dropped):
        counts.add(text)
    counts.dropped.update(corpus.skipped)
    return counts
