"""A document under construction, sentence by sentence."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

from headscope.core.document import Document, Edge, Scalar, Sentence
from headscope.corpora.readers.brackets import UNIT, Chains, Schema, parse_marks
from headscope.corpora.source import Flaw, Source


class Anchor(NamedTuple):
    """Coreference brackets `value` at a word of a sentence with `before` words before it and `after` up to its end."""

    before: int
    after: int
    value: str
    line: int


class Draft:
    """Sentences, mentions and edges collected so far. Mentions and edges count the words of the sentences that are
    kept.
    """

    def __init__(self, source: Source, id: str, label: str | None = None) -> None:
        self.id = id
        self.label = label
        self.paragraph = 0
        self.started = False
        self.keyphrases: tuple[str, ...] = ()
        self.automatic: str | None = None
        self.metadata: dict[str, Scalar] = {}
        self._source = source
        self._sentences: list[Sentence] = []
        self._edges: list[Edge] = []
        self._words = 0
        self._chains = Chains(source)

    def add(self, sentence: Sentence, anchors: Iterable[Anchor], schema: Schema, edges: Iterable[Edge] = ()) -> None:
        """Append a sentence with its brackets and its edges, which are counted within the sentence."""
        self._mark(anchors, schema, lost=False)
        self._edges += (_moved(edge, self._words) for edge in edges)
        self._sentences.append(sentence)
        self._words += len(sentence)
        self.started = True

    def lose(self, anchors: Iterable[Anchor], schema: Schema) -> None:
        """Skip a sentence, but read its brackets, so that the brackets of other sentences still balance."""
        self._chains.lose()
        self._mark((Anchor(0, 0, anchor.value, anchor.line) for anchor in anchors), schema, lost=True)
        self.started = True

    def finish(self) -> Document | None:
        """The document, or None if no sentence of it is left."""
        mentions = self._chains.finish()
        if not self._sentences:
            self._source.tally.add("documents skipped: none of their sentences is left", self.id)
            return None
        return Document(
            self.id,
            tuple(self._sentences),
            mentions,
            self.keyphrases,
            label=self.label,
            edges=tuple(self._edges),
            automatic=self.automatic,
            metadata=self.metadata,
        )

    def _mark(self, anchors: Iterable[Anchor], schema: Schema, lost: bool) -> None:
        for anchor in anchors:
            try:
                marks = parse_marks(anchor.value, schema, anchor.line)
            except Flaw as flaw:
                self._source.report(flaw, UNIT)
                continue
            for mark in marks:
                self._chains.apply(mark, self._words + anchor.before, self._words + anchor.after, anchor.line, lost)


def _moved(edge: Edge, words: int) -> Edge:
    """The edge shifted by this many words."""
    first, second = edge.first, edge.second
    later = second and (second[0] + words, second[1] + words)
    return replace(edge, first=(first[0] + words, first[1] + words), second=later)
