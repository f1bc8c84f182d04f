"""All places where two annotations differ, for adjudication."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field

from headscope.core.document import Document, Mention, Sentence
from headscope.corpora.agreement.counts import COLUMNS, RELATION, SentencePair, Span, nearest, spans

Values = dict[str, str | int | None]
_COLUMNS = (*COLUMNS, "head", RELATION)


@dataclass(frozen=True)
class AnnotationDifference:
    """A word or mention with the differing labels of each annotation; {} if one has no such mention.

    `sentence` is its id or its number, `word` the number of the (first) word in it, `last` that of a mention's last
    word.
    """

    file: str
    document: str
    sentence: str
    word: int
    last: int | None
    text: str
    first: Values = field(default_factory=dict)
    second: Values = field(default_factory=dict)


def differences(pair: SentencePair) -> list[AnnotationDifference]:
    """The differing words of a document in order, then its differing mentions."""
    return [*_words(pair), *_mentions(pair)]


def _words(pair: SentencePair) -> Iterator[AnnotationDifference]:
    # A column that is missing from a whole document on one side is not a difference at each of its words.
    annotated = [
        {column for column in _COLUMNS for word in side.words if getattr(word, column) is not None} for side in (pair.first, pair.second)
    ]
    columns = [column for column in _COLUMNS if column in annotated[0] & annotated[1]]
    for number, (sentence, twin) in enumerate(zip(pair.first.sentences, pair.second.sentences, strict=True), start=1):
        for position, (word, other) in enumerate(zip(sentence.words, twin.words, strict=True), start=1):
            first: Values = {}
            second: Values = {}
            for column in columns:
                if (value := getattr(word, column)) != (counterpart := getattr(other, column)):
                    first[column], second[column] = value, counterpart
            if "head" in first:
                # With the form, since a reader would have to count words to find a number.
                first["to"], second["to"] = _form(sentence, word.head), _form(sentence, other.head)
            if first:
                yield AnnotationDifference(pair.file, pair.first.id, sentence.id or str(number), position, None, word.form, first, second)


def _form(sentence: Sentence, head: int | None) -> str | None:
    return sentence.words[head - 1].form if head else None


def _mentions(pair: SentencePair) -> Iterator[AnnotationDifference]:
    first, second = spans(pair.first.mentions), spans(pair.second.mentions)
    before_first, before_second = nearest(pair.first.mentions), nearest(pair.second.mentions)
    place = _Places(pair)
    for span in sorted(first.keys() | second.keys()):
        if span not in second:
            yield place.difference(span, _described(first[span]), {})
        elif span not in first:
            yield place.difference(span, {}, _described(second[span]))
        else:
            values: tuple[Values, Values] = ({}, {})
            if first[span].type != second[span].type:
                values[0]["type"], values[1]["type"] = first[span].type, second[span].type
            if before_first[span] != before_second[span]:
                values[0]["antecedent"], values[1]["antecedent"] = place.name(before_first[span]), place.name(before_second[span])
            if values[0]:
                yield place.difference(span, *values)


def _described(mention: Mention) -> Values:
    return {"entity": mention.entity, "type": mention.type}


class _Places:
    def __init__(self, pair: SentencePair) -> None:
        self._file = pair.file
        self._document: Document = pair.first
        self._words = pair.first.words
        self._starts = [0]
        for sentence in pair.first.sentences:
            self._starts.append(self._starts[-1] + len(sentence))

    def difference(self, span: Span, first: Values, second: Values) -> AnnotationDifference:
        """The difference at a mention."""
        sentence, word = self._find(span[0])
        return AnnotationDifference(
            self._file, self._document.id, sentence, word, word + span[1] - span[0] - 1, self._text(span), first, second
        )

    def name(self, span: Span | None) -> str | None:
        """An antecedent by its words and where they begin."""
        if span is None:
            return None
        sentence, word = self._find(span[0])
        return f"{self._text(span)} ({sentence}, word {word})"

    def _find(self, position: int) -> tuple[str, int]:
        number = bisect_right(self._starts, position) - 1
        return self._document.sentences[number].id or str(number + 1), position - self._starts[number] + 1

    def _text(self, span: Span) -> str:
        return Sentence(self._words[span[0] : span[1]]).text
