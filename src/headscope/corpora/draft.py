"""A document under construction, sentence by sentence."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from headscope.core.document import Document, Sentence
from headscope.corpora.brackets import UNIT, Chains, Schema, parse_marks
from headscope.corpora.source import Flaw, Source


class Anchor(NamedTuple):
    """Coreference brackets `value` at a word of a sentence with `before` words before it and `after` up to its end."""

    before: int
    after: int
    value: str
    line: int


class Draft:
    """Sentences and mentions collected so far. Mentions count the words of the sentences that are kept."""

    def __init__(self, source: Source, id: str) -> None:
        self.id = id
        self.paragraph = 0
        self.started = False
        self.keyphrases: tuple[str, ...] = ()
        self._source = source
        self._sentences: list[Sentence] = []
        self._words = 0
        self._chains = Chains(source)

    def add(self, sentence: Sentence, anchors: Iterable[Anchor], schema: Schema) -> None:
        """Append a sentence and take in its brackets."""
        self._mark(anchors, schema, lost=False)
        self._sentences.append(sentence)
        self._words += len(sentence)
        self.started = True

    def lose(self, anchors: Iterable[Anchor], schema: Schema) -> None:
        """A sentence had to be left out: read what brackets it has, so that they do not upset the balance of the others."""
        self._chains.lose()
        self._mark((Anchor(0, 0, anchor.value, anchor.line) for anchor in anchors), schema, lost=True)
        self.started = True

    def finish(self) -> Document | None:
        """The document, or None if no sentence of it is left."""
        mentions = self._chains.finish()
        if not self._sentences:
            self._source.tally.add("documents left out: none of their sentences is left", self.id)
            return None
        return Document(self.id, tuple(self._sentences), mentions, self.keyphrases)

    def _mark(self, anchors: Iterable[Anchor], schema: Schema, lost: bool) -> None:
        for anchor in anchors:
            try:
                marks = parse_marks(anchor.value, schema, anchor.line)
            except Flaw as flaw:
                self._source.report(flaw, UNIT)
                continue
            for mark in marks:
                self._chains.apply(mark, self._words + anchor.before, self._words + anchor.after, anchor.line, lost)
