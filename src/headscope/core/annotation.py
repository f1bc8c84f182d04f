"""What is annotated on one model input, counted by the input's own words."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from headscope.core.document import Document, Mention, Word

ROOT, NONE = -1, -2  # in place of a governor: the word is the root; it has none, or one that this text does not hold


class Parse(NamedTuple):
    """The bracketed tree of sentence number `sentence` of a document, which is its words [start, end)."""

    sentence: int
    start: int
    end: int
    tree: str


@dataclass(frozen=True, slots=True)
class Annotation:
    """Some words of a document with what is said about them.

    `positions` are the words' places among all words of the document and `sentences` the numbers of their sentences
    in it. `heads` are indices into `words`, ROOT or NONE; `mentions` are those that lie wholly in the text, by its
    words, sorted. `singletons` are the entities that the whole document, not the text alone, mentions only once;
    `parses` belong to sentences that stand in the text, be it in part; `subset` is the document's. `others` and
    `other_heads`, where a control asks for them, are what the trees of other sentences, laid over each one, say of
    its words: one row per draw (None and NONE where no tree says anything). `keywords` says of each word whether it
    is part of a keyphrase; it is empty where the document has none.
    """

    document: str
    words: tuple[Word, ...]
    positions: tuple[int, ...]
    sentences: tuple[int, ...]
    heads: tuple[int, ...]
    mentions: tuple[Mention, ...] = ()
    singletons: frozenset[str] = frozenset()
    parses: tuple[Parse, ...] = ()
    subset: str | None = None
    others: tuple[tuple[Word | None, ...], ...] = ()
    other_heads: tuple[tuple[int, ...], ...] = ()
    keywords: tuple[bool, ...] = ()

    @classmethod
    def of_sentence(cls, document: str, words: tuple[Word, ...]) -> Annotation:
        """The annotation of words that are one sentence and all there is."""
        places = tuple(range(len(words)))
        return cls(document, words, places, (0,) * len(words), tuple(_governor(word, 0, len(words)) for word in words))


class Annotated:
    """A document laid out flat, from which texts take their part."""

    def __init__(self, document: Document, partners: Sequence[Sequence[Sequence[Word | None]]] = (), keywords: Sequence[bool] = ()) -> None:
        """`partners` are, for each sentence, the words of other trees that serve as a control, one tree per draw,
        each as long as the sentence; none where there is no such tree. `keywords` says of each word whether it is
        part of a keyphrase.
        """
        self._keywords = keywords
        self.id = document.id
        self._words = document.words
        self._sentences: list[int] = []
        self._heads: list[int] = []
        self._parses: dict[int, Parse] = {}
        for number, sentence in enumerate(document.sentences):
            start = len(self._heads)
            self._heads += [_governor(word, start, len(sentence)) for word in sentence.words]
            self._sentences += [number] * len(sentence)
            if sentence.parse is not None:
                self._parses[number] = Parse(number, start, start + len(sentence), sentence.parse)
        # A mention annotated twice is one, and one of no words is none.
        mentions = {(mention.start, mention.end, mention.entity): mention for mention in document.mentions if mention.start < mention.end}
        self._mentions = [mentions[place] for place in sorted(mentions)]
        self._starts = [mention.start for mention in self._mentions]
        sizes = Counter(mention.entity for mention in self._mentions)
        self._singletons = frozenset(entity for entity, size in sizes.items() if size == 1)
        self._subset = document.subset
        draws = max(map(len, partners), default=0)
        self._others: list[list[Word | None]] = [[] for _ in range(draws)]
        self._other_heads: list[list[int]] = [[] for _ in range(draws)]
        start = 0
        for sentence, trees in zip(document.sentences, partners, strict=False):
            size = len(sentence)
            for draw in range(draws):
                tree = trees[draw] if trees else (None,) * size
                self._others[draw] += tree
                self._other_heads[draw] += [NONE if word is None else _governor(word, start, size) for word in tree]
            start += size

    def select(self, positions: Sequence[int]) -> Annotation:
        """The annotation of the words at these places, which must ascend."""
        place = {position: index for index, position in enumerate(positions)}
        heads = _renumbered(self._heads, positions, place)
        sentences = tuple(self._sentences[position] for position in positions)
        return Annotation(
            self.id,
            tuple(self._words[position] for position in positions),
            tuple(positions),
            sentences,
            heads,
            mentions := tuple(self._inside(positions, place)),
            self._singletons.intersection(mention.entity for mention in mentions),
            tuple(self._parses[number] for number in dict.fromkeys(sentences) if number in self._parses),
            self._subset,
            tuple(tuple(words[position] for position in positions) for words in self._others),
            tuple(_renumbered(heads, positions, place) for heads in self._other_heads),
            tuple(self._keywords[position] for position in positions) if self._keywords else (),
        )

    def _inside(self, positions: Sequence[int], place: dict[int, int]) -> list[Mention]:
        if not positions:
            return []
        near = self._mentions[bisect_left(self._starts, positions[0]) : bisect_left(self._starts, positions[-1] + 1)]
        return [
            Mention(mention.entity, place[mention.start], place[mention.end - 1] + 1, mention.type)
            for mention in near
            if all(position in place for position in range(mention.start, mention.end))
        ]


def _renumbered(heads: Sequence[int], positions: Sequence[int], place: dict[int, int]) -> tuple[int, ...]:
    """Heads by document word as heads by the text's words."""
    return tuple(place.get(head, NONE) if (head := heads[position]) >= 0 else head for position in positions)


def _governor(word: Word, start: int, size: int) -> int:
    if word.head is None or not 0 <= word.head <= size:
        return NONE
    return start + word.head - 1 if word.head else ROOT
