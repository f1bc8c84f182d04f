"""Coreference brackets, as CoNLL-U writes them in MISC and CoNLL-2012 in its last column, and the mentions they
delimit.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

from headscope.core.document import Mention
from headscope.corpora.source import Flaw, Source, quoted

_BRACKET = re.compile(r"(\()?([^()]+)(\))?")
_PART = re.compile(r"\[\d+/\d+\]$")
_BALANCE = "Balance the brackets of the document"
UNIT = "coreference brackets"
MOST_OPEN = 100  # open mentions at a time: annotated texts have about ten


class Mark(NamedTuple):
    """One bracket, or both for a mention of one word."""

    entity: str
    type: str | None
    opens: bool
    closes: bool


@dataclass(frozen=True)
class Schema:
    """The position of the entity's id and type in a bracket, e.g.
    `GRP-etype-infstat-salience-centering-minspan-link-identity`.
    """

    fields: int = 2
    id: int = 0
    type: int | None = 1

    @classmethod
    def parse(cls, declaration: str) -> Schema:
        """Read the value of `# global.Entity`; if no field is called GRP or eid, the id comes first."""
        names = declaration.split("-")
        identifier = next((i for i, name in enumerate(names) if name in ("GRP", "eid")), 0)
        kind = next((i for i, name in enumerate(names) if name in ("etype", "entity")), None)
        return cls(len(names), identifier, kind)

    def mark(self, content: str, opens: bool, closes: bool) -> Mark:
        """Interpret the text between two parentheses; a closing bracket may contain only the id."""
        values = content.split("-", self.fields - 1)
        entity = values[self.id] if self.id < len(values) else values[0]
        kind = values[self.type] if opens and self.type is not None and self.type < len(values) else None
        return Mark(entity, kind or None, opens, closes)


def parse_marks(value: str, schema: Schema, line: int) -> list[Mark]:
    """The brackets at one word in the order written, e.g. `(3-person(4-place)` opens 3, and opens and closes 4."""
    marks, end = [], 0
    for match in _BRACKET.finditer(value):
        opens, closes = match[1] is not None, match[3] is not None
        if match.start() != end or not (opens or closes):
            break
        marks.append(schema.mark(match[2], opens, closes))
        end = match.end()
    if end != len(value) or not value:
        remedy = "Write (id for an opening and id) for a closing bracket"
        raise Flaw(line, "malformed bracket", f"coreference bracket {quoted(value)} cannot be read", remedy)
    return marks


def too_many_open(entity: str) -> str:
    """The problem of one more opening bracket when too many mentions are open."""
    return f"the coreference bracket of entity {quoted(entity)} opens while {MOST_OPEN} mentions are open"


@dataclass
class _Opened:
    start: int
    type: str | None
    line: int
    lost: bool


class Chains:
    """The mentions of one document, collected bracket by bracket; brackets may nest, cross, and span sentences."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._open: dict[str, list[_Opened]] = {}
        self._depth = 0
        self._mentions: list[Mention] = []

    def apply(self, mark: Mark, before: int, after: int, line: int, lost: bool = False) -> None:
        """Process a bracket at a word with `before` words before it and `after` words up to its end (equal for an empty
        node).
        """
        if mark.opens and self._depth == MOST_OPEN:
            self._source.report(Flaw(line, "too many open", too_many_open(mark.entity), _BALANCE), UNIT)
            return
        if mark.opens:
            self._depth += 1
            self._open.setdefault(mark.entity, []).append(_Opened(before, mark.type, line, lost))
        if mark.closes:
            self._close(mark.entity, after, line)

    def lose(self) -> None:
        """Note that a sentence was skipped here: mentions that are open now touch it."""
        for stack in self._open.values():
            for opened in stack:
                opened.lost = True

    def finish(self) -> tuple[Mention, ...]:
        """The mentions in text order; brackets that are still open are reported."""
        for entity, stack in self._open.items():
            for opened in stack:
                if opened.lost:
                    self._source.note("mentions skipped: they touch a skipped sentence", opened.line)
                else:
                    problem = f"the coreference bracket of entity {quoted(entity)} is still open at the end of the document"
                    self._source.report(Flaw(opened.line, "opened but never closed", problem, _BALANCE), UNIT)
        return tuple(sorted(self._mentions, key=lambda mention: (mention.start, mention.end, mention.entity)))

    def _close(self, entity: str, end: int, line: int) -> None:
        stack = self._open.get(entity)
        if not stack:
            problem = f"the coreference bracket of entity {quoted(entity)} is closed but was not opened"
            self._source.report(Flaw(line, "closed but never opened", problem, _BALANCE), UNIT)
            return
        # Mentions of one chain can be nested: the innermost closes first.
        opened = stack.pop()
        self._depth -= 1
        if opened.lost:
            self._source.note("mentions skipped: they touch a skipped sentence", opened.line)
        elif _PART.search(entity):
            # e12[1/2]: a mention in pieces has no single span, and its pieces are not separate mentions.
            self._source.note("parts of discontinuous mentions skipped", opened.line)
        elif opened.start == end:
            self._source.note("mentions skipped: they contain only empty nodes", opened.line)
        else:
            self._mentions.append(Mention(entity, opened.start, end, opened.type))
