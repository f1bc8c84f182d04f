"""Annotated text: documents of sentences of words. Immutable, and free of any file format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain

Scalar = str | int | float | bool
PASSAGE = "passage"  # the task of edges from a question to the passage that answers it


@dataclass(frozen=True, slots=True)
class Word:
    """One syntactic word. `head` is the 1-based position of its governor: 0 for the root, None if not annotated."""

    form: str
    lemma: str | None = None
    upos: str | None = None
    xpos: str | None = None
    head: int | None = None
    relation: str | None = None
    space_after: bool = True

    def __reduce__(self) -> tuple[type[Word], tuple[object, ...]]:
        """Pickle the word as its fields in order: several times faster than the default of dataclasses with slots."""
        return type(self), _fields_of(self)


@dataclass(frozen=True, slots=True)
class DrawnWord(Word):
    """A word that stands for one token drawn at random from a vocabulary: given by the number `draw`, of up to 64 bits,
    and by the `token` once the vocabulary is known.
    """

    draw: int = 0
    token: int = -1


def _fields_of(word: Word) -> tuple[object, ...]:
    plain = (word.form, word.lemma, word.upos, word.xpos, word.head, word.relation, word.space_after)
    return (*plain, word.draw, word.token) if isinstance(word, DrawnWord) else plain


@dataclass(frozen=True, slots=True)
class Sentence:
    """Words that belong together. `paragraph` counts from 0 in the document; `parse` is a bracketed tree."""

    words: tuple[Word, ...]
    id: str | None = None
    paragraph: int = 0
    speaker: str | None = None
    parse: str | None = None

    def __len__(self) -> int:
        return len(self.words)

    @property
    def text(self) -> str:
        """The text of the sentence, with its original spaces."""
        return "".join(word.form + " " * word.space_after for word in self.words).rstrip()


@dataclass(frozen=True, slots=True)
class Mention:
    """A span of document words [start, end), counted from 0, that refers to `entity`."""

    entity: str
    start: int
    end: int
    type: str | None = None


@dataclass(frozen=True, slots=True)
class Edge:
    """The labels of one span of document words, or of an ordered pair of spans, in a task. Spans are [start, end),
    counted from 0.

    There may be several labels (the properties of a proto-role), or none if all are negated.
    """

    task: str
    labels: tuple[str, ...]
    first: tuple[int, int]
    second: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Document:
    """A text with its annotation. `id` is unique within a corpus. Documents are the unit that intervals resample.

    `subset` names the part of a test that the document belongs to, where results are wanted for each (`pro` and
    `anti`); `label` is the class that a classifier should find; `edges` are labelled spans and pairs of spans, for
    probes. `automatic` names the parser that made the annotation, if it was not corrected by people. `metadata` has the
    file's other values for the document, by name: its genre, its author, the other columns of a table.
    """

    id: str
    sentences: tuple[Sentence, ...]
    mentions: tuple[Mention, ...] = ()
    keyphrases: tuple[str, ...] = ()
    subset: str | None = None
    label: str | None = None
    edges: tuple[Edge, ...] = ()
    automatic: str | None = None
    metadata: Mapping[str, Scalar] = field(default_factory=dict, hash=False)

    @property
    def layers(self) -> set[str]:
        """The names of the layers of annotation that the document has: `trees`, `constituents`, `parts of speech`,
        `mentions`, `keyphrases`, `labels`, `edges`, `passages`.
        """
        trees = any(word.head is not None and word.relation is not None for word in self.words)
        parts = any(word.upos is not None for word in self.words)
        layers = {"trees": trees, "parts of speech": parts, "mentions": bool(self.mentions), "keyphrases": bool(self.keyphrases)}
        constituents = any(sentence.parse is not None for sentence in self.sentences)
        layers |= {"labels": self.label is not None, "edges": bool(self.edges), "constituents": constituents}
        layers["passages"] = any(edge.task == PASSAGE for edge in self.edges)
        return {name for name, present in layers.items() if present}

    @property
    def words(self) -> tuple[Word, ...]:
        """All words in order; the positions of mentions and edges index this."""
        return tuple(chain.from_iterable(sentence.words for sentence in self.sentences))

    def part(self, first: int, end: int) -> Document:
        """A document of the sentences [first, end), with the mentions that lie wholly in them. It keeps the id of the
        whole document.
        """
        start = sum(map(len, self.sentences[:first]))
        stop = start + sum(map(len, self.sentences[first:end]))
        mentions = tuple(
            replace(mention, start=mention.start - start, end=mention.end - start)
            for mention in self.mentions
            if start <= mention.start and mention.end <= stop
        )
        sentences = self.sentences[first:end]
        return Document(self.id, sentences, mentions, subset=self.subset, automatic=self.automatic, metadata=self.metadata)

    def paragraphs(self) -> Iterator[tuple[Sentence, ...]]:
        """The sentences grouped by paragraph, in order."""
        group: list[Sentence] = []
        for sentence in self.sentences:
            if group and sentence.paragraph != group[-1].paragraph:
                yield tuple(group)
                group = []
            group.append(sentence)
        if group:
            yield tuple(group)
