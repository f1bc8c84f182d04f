"""Counts over a corpus, made in one pass."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from headscope.core.document import Document, Sentence, Word
from headscope.core.tally import Tally
from headscope.corpora.corpus import Corpus
from headscope.corpora.resolution.mentions import antecedents, governors, head_word, kind_of


@dataclass
class Distribution:
    """Counts of whole numbers. Every summary is NaN if there are none."""

    counts: Counter[int] = field(default_factory=Counter)

    def add(self, value: int) -> None:
        """Count one more number."""
        self.counts[value] += 1

    @property
    def n(self) -> int:
        """How many numbers there are."""
        return self.counts.total()

    @property
    def total(self) -> int:
        """Their sum."""
        return sum(value * n for value, n in self.counts.items())

    @property
    def mean(self) -> float:
        """Their mean."""
        return self.total / self.n if self.counts else math.nan

    def quantile(self, q: float) -> float:
        """The quantile at share `q`, from 0 (the smallest) to 1 (the largest), with linear interpolation."""
        if not self.counts:
            return math.nan
        place = q * (self.n - 1)
        below = math.floor(place)
        low, high = self._ranked(below), self._ranked(min(below + 1, self.n - 1))
        return low + (place - below) * (high - low)

    def share(self, values: Iterable[int]) -> float:
        """The share of the numbers that are among `values`, which must be distinct."""
        return sum(self.counts[value] for value in values) / self.n if self.counts else math.nan

    def _ranked(self, rank: int) -> int:
        """The number at a place, from 0, in ascending order."""
        for value in sorted(self.counts):
            rank -= self.counts[value]
            if rank < 0:
                return value
        raise IndexError(rank)


class Offsets(Distribution):
    """The offsets from words to their heads, in words: positive to the right, negative to the left."""

    @classmethod
    def merged(cls, parts: Iterable[Offsets]) -> Offsets:
        """All parts as one."""
        whole = cls()
        for part in parts:
            whole.counts.update(part.counts)
        return whole

    @property
    def right(self) -> float:
        """The share of heads to the right of their word."""
        return self.share(value for value in self.counts if value > 0)

    @property
    def distances(self) -> Distribution:
        """The offsets without direction."""
        absolute = Distribution()
        for value, n in self.counts.items():
            absolute.counts[abs(value)] += n
        return absolute

    @property
    def usual(self) -> int:
        """The most frequent offset; of ties the nearest, then the one to the right; 0 if there is none."""
        return min(self.counts, key=lambda value: (-self.counts[value], abs(value), -value), default=0)


@dataclass
class CoreferenceStats:
    """Counts of mentions and entities of each document; a chain is an entity with two mentions or more.

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


def is_punctuation(word: Word) -> bool:
    """Whether a word is tagged PUNCT or, where it has no UPOS, related by `punct`."""
    return word.relation == "punct" if word.upos is None else word.upos == "PUNCT"


@dataclass
class KeyphraseStats:
    """Keyphrases by document and by length in words; `found` are those that occur in the text, in any case."""

    per_document: Distribution = field(default_factory=Distribution)
    lengths: Distribution = field(default_factory=Distribution)
    found: int = 0

    def add(self, document: Document) -> None:
        """Count the keyphrases of one more document."""
        self.per_document.add(len(document.keyphrases))
        if document.keyphrases:
            text = " ".join(sentence.text for sentence in document.sentences).casefold()
            for phrase in document.keyphrases:
                self.lengths.add(len(phrase.split()))
                self.found += phrase.casefold() in text


@dataclass
class Edges:
    """Labelled spans and pairs of spans by task, and their labels; `lengths` are of spans in words."""

    tasks: Counter[str] = field(default_factory=Counter)
    labels: defaultdict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    lengths: Distribution = field(default_factory=Distribution)

    def add(self, document: Document) -> None:
        """Count the edges of one more document."""
        for edge in document.edges:
            self.tasks[edge.task] += 1
            self.labels[edge.task].update(edge.labels)
            for span in (edge.first, edge.second):
                if span is not None:
                    self.lengths.add(span[1] - span[0])


@dataclass
class Stats:
    """Counts over all documents. `lengths` are of sentences, `offsets` of the heads of each relation (roots have none).

    `parsers` made the annotation, with None for people; `labels` are of documents; `skipped` is the reader's tally.
    """

    documents: int = 0
    parsers: set[str | None] = field(default_factory=set)
    paragraphs: int = 0
    punctuation: int = 0
    lengths: Distribution = field(default_factory=Distribution)
    relations: Counter[str] = field(default_factory=Counter)
    offsets: defaultdict[str, Offsets] = field(default_factory=lambda: defaultdict(Offsets))
    upos: Counter[str] = field(default_factory=Counter)
    xpos: Counter[str] = field(default_factory=Counter)
    labels: Counter[str] = field(default_factory=Counter)
    coreference: CoreferenceStats = field(default_factory=CoreferenceStats)
    phrases: KeyphraseStats = field(default_factory=KeyphraseStats)
    edges: Edges = field(default_factory=Edges)
    skipped: Tally = field(default_factory=Tally)

    @property
    def sentences(self) -> int:
        """The number of sentences."""
        return self.lengths.n

    @property
    def words(self) -> int:
        """The number of words, punctuation included."""
        return self.lengths.total

    @property
    def mentions(self) -> int:
        """The number of mentions."""
        return self.coreference.mentions

    @property
    def entities(self) -> int:
        """The number of entities, counted per document."""
        return self.coreference.entities

    @property
    def keyphrases(self) -> int:
        """The number of keyphrases."""
        return self.phrases.per_document.total

    @property
    def dependencies(self) -> Offsets:
        """The offsets of all heads except those of punctuation, which are a matter of convention."""
        return Offsets.merged(offsets for relation, offsets in self.offsets.items() if relation != "punct")

    def add(self, document: Document) -> None:
        """Count one more document."""
        self.documents += 1
        self.parsers.add(document.automatic)
        self.paragraphs += sum(1 for _ in document.paragraphs())
        for sentence in document.sentences:
            self._add_sentence(sentence)
        if document.label is not None:
            self.labels[document.label] += 1
        self.coreference.add(document)
        self.phrases.add(document)
        self.edges.add(document)

    def _add_sentence(self, sentence: Sentence) -> None:
        self.lengths.add(len(sentence))
        for position, word in enumerate(sentence.words, start=1):
            self.punctuation += is_punctuation(word)
            if word.upos is not None:
                self.upos[word.upos] += 1
            if word.xpos is not None:
                self.xpos[word.xpos] += 1
            if word.relation is not None:
                self.relations[word.relation] += 1
                if word.head:
                    self.offsets[word.relation].add(word.head - position)


def stats(corpus: Corpus) -> Stats:
    """Counts over a corpus, in one pass."""
    result = Stats()
    for document in corpus:
        result.add(document)
    result.skipped.update(corpus.skipped)
    return result
