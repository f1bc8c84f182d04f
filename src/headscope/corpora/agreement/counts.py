"""Pairs of sentences from two annotations, and the counts of each pair."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence, Set
from itertools import zip_longest
from typing import NamedTuple

from headscope.core.document import Document, Mention, Sentence, Word
from headscope.core.tally import Tally
from headscope.corpora.agreement.coreference import CoreferenceParts, b_cubed, ceaf, entities, links, muc
from headscope.corpora.corpus import Corpus
from headscope.corpora.resolution.mentions import antecedents
from headscope.corpora.source import quoted
from headscope.corpora.stats import is_punctuation
from headscope.errors import HeadscopeError

_SAME = "Two annotations can be compared only over the same documents, sentences and words"
_NAMED = 5
Key = tuple[str, ...]
Counts = defaultdict[Key, float]
COLUMNS = ("lemma", "upos", "xpos")
RELATION = "relation"
Span = tuple[int, int]


class SentencePair(NamedTuple):
    """A document in both annotations, and the file that contains the first."""

    file: str
    first: Document
    second: Document


def pairs(first: Corpus, second: Corpus) -> Iterator[SentencePair]:
    """The documents of both annotations, matched by id in any order; if the order is the same, only one of each is held
    at a time.
    """
    waiting: tuple[dict[str, tuple[str, Document]], dict[str, tuple[str, Document]]] = ({}, {})
    for located in zip_longest(_located(first), _located(second)):
        for side, here in enumerate(located):
            if here is None:
                continue
            id = here[1].id
            if id not in waiting[1 - side]:
                waiting[side][id] = here
                continue
            there = waiting[1 - side].pop(id)
            left, right = (here, there) if side == 0 else (there, here)
            _require_same_text(left[1], right[1])
            yield SentencePair(left[0], left[1], right[1])
    if any(waiting):
        raise HeadscopeError("; ".join(_missing(name, ids) for name, ids in zip(("first", "second"), waiting, strict=True) if ids), _SAME)


def _located(corpus: Corpus) -> Iterator[tuple[str, Document]]:
    """The documents with the names of their files; an id that occurs in two files is an error, since it is
    ambiguous.
    """
    if not corpus.paths:
        yield from (("", document) for document in corpus)
    corpus.skipped = Tally()
    seen: dict[str, str] = {}
    for path in corpus.paths:
        for document in (part := Corpus((path,), corpus.format, corpus.on_error)):
            if document.id in seen:
                problem = f"document {quoted(document.id)} is in {seen[document.id]} and again in {path.name}"
                raise HeadscopeError(problem, "Give every document a unique # newdoc id")
            seen[document.id] = path.name
            yield path.name, document
        corpus.skipped.update(part.skipped)


def _missing(side: str, ids: dict[str, tuple[str, Document]]) -> str:
    names = ", ".join(list(ids)[:_NAMED]) + (f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else "")
    return f"only the {side} annotation has {'document' if len(ids) == 1 else 'documents'} {names}"


def _require_same_text(first: Document, second: Document) -> None:
    for number, (a, b) in enumerate(zip_longest(first.sentences, second.sentences), start=1):
        if a is None or b is None:
            side, rest = ("first", a) if b is None else ("second", b)
            problem = f"document {first.id}: only the {side} annotation has sentence {_name(rest, number)}"
            raise HeadscopeError(problem, _SAME)
        if a.id and b.id and a.id != b.id:
            problem = f"document {first.id}: sentence {number} is {a.id} in the first annotation and {b.id} in the second"
            raise HeadscopeError(problem, _SAME)
        for position, (word, other) in enumerate(zip_longest(a.words, b.words), start=1):
            if word is None or other is None or word.form != other.form:
                forms = ["missing" if w is None else quoted(w.form) for w in (word, other)]
                problem = (
                    f"document {first.id}, sentence {_name(a, number)}: "
                    f"word {position} is {forms[0]} in the first annotation and {forms[1]} in the second"
                )
                raise HeadscopeError(problem, _SAME)


def _name(sentence: Sentence, number: int) -> str:
    return sentence.id or f"number {number}"


def counted(pair: SentencePair) -> Counts:
    """The counts of one document."""
    counts: Counts = defaultdict(float)
    for word, other in zip(pair.first.words, pair.second.words, strict=True):
        for column in COLUMNS:
            _compare(counts, column, getattr(word, column), getattr(other, column))
        _compare(counts, RELATION, word.relation, other.relation)
        _tree(counts, word, other)
    _mentions(counts, pair.first.mentions, pair.second.mentions)
    _overlap(counts, "keyphrases", *({phrase.casefold() for phrase in side.keyphrases} for side in (pair.first, pair.second)))
    return counts


def spans(mentions: Sequence[Mention]) -> dict[Span, Mention]:
    """Mentions by the words that they cover; of several over the same words, the first."""
    mention_at: dict[Span, Mention] = {}
    for mention in mentions:
        mention_at.setdefault((mention.start, mention.end), mention)
    return mention_at


def nearest(mentions: Sequence[Mention]) -> dict[Span, Span | None]:
    """For each mention the words of its antecedent, None if it has none; both as in `spans`."""
    antecedent_of: dict[Span, Span | None] = {}
    for mention, before in antecedents(mentions):
        antecedent_of.setdefault((mention.start, mention.end), (before.start, before.end) if before else None)
    return antecedent_of


def _compare(counts: Counts, name: str, value: str | None, other: str | None) -> None:
    """Count a label that both sides give. A label that only one side gives is counted separately and not compared."""
    if value is None or other is None:
        counts[name, "alone"] += value is not other
        return
    _share(counts, name, value == other)
    counts[name, "first", value] += 1
    counts[name, "second", other] += 1


def _share(counts: Counts, name: str, agree: bool) -> None:
    counts[name, "n"] += 1
    counts[name, "agree"] += agree


def _parts(counts: Counts, name: str, parts: CoreferenceParts) -> None:
    for part, value in parts._asdict().items():
        counts[name, part] += value


def _tree(counts: Counts, word: Word, other: Word) -> None:
    if word.head is None or other.head is None:
        counts["head", "alone"] += word.head is not other.head
        return
    attached = word.head == other.head
    agreements = {"uas": attached}
    if word.relation is not None and other.relation is not None:
        labelled = attached and word.relation == other.relation
        agreements |= {"las": labelled, "las_main": attached and _main(word.relation) == _main(other.relation)}
        _relation(counts, word.relation, "first", "recalled" if labelled else None)
        _relation(counts, other.relation, "second", "precise" if labelled else None)
    for name, agree in agreements.items():
        _share(counts, name, agree)
        if not (is_punctuation(word) and is_punctuation(other)):
            _share(counts, f"{name}_nopunct", agree)


def _relation(counts: Counts, label: str, side: str, hit: str | None) -> None:
    counts[f"{RELATION} {label}", side] += 1
    if hit:
        counts[f"{RELATION} {label}", hit] += 1


def _main(relation: str) -> str:
    return relation.partition(":")[0]


def _mentions(counts: Counts, first: Sequence[Mention], second: Sequence[Mention]) -> None:
    everything = entities(first), entities(second)
    chains = entities(first, singletons=False), entities(second, singletons=False)
    _overlap(counts, "mentions", *(set().union(*side) for side in everything))
    _parts(counts, "muc", muc(*everything))
    _parts(counts, "links", links(*everything))
    for suffix, sides in (("", everything), ("_chains", chains)):
        _parts(counts, f"b_cubed{suffix}", b_cubed(*sides))
        _parts(counts, f"ceaf{suffix}", ceaf(*sides))
    spans_first, spans_second = spans(first), spans(second)
    nearest_first, nearest_second = nearest(first), nearest(second)
    for span in spans_first.keys() & spans_second.keys():
        _compare(counts, "type", spans_first[span].type, spans_second[span].type)
        if nearest_first[span] or nearest_second[span]:
            _share(counts, "antecedent", nearest_first[span] == nearest_second[span])


def _overlap(counts: Counts, name: str, first: Set[Hashable], second: Set[Hashable]) -> None:
    common = len(first & second)
    _parts(counts, name, CoreferenceParts(common, len(first), common, len(second)))
