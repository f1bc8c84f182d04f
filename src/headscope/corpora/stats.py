"""What is in a corpus, counted in one pass."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field

from headscope.core.document import Document, Sentence, Word
from headscope.core.tally import Tally
from headscope.corpora.coreference_stats import CoreferenceStats
from headscope.corpora.corpus import Corpus
from headscope.corpora.distribution import Distribution, Offsets


def is_punctuation(word: Word) -> bool:
    """Whether a word is tagged PUNCT or, where it has no UPOS, related by `punct`."""
    return word.relation == "punct" if word.upos is None else word.upos == "PUNCT"


@dataclass
class KeyphraseStats:
    """Keyphrases by document and by length in words; `found` are those that the text holds, in whatever case."""

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
    """Labelled spans and pairs of spans by task, and their labels, of which one may have several; `lengths` are of
    spans in words.
    """

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

    `parsers` made the annotation, None standing for people; `labels` are of documents; `skipped` is the reader's tally.
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
        """The number of entities, told apart by document."""
        return self.coreference.entities

    @property
    def keyphrases(self) -> int:
        """The number of keyphrases."""
        return self.phrases.per_document.total

    @property
    def dependencies(self) -> Offsets:
        """The offsets of all heads; those of punctuation, which are a matter of convention, are left out."""
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
