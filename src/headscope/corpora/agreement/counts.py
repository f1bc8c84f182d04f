"""What one document adds to the scores: counts under names, which add up over documents.

A share is made of `agree` and `n`, a kappa of these and the labels used on each `side`, precision and recall of
`CoreferenceParts`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Sequence, Set

from headscope.core.document import Document, Mention, Word
from headscope.corpora.agreement.coreference import CoreferenceParts, b_cubed, ceaf, entities, links, muc
from headscope.corpora.agreement.pairs import SentencePair
from headscope.corpora.mentions import antecedents
from headscope.corpora.stats import is_punctuation

Key = tuple[str, ...]
Counts = defaultdict[Key, float]
COLUMNS = ("lemma", "upos", "xpos")
RELATION = "relation"
Span = tuple[int, int]


def counted(pair: SentencePair) -> Counts:
    """The counts of one document."""
    counts: Counts = defaultdict(float)
    for word, other in zip(pair.first.words, pair.second.words, strict=True):
        for column in COLUMNS:
            _compare(counts, column, getattr(word, column), getattr(other, column))
        _compare(counts, RELATION, word.relation, other.relation)
        _tree(counts, word, other)
    _mentions(counts, pair.first.mentions, pair.second.mentions)
    _keyphrases(counts, pair.first, pair.second)
    return counts


def spans(mentions: Sequence[Mention]) -> dict[Span, Mention]:
    """Mentions by the words they take up; of several over the same words, the first."""
    found: dict[Span, Mention] = {}
    for mention in mentions:
        found.setdefault((mention.start, mention.end), mention)
    return found


def nearest(mentions: Sequence[Mention]) -> dict[Span, Span | None]:
    """For each mention the words of its antecedent, None if it has none; both as in `spans`."""
    found: dict[Span, Span | None] = {}
    for mention, before in antecedents(mentions):
        found.setdefault((mention.start, mention.end), (before.start, before.end) if before else None)
    return found


def _compare(counts: Counts, name: str, value: str | None, other: str | None) -> None:
    """Count a label given on both sides; one that is given on one side alone is counted as that, and not compared."""
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
    given = entities(first), entities(second)
    chains = entities(first, singletons=False), entities(second, singletons=False)
    _overlap(counts, "mentions", *(set().union(*side) for side in given))
    _parts(counts, "muc", muc(*given))
    _parts(counts, "links", links(*given))
    for suffix, sides in (("", given), ("_chains", chains)):
        _parts(counts, f"b_cubed{suffix}", b_cubed(*sides))
        _parts(counts, f"ceaf{suffix}", ceaf(*sides))
    spans_first, spans_second = spans(first), spans(second)
    nearest_first, nearest_second = nearest(first), nearest(second)
    for span in spans_first.keys() & spans_second.keys():
        _compare(counts, "type", spans_first[span].type, spans_second[span].type)
        if nearest_first[span] or nearest_second[span]:
            _share(counts, "antecedent", nearest_first[span] == nearest_second[span])


def _keyphrases(counts: Counts, first: Document, second: Document) -> None:
    _overlap(counts, "keyphrases", *({phrase.casefold() for phrase in document.keyphrases} for document in (first, second)))


def _overlap(counts: Counts, name: str, first: Set[Hashable], second: Set[Hashable]) -> None:
    common = len(first & second)
    _parts(counts, name, CoreferenceParts(common, len(first), common, len(second)))
