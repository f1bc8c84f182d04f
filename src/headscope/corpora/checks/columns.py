"""Level 1, rows: columns that hold something, white space in its place, and ids in order."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from headscope.corpora.checks.rules import RuleViolation, rule
from headscope.corpora.readers.conllu_rows import Row
from headscope.corpora.source import natural, quoted

_EMPTY = rule("empty-column", 1, "no column is empty", "Write _ for what is not there")
_SPACE = rule("column-space", 1, "white space stands within FORM, LEMMA and MISC only, one character at a time", "Take the white space out")
_FORMAT = rule("id-format", 1, "an id is a number 1, a range 1-2 or an empty node 1.1", "Write the id without leading zeros or other signs")
_ORDER = rule("id-order", 1, "words are numbered 1, 2, 3 ...", "Number the words anew, and put a blank line between sentences")
_RANGE = rule("id-range", 1, "a range stands before its first word, and covers words of its own", "Correct the range, or move it")
_NODE = rule("id-empty-node", 1, "empty nodes n.1, n.2 ... follow word n", "Number the empty node after the word it follows")
_WORDS = rule("no-words", 1, "a sentence has words", "Give the sentence words, or take it out")

NAMES = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
_SPACED = ("FORM", "LEMMA", "MISC")
_ID = re.compile(r"[1-9][0-9]{0,8}(-[1-9][0-9]{0,8})?|(0|[1-9][0-9]{0,8})\.[1-9][0-9]{0,8}")
_ANY_SPACE = re.compile(r"\s")
_DOUBLED = re.compile(r"\s\s")


def row_problems(row: Row) -> Iterator[RuleViolation]:
    """What is wrong with the columns of a row, whatever they mean."""
    if not all(row[1:]) or _ANY_SPACE.search("".join(row[1:])):
        for name, value in zip(NAMES, row[1:], strict=True):
            yield from _column_problems(row, name, value)


def _column_problems(row: Row, name: str, value: str) -> Iterator[RuleViolation]:
    if not value:
        yield _EMPTY.at(row.line, f"{name} is empty")
    elif value[0].isspace() or value[-1].isspace():
        yield _SPACE.at(row.line, f"{name} {quoted(value)} begins or ends in white space")
    elif _DOUBLED.search(value):
        yield _SPACE.at(row.line, f"{name} {quoted(value)} has white space twice in a row")
    elif _ANY_SPACE.search(value) and (name not in _SPACED or (row.range and name != "MISC")):
        yield _SPACE.at(row.line, f"{name} {quoted(value)} has white space{' in a multi-word token' if row.range else ''}")


def id_problems(rows: Sequence[Row]) -> Iterator[RuleViolation]:
    """Where the ids of a sentence are out of order."""
    word, node, last = 0, 0, 0  # numbers of the word and empty node before, and where the range before ends
    ranged = False  # a range has been opened and waits for its first word
    for row in rows:
        if not _ID.fullmatch(row.id):
            yield _FORMAT.at(row.line, f"id {quoted(row.id)} is no number, range or empty node")
        if span := row.range:
            if span[0] != word + 1 or span[1] < span[0] or span[0] <= last or ranged:
                yield _RANGE.at(row.line, f"range {row.id} before word {word + 1}{f' and after a range up to {last}' if last else ''}")
            last, ranged = span[1], True
        elif row.node is not None:
            node += 1
            if ranged:
                yield _NODE.at(row.line, f"empty node {row.id} between a range and its first word")
            elif (row.node, natural(row.id.partition(".")[2])) != (word, node):
                yield _NODE.at(row.line, f"empty node {row.id} where {word}.{node} is expected")
        else:
            word, node, ranged = word + 1, 0, False
            if natural(row.id) != word and _ID.fullmatch(row.id):
                yield _ORDER.at(row.line, f"id {quoted(row.id)} where word {word} is expected")
    if rows and not word:
        yield _WORDS.at(rows[0].line, "a sentence without words")
    elif last > word:
        yield _RANGE.at(rows[-1].line, f"a range up to word {last} in a sentence of {word} words")
