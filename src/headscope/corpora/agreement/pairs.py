"""Two annotations of the same text, document by document; whatever keeps them from being the same text is an error."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from typing import NamedTuple

from headscope.core.document import Document, Sentence
from headscope.core.tally import Tally
from headscope.corpora.corpus import Corpus
from headscope.corpora.source import quoted
from headscope.errors import HeadscopeError

_SAME = "Two annotations can be compared only over the same documents, sentences and words"
_NAMED = 5


class SentencePair(NamedTuple):
    """A document in both annotations, and the file that holds the first."""

    file: str
    first: Document
    second: Document


def pairs(first: Corpus, second: Corpus) -> Iterator[SentencePair]:
    """The documents of both, matched by id, whatever their order; in the same order, one of each is held at a time."""
    waiting: tuple[dict[str, tuple[str, Document]], dict[str, tuple[str, Document]]] = ({}, {})
    for found in zip_longest(_located(first), _located(second)):
        for side, here in enumerate(found):
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
    """The documents with the names of their files; an id in two files would leave open which is meant."""
    if not corpus.paths:
        yield from (("", document) for document in corpus)
    corpus.skipped = Tally()
    seen: dict[str, str] = {}
    for path in corpus.paths:
        for document in (part := Corpus((path,), corpus.format, corpus.on_error)):
            if document.id in seen:
                problem = f"document {quoted(document.id)} is in {seen[document.id]} and again in {path.name}"
                raise HeadscopeError(problem, "Give every document a # newdoc id of its own")
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
