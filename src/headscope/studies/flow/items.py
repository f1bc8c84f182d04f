"""Pairs of a noun and a later pronoun, with the same referent or not, drawn from annotated documents."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, chain
from typing import NamedTuple

import numpy as np

from headscope.core.annotation import Annotated
from headscope.core.document import Document, Mention, Word
from headscope.corpora.resolution.head_words import HeadWords
from headscope.errors import MeasureError
from headscope.stats.regression import matched

STRATA = (10, 25, 50, 100)  # distances, in words, at which a new stratum begins
Cost = Callable[[Word], int]


class Pair(NamedTuple):
    """A noun and a later pronoun, by their places in the text; `distance` is in words, 1 for neighbours."""

    noun: int
    pronoun: int
    same: bool

    @property
    def distance(self) -> int:
        """How many words after the noun the pronoun is."""
        return self.pronoun - self.noun


@dataclass(frozen=True, slots=True)
class Passage:
    """Sentences of a document that make one model input, and pairs of words in it; `document` has the whole id."""

    document: Document
    pairs: tuple[Pair, ...]


@dataclass(frozen=True, slots=True)
class Context:
    """The context of a pair: the pronoun's sentence and as many whole sentences before it as fit into `limit`.

    `cost` is the size of a word: with a model's tokenizer its pieces, else 1. Pairs in a sentence that is longer than
    the limit are omitted.
    """

    limit: int = 120
    cost: Cost | None = None


class _Candidate(NamedTuple):
    document: int
    sentence: int
    first: int  # the sentence that the text begins with
    pair: Pair  # by places in the document


def draw(
    documents: Iterable[Document],
    n: int = 500,
    context: Context | None = None,
    strata: Sequence[int] = STRATA,
    match: bool = False,
    seed: int = 0,
) -> list[Passage]:
    """About n pairs, half of them of one entity, in their left context; drawn at random and equally often from every
    stratum of distance.

    The noun is the head of its mention and the pronoun is a mention; some word between them belongs to neither
    mention. Both classes have equally many pairs in each stratum, at most as many as the rarer class has. With
    `match`, each pair of one entity has a partner of two entities at nearly the same distance (at most a tenth off),
    and pairs without a partner are omitted. There are fewer than n if the documents have fewer.
    """
    held = list(documents)
    rng = np.random.default_rng(seed)
    boxes: defaultdict[tuple[int, bool], list[_Candidate]] = defaultdict(list)
    for number, document in enumerate(held):
        for candidate in _candidates(number, document, context or Context()):
            boxes[int(np.searchsorted(strata, candidate.pair.distance, "right")), candidate.pair.same].append(candidate)
    shuffled = {key: [box[place] for place in rng.permutation(len(box))] for key, box in sorted(boxes.items())}
    numbers = range(len(strata) + 1)
    if match:
        for number in numbers:
            shuffled[number, True], shuffled[number, False] = _partners(shuffled.get((number, True), []), shuffled.get((number, False), []))
    room = [min(len(shuffled.get((number, True), [])), len(shuffled.get((number, False), []))) for number in numbers]
    quotas = _spread(n // 2, room)
    chosen = [candidate for number in numbers for same in (True, False) for candidate in shuffled.get((number, same), [])[: quotas[number]]]
    return list(_passages(chosen, held))


def alternating(documents: Iterable[Document], n: int = 500) -> list[Passage]:
    """The first n pairs of a list that alternates between one entity and two, as released: within a sentence, in corpus
    order.

    Nouns and pronouns may be anywhere in a mention; the entity is that of the lowest mention. Only pairs of one entity
    need a word between them that is outside the entity. The list ends when one class has no more pairs.
    """
    held = list(documents)
    candidates: dict[bool, list[_Candidate]] = {True: [], False: []}
    for number, document in enumerate(held):
        bounds = list(accumulate(map(len, document.sentences), initial=0))
        mention_of, inside = lowest(document), covered(document.mentions)
        for sentence, words in enumerate(document.sentences):
            for pair in _within(words.words, bounds[sentence], mention_of, inside):
                candidates[pair.same].append(_Candidate(number, sentence, sentence, pair))
        if min(map(len, candidates.values())) >= (n + 1) // 2:
            break
    turns = list(chain.from_iterable(zip(candidates[True], candidates[False], strict=False)))[:n]
    return list(_passages(turns, held))


def _within(words: Sequence[Word], start: int, mention_of: Sequence[Mention | None], inside: dict[str, set[int]]) -> Iterator[Pair]:
    nouns = [start + place for place, word in enumerate(words) if is_noun(word) and mention_of[start + place]]
    for pronoun in (start + place for place, word in enumerate(words) if is_pronoun(word)):
        later = mention_of[pronoun]
        for noun in nouns:
            earlier = mention_of[noun]
            if later is None or earlier is None or noun >= pronoun:
                continue
            same = earlier.entity == later.entity
            if not same or any(place not in inside[later.entity] for place in range(noun + 1, pronoun)):
                yield Pair(noun, pronoun, same)


def _candidates(number: int, document: Document, context: Context) -> Iterator[_Candidate]:
    """All pairs of a document whose noun is in the context of the pronoun."""
    words = document.words
    bounds = list(accumulate(map(len, document.sentences), initial=0))
    firsts = _firsts(document, context)
    heads = headed(document)
    nouns = [place for place, word in enumerate(words) if is_noun(word) and heads[place]]
    for sentence, first in enumerate(firsts):
        for pronoun in range(bounds[sentence], bounds[sentence + 1]) if first is not None else ():
            later = heads[pronoun]
            if later is None or not is_pronoun(words[pronoun]) or later.end - later.start > 1:
                continue
            for noun in nouns:
                earlier = heads[noun]
                if earlier is not None and first is not None and bounds[first] <= noun < pronoun and earlier.end < pronoun:
                    yield _Candidate(number, sentence, first, Pair(noun, pronoun, earlier.entity == later.entity))


def _firsts(document: Document, context: Context) -> list[int | None]:
    """For each sentence, the first one of the text that ends with it; None if the sentence alone does not fit."""
    costs = [sum(map(context.cost, sentence.words)) if context.cost else len(sentence) for sentence in document.sentences]
    firsts: list[int | None] = []
    for sentence, cost in enumerate(costs):
        first, used = sentence, cost
        while first and used + costs[first - 1] <= context.limit:
            first -= 1
            used += costs[first]
        firsts.append(first if cost <= context.limit else None)
    return firsts


def _partners(same: list[_Candidate], other: list[_Candidate]) -> tuple[list[_Candidate], list[_Candidate]]:
    pairs = matched([item.pair.distance for item in same], [item.pair.distance for item in other])
    return [same[first] for first, _ in pairs], [other[two] for _, two in pairs]


def _spread(wanted: int, room: Sequence[int]) -> list[int]:
    """The number of pairs of each stratum, as even as the available pairs allow."""
    shares = [0] * len(room)
    while (left := wanted - sum(shares)) and (open_ := [place for place, most in enumerate(room) if shares[place] < most]):
        for place in open_[:left]:
            shares[place] += min(max(left // len(open_), 1), room[place] - shares[place])
    return shares


def _passages(chosen: Iterable[_Candidate], documents: Sequence[Document]) -> Iterator[Passage]:
    """The texts of the chosen pairs, in corpus order: pairs with the same context share one."""
    texts: defaultdict[tuple[int, int, int], list[Pair]] = defaultdict(list)
    for candidate in chosen:
        texts[candidate.document, candidate.sentence, candidate.first].append(candidate.pair)
    for (number, sentence, first), pairs in sorted(texts.items()):
        document = documents[number]
        if not document.mentions:
            raise MeasureError(f"document {document.id} has no mentions", "Use a corpus with coreference")
        start = sum(map(len, document.sentences[:first]))
        yield Passage(
            document.part(first, sentence + 1), tuple(Pair(pair.noun - start, pair.pronoun - start, pair.same) for pair in sorted(pairs))
        )


_PERSONAL = frozenset({"PRP", "PRP$"})
_COMMON = frozenset({"NN", "NNS"})
_NAMES = frozenset({"NNP", "NNPS"})
# Penn tags of words that are PRON in Universal Dependencies but not personal pronouns: who, which, this, there, one.
_OTHER_PRONOUNS = frozenset({"WP", "WP$", "WDT", "WRB", "DT", "PDT", "EX", "NN", "NNS", "IN", "CD", "JJ"})


def is_noun(word: Word) -> bool:
    """Whether a word is a common noun (NN, NNS; NOUN)."""
    if word.upos is None:
        return word.xpos in _COMMON
    return word.upos == "NOUN" and word.xpos not in _NAMES


def is_pronoun(word: Word) -> bool:
    """Whether a word is a personal or possessive pronoun (PRP, PRP$; PRON unless a finer tag says otherwise)."""
    if word.upos is None or word.xpos in _PERSONAL:
        return word.xpos in _PERSONAL
    return word.upos == "PRON" and word.xpos not in _OTHER_PRONOUNS


def lowest(document: Document) -> list[Mention | None]:
    """For each word, the shortest mention that contains it; of equally short ones the last listed."""
    mentions: list[Mention | None] = [None] * sum(map(len, document.sentences))
    for mention in document.mentions:
        for place in range(mention.start, mention.end):
            old = mentions[place]
            if old is None or mention.end - mention.start <= old.end - old.start:
                mentions[place] = mention
    return mentions


def headed(document: Document) -> list[Mention | None]:
    """For each word, the mention whose head it is, the shortest one of several; None for all other words.

    A word in the middle of a mention says little about what the mention refers to: `kitchen` in "the door of the
    kitchen" is not the door.
    """
    whole = Annotated(document).select(range(sum(map(len, document.sentences))))
    heads = HeadWords(whole)
    mentions: list[Mention | None] = [None] * len(whole.words)
    for mention in sorted(whole.mentions, key=lambda mention: mention.start - mention.end):
        mentions[heads.of(mention).head] = mention
    return mentions


def covered(mentions: Sequence[Mention]) -> dict[str, set[int]]:
    """The places of all words of each entity's mentions."""
    covered_by: dict[str, set[int]] = {}
    for mention in mentions:
        covered_by.setdefault(mention.entity, set()).update(range(mention.start, mention.end))
    return covered_by
