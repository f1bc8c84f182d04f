"""Coreference brackets, in MISC as `Entity=`: balance and nesting at level 2, mentions and heads at level 3."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from headscope.corpora.checks.rules import RuleViolation, rule
from headscope.corpora.checks.sentence import CheckedNode, CheckedSentence
from headscope.corpora.readers.brackets import MOST_OPEN, Mark, Schema, parse_marks, too_many_open
from headscope.corpora.readers.conllu_rows import Row
from headscope.corpora.source import Flaw, natural, quoted

_FORM = rule("entity-format", 2, "brackets open as (id-fields and close as id)", "Write the brackets as in (1-person(2-place)1)")
_DECLARED = rule(
    "entity-declared", 2, "# global.Entity names the fields of the brackets", "Add # global.Entity = GRP-etype, or your fields"
)
_PLACE = rule("entity-place", 2, "brackets are at words and empty nodes", "Move Entity= from the multi-word token to its words")
_BALANCE = rule("entity-balance", 2, "every bracket is opened and closed in the same document", "Balance the brackets of the document")
_CROSSING = rule("entity-crossing", 2, "mentions lie side by side or inside each other", "Close the inner mention before the outer one")
_DEPTH = rule("entity-depth", 2, f"at most {MOST_OPEN} mentions are open at a time", "Close the brackets that were opened before")
_TYPE = rule("entity-type", 2, "all mentions of an entity have the same type", "Correct a type, or split the entity in two")
_MINSPAN = rule("mention-minspan", 2, "minspan, or head, counts words of the mention", "Number the words of the mention from 1")
_SPAN = rule("mention-span", 3, "no two mentions have the same words", "Join the two entities, or correct a bracket")
_SENTENCE = rule("mention-sentence", 3, "a mention ends in its sentence", "Close the bracket in the sentence where it opens", note=True)
_HEAD = rule("mention-head", 3, "one word of a mention is the head of all others", "Correct the bracket or the attachment", note=True)

_PART = re.compile(r"\[\d+/\d+\]$")  # of a mention in pieces, as in e12[1/2]
_NAMED = 5  # mentions in a message
_COUNTING = ("minspan", "head")  # the fields of GUM and of CorefUD that count the words of a mention


@dataclass
class _Mention:
    entity: str
    line: int
    counted: str | None  # the field that counts words
    start: int  # place among the nodes of the sentence, as is `end`
    end: int = 0
    within: bool = True  # its sentence


@dataclass
class Mentions:
    """The mentions of one document after another."""

    _schema: Schema | None = None
    _counting: Schema | None = None  # reads the field that counts words in the place of the type
    _undeclared: bool = False
    _open: list[_Mention] = field(default_factory=list)
    _judged: bool = True  # whether the brackets of this document can still be matched: after too many open ones they cannot
    _types: dict[str, tuple[str, int]] = field(default_factory=dict)

    def sentence(self, sentence: CheckedSentence, tree: Sequence[CheckedNode]) -> Iterator[RuleViolation]:
        """Process a sentence, whose `tree` is empty if it is invalid. Return the problems of its brackets."""
        if sentence.new_document:
            yield from self.finish()
        for comment in sentence.comments("global.Entity"):
            self._declare(comment.value)
        for mention in self._open:
            if mention.within:
                mention.within = False
                yield _SENTENCE.at(mention.line, f"a mention of entity {quoted(mention.entity)} continues in the next sentence")
        closed: list[_Mention] = []
        place = 0  # of the next node
        for row in sentence.rows:
            if row.entity is not None and self._judged:
                yield from self._row(row, row.entity, place, closed)
            place += not row.range
        yield from _mention_problems(closed, sentence, tree)

    def finish(self) -> Iterator[RuleViolation]:
        """The problems at the end of a document."""
        for mention in self._open:
            yield _BALANCE.at(mention.line, f"the bracket of entity {quoted(mention.entity)} is still open at the end of the document")
        self._open, self._types, self._judged = [], {}, True

    def _declare(self, fields: str) -> None:
        self._schema = Schema.parse(fields)
        counting = next((i for i, name in enumerate(fields.split("-")) if name in _COUNTING), None)
        self._counting = replace(self._schema, type=counting)

    def _row(self, row: Row, brackets: str, place: int, closed: list[_Mention]) -> Iterator[RuleViolation]:
        if self._schema is None and not self._undeclared:
            self._undeclared = True
            yield _DECLARED.at(row.line, f"brackets {quoted(brackets)} without # global.Entity")
        if row.range:
            yield _PLACE.at(row.line, f"brackets {quoted(brackets)} at the multi-word token {row.id}")
        schema = self._schema or Schema()
        try:
            marks = parse_marks(brackets, schema, row.line)
            counted = parse_marks(brackets, self._counting or replace(schema, type=None), row.line)
        except Flaw as flaw:
            yield _FORM.at(flaw.line, flaw.problem)
            return
        for mark, count in zip(marks, counted, strict=True):
            if mark.opens and len(self._open) == MOST_OPEN:
                yield _DEPTH.at(row.line, f"{too_many_open(mark.entity)}; the other brackets of the document are not checked")
                self._open, self._judged = [], False
                return
            if mark.opens:
                self._open.append(_Mention(mark.entity, row.line, count.type, place))
                yield from self._type(mark, row.line)
            if mark.closes:
                yield from self._close(mark, row.line, place, closed)

    def _type(self, mark: Mark, line: int) -> Iterator[RuleViolation]:
        entity, type = _PART.sub("", mark.entity), mark.type or ""
        first, before = self._types.setdefault(entity, (type, line))
        if type != first:
            yield _TYPE.at(line, f"entity {quoted(entity)} is {quoted(type)} here and {quoted(first)} at line {before}")

    def _close(self, mark: Mark, line: int, place: int, closed: list[_Mention]) -> Iterator[RuleViolation]:
        # Mentions of one chain can be nested: the innermost closes first.
        opened = next((i for i in reversed(range(len(self._open))) if self._open[i].entity == mark.entity), None)
        if opened is None:
            yield _BALANCE.at(line, f"the bracket of entity {quoted(mark.entity)} is closed but was not opened")
            return
        mention = self._open.pop(opened)
        if crossed := self._open[opened:]:
            others = ", ".join(f"{quoted(other.entity)} of line {other.line}" for other in crossed[:_NAMED])
            others += f" and {len(crossed) - _NAMED} more" if len(crossed) > _NAMED else ""
            yield _CROSSING.at(line, f"entity {quoted(mark.entity)} of line {mention.line} closes before {others}")
        mention.end = place
        if mention.within and not _PART.search(mark.entity):
            closed.append(mention)


def _mention_problems(mentions: Sequence[_Mention], sentence: CheckedSentence, tree: Sequence[CheckedNode]) -> Iterator[RuleViolation]:
    spans: dict[tuple[int, int], str] = {}
    for mention in mentions:
        span = sentence.nodes[mention.start : mention.end + 1]
        words = " ".join(row.form for row in span)
        numbers = [natural(number) for number in mention.counted.split(",")] if mention.counted else []
        if not all(number and number <= len(span) for number in numbers):
            yield _MINSPAN.at(mention.line, f"{quoted(mention.counted)} counts words of {quoted(words)}, which has {len(span)}")
        other = spans.setdefault((mention.start, mention.end), mention.entity)
        if other != mention.entity:
            yield _SPAN.at(mention.line, f"{quoted(words)} is a mention of both {quoted(other)} and {quoted(mention.entity)}")
        if tree and len(heads := _heads([tree[int(row.id) - 1] for row in span if row.node is None])) > 1:
            shown = " and ".join(str(node) for node in heads)
            yield _HEAD.at(mention.line, f"{len(heads)} words of {quoted(words)} depend on words outside: {shown}")


def _heads(span: Sequence[CheckedNode]) -> list[CheckedNode]:
    """The words that do not depend on any of the others, without punctuation."""
    return [node for node in span if node.relation != "punct" and not span[0].number <= node.head <= span[-1].number]
