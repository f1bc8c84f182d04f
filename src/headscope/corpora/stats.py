"""What is in a corpus, counted."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field

from headscope.core.document import Document
from headscope.core.tally import Tally
from headscope.corpora.corpus import Corpus


@dataclass
class Stats:
    """Counts over all documents. `entities` are chains, told apart by document; `skipped` is the reader's tally."""

    documents: int = 0
    paragraphs: int = 0
    sentences: int = 0
    words: int = 0
    shortest: int = 0
    longest: int = 0
    relations: Counter[str] = field(default_factory=Counter)
    upos: Counter[str] = field(default_factory=Counter)
    xpos: Counter[str] = field(default_factory=Counter)
    mentions: int = 0
    entities: int = 0
    keyphrases: int = 0
    skipped: Tally = field(default_factory=Tally)

    @property
    def mean(self) -> float:
        """Words per sentence, NaN without sentences."""
        return self.words / self.sentences if self.sentences else math.nan

    def add(self, document: Document) -> None:
        """Count one more document."""
        lengths = [len(sentence) for sentence in document.sentences]
        self.shortest = min([*lengths, self.shortest] if self.sentences else lengths, default=0)
        self.longest = max([*lengths, self.longest])
        self.documents += 1
        self.paragraphs += sum(1 for _ in document.paragraphs())
        self.sentences += len(lengths)
        self.words += sum(lengths)
        for word in document.words:
            if word.relation is not None:
                self.relations[word.relation] += 1
            if word.upos is not None:
                self.upos[word.upos] += 1
            if word.xpos is not None:
                self.xpos[word.xpos] += 1
        self.mentions += len(document.mentions)
        self.entities += len({mention.entity for mention in document.mentions})
        self.keyphrases += len(document.keyphrases)


def stats(corpus: Corpus) -> Stats:
    """Counts over a corpus, in one pass."""
    result = Stats()
    for document in corpus:
        result.add(document)
    result.skipped.update(corpus.skipped)
    return result
