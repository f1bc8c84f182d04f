"""What there is of coreference in a corpus, counted."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from headscope.core.document import Document
from headscope.corpora.distribution import Distribution
from headscope.corpora.mentions import antecedents, governors, head_word, kind_of


@dataclass
class CoreferenceStats:
    """Counts of mentions and entities; entities are told apart by document, and a chain is an entity with two mentions
    or more.

    `kinds` are pronoun, name and nominal, by the tag of the head word; `types` are the entity types given.
    `words_back` and `sentences_back` lead from the first word of a mention to that of its antecedent, the nearest
    mention before it of the same entity; in sentences, 0 is the same one.
    """

    mentions: int = 0
    entities: int = 0
    lengths: Distribution = field(default_factory=Distribution)
    chains: Distribution = field(default_factory=Distribution)
    kinds: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)
    words_back: Distribution = field(default_factory=Distribution)
    sentences_back: Distribution = field(default_factory=Distribution)

    @property
    def singletons(self) -> int:
        """Entities mentioned once."""
        return self.entities - self.chains.n

    @property
    def coreferent(self) -> int:
        """Mentions in chains."""
        return self.chains.total

    def add(self, document: Document) -> None:
        """Count the mentions of one more document."""
        if not document.mentions:
            return
        words, heads = document.words, governors(document)
        sentence_of = [number for number, sentence in enumerate(document.sentences) for _ in sentence.words]
        sizes = Counter(mention.entity for mention in document.mentions)
        self.mentions += len(document.mentions)
        self.entities += len(sizes)
        for size in sizes.values():
            if size > 1:
                self.chains.add(size)
        for mention, antecedent in antecedents(document.mentions):
            self.lengths.add(mention.end - mention.start)
            if mention.type is not None:
                self.types[mention.type] += 1
            head = head_word(mention, words, heads)
            if head is not None and (kind := kind_of(words[head])):
                self.kinds[kind] += 1
            if antecedent:
                self.words_back.add(mention.start - antecedent.start)
                self.sentences_back.add(sentence_of[mention.start] - sentence_of[antecedent.start])
