"""The annotation of one model input, indexed by the input's words."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headscope.core.document import PASSAGE, Document, Edge, Mention, Scalar, Word
from headscope.core.slices import NO_VALUE
from headscope.core.trees import NONE, ROOT, TreeArrays

if TYPE_CHECKING:
    from jaxtyping import Int

__all__ = ["NONE", "ROOT", "Annotated", "Annotation", "Parse"]


class Parse(NamedTuple):
    """The bracketed tree of sentence number `sentence` of a document, which is its words [start, end)."""

    sentence: int
    start: int
    end: int
    tree: str


@dataclass(frozen=True)
class Annotation:
    """Some words of a document with their annotation.

    `positions` are the words' places among all words of the document and `sentence_of` the numbers of their sentences
    in it. `trees` has the words' own tree first. If a control needs them, trees of other sentences of the same length
    follow, one per draw. `mentions` are those that lie wholly in the text, by its words, sorted. `singletons` are the
    entities that the whole document, not the text alone, mentions only once; `parses` belong to the sentences that the
    text contains, wholly or in part; `subset` and `metadata` are the document's. `keywords` is true for each word that
    is part of a keyphrase; it is empty if the document has none. `slice` is the document's, in runs that are divided
    into slices. `passages` are the edges from questions to passages that lie wholly in the text, by its words.
    """

    document: str
    words: tuple[Word, ...]
    positions: tuple[int, ...]
    sentence_of: Int[np.ndarray, "word"] = field(compare=False)  # follows from the document and the positions
    trees: TreeArrays
    mentions: tuple[Mention, ...] = ()
    singletons: frozenset[str] = frozenset()
    parses: tuple[Parse, ...] = ()
    subset: str | None = None
    keywords: tuple[bool, ...] = ()
    metadata: Mapping[str, Scalar] = field(default_factory=dict, hash=False)
    slice: str = NO_VALUE
    passages: tuple[Edge, ...] = ()

    @classmethod
    def of_sentence(cls, document: str, words: tuple[Word, ...]) -> Annotation:
        """The annotation of a text that consists of one sentence."""
        size = len(words)
        return cls(document, words, tuple(range(size)), np.zeros(size, dtype=np.int32), TreeArrays.of([words], size))

    @cached_property
    def sentences(self) -> tuple[int, ...]:
        """The numbers of the words' sentences."""
        return tuple(self.sentence_of.tolist())

    @cached_property
    def heads(self) -> tuple[int, ...]:
        """The words' governors in their own tree: indices into `words`, ROOT or NONE."""
        return tuple(self.trees.heads[0].tolist())


class Annotated:
    """The annotation of a whole document as flat arrays, from which each text takes its part."""

    def __init__(
        self, document: Document, partners: Sequence[TreeArrays] = (), keywords: Sequence[bool] = (), slice: str = NO_VALUE
    ) -> None:
        """`partners` are, for each sentence, other trees that serve as a control, one per draw, each as long as the
        sentence; no tree where there is none. `keywords` is true for each word that is part of a keyphrase.
        """
        self._slice = slice
        self._keywords = keywords
        self.id = document.id
        self._words = document.words
        sizes = [len(sentence) for sentence in document.sentences]
        self._sentence_of = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        own = TreeArrays.of_sentences([sentence.words for sentence in document.sentences])
        others = TreeArrays.beside(partners)
        self._trees = TreeArrays.joined([own, others]) if len(others) else own
        self._parses: dict[int, Parse] = {}
        start = 0
        for number, sentence in enumerate(document.sentences):
            if sentence.parse is not None:
                self._parses[number] = Parse(number, start, start + len(sentence), sentence.parse)
            start += len(sentence)
        # A mention that is annotated twice counts once, and one without words does not count.
        mentions = {(mention.start, mention.end, mention.entity): mention for mention in document.mentions if mention.start < mention.end}
        self._mentions = [mentions[place] for place in sorted(mentions)]
        self._starts = [mention.start for mention in self._mentions]
        entities = Counter(mention.entity for mention in self._mentions)
        self._singletons = frozenset(entity for entity, size in entities.items() if size == 1)
        self._subset = document.subset
        self._metadata = document.metadata
        self._passages = [edge for edge in document.edges if edge.task == PASSAGE and edge.second is not None]

    def select(self, positions: Sequence[int]) -> Annotation:
        """The annotation of the words at these positions, which must be in ascending order."""
        places = np.array(positions, dtype=np.int64)
        sentence_of = self._sentence_of[places]
        mentions = tuple(self._inside(positions))
        return Annotation(
            self.id,
            self._words[positions.start : positions.stop]
            if isinstance(positions, range) and positions.step == 1
            else tuple(self._words[position] for position in positions),
            tuple(positions),
            sentence_of,
            self._trees.select(places),
            mentions,
            self._singletons.intersection(mention.entity for mention in mentions),
            tuple(self._parses[number] for number in np.unique(sentence_of).tolist() if number in self._parses) if self._parses else (),
            self._subset,
            tuple(self._keywords[position] for position in positions) if self._keywords else (),
            self._metadata,
            self._slice,
            self._asked(positions) if self._passages else (),
        )

    def _asked(self, positions: Sequence[int]) -> tuple[Edge, ...]:
        """The questions whose words are all present, together with those of their passages."""
        place = {position: index for index, position in enumerate(positions)}

        def moved(span: tuple[int, int]) -> tuple[int, int] | None:
            start, end = span
            return (place[start], place[end - 1] + 1) if all(position in place for position in range(start, end)) else None

        found = []
        for edge in self._passages:
            assert edge.second is not None
            question, passage = moved(edge.first), moved(edge.second)
            if question is not None and passage is not None:
                found.append(Edge(edge.task, edge.labels, question, passage))
        return tuple(found)

    def _inside(self, positions: Sequence[int]) -> list[Mention]:
        if not positions or not self._mentions:
            return []
        place = {position: index for index, position in enumerate(positions)}
        near = self._mentions[bisect_left(self._starts, positions[0]) : bisect_left(self._starts, positions[-1] + 1)]
        return [
            Mention(mention.entity, place[mention.start], place[mention.end - 1] + 1, mention.type)
            for mention in near
            if all(position in place for position in range(mention.start, mention.end))
        ]
