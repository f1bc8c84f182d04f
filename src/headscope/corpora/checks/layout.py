"""Level 1: the structure of a file (comments, rows, blank lines) and of rows (columns, ids)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from headscope.corpora.checks.rules import RuleViolation, rule
from headscope.corpora.files import Line, opened
from headscope.corpora.readers.blocks import LineBlock
from headscope.corpora.readers.conllu_rows import Row, parse_row
from headscope.corpora.source import Flaw, natural, quoted

FILE = rule("unreadable-file", 1, "the file can be read and is not empty", "Copy or download the file again")
FORMAT = rule("not-conllu", 1, "a file has rows of ten columns", "Name a CoNLL-U or CoNLL-2012 file; other formats have no validator")
PARTS = rule("conll2012", 1, "the documents of a CoNLL-2012 file are complete and can be read", "Correct the document, or copy it again")
_MARK = rule("byte-order-mark", 1, "a file begins with its first comment or row", "Save the file as UTF-8 without a byte order mark")
_LINE_END = rule("line-end", 1, "lines end in a line feed alone", "Save the file with Unix line ends")
_UTF8 = rule("utf8", 1, "all bytes are UTF-8", "Save the file as UTF-8")
_NFC = rule("unicode-nfc", 1, "characters are composed (Unicode NFC)", "Normalise the file to NFC")
_STRAY = rule("stray-blank-line", 1, "one blank line follows a sentence, and there is none elsewhere", "Remove the blank line")
_SPACES = rule("blank-line-spaces", 1, "blank lines are empty", "Remove the white space")
_LAST = rule("final-blank-line", 1, "a blank line follows the last sentence too", "End the file with a blank line")
_COMMENT = rule("comment-place", 1, "comments come before the rows of a sentence", "Move the comment up before the rows")
_TEXT_END = rule("text-end", 2, "# text does not end in white space", "Remove the white space")
_COLUMNS = rule("columns", 1, "a row has ten columns", "Separate ten columns by tabs")
_EMPTY = rule("empty-column", 1, "no column is empty", "Write _ for a missing value")
_SPACE = rule("column-space", 1, "only FORM, LEMMA and MISC contain white space, one character at a time", "Remove the white space")
_FORMAT = rule("id-format", 1, "an id is a number 1, a range 1-2 or an empty node 1.1", "Write the id without leading zeros or other signs")
_ORDER = rule("id-order", 1, "words are numbered 1, 2, 3 ...", "Renumber the words, and put a blank line between sentences")
_RANGE = rule("id-range", 1, "a range comes before its first word, and ranges do not overlap", "Correct the range, or move it")
_NODE = rule("id-empty-node", 1, "empty nodes n.1, n.2 ... follow word n", "Number the empty node after the word it follows")
_WORDS = rule("no-words", 1, "a sentence has words", "Add the words, or remove the sentence")

_BOM = b"\xef\xbb\xbf"
_CHUNK = 1 << 20
NAMES = ("ID", "FORM", "LEMMA", "UPOS", "XPOS", "FEATS", "HEAD", "DEPREL", "DEPS", "MISC")
_SPACED = ("FORM", "LEMMA", "MISC")
_ID = re.compile(r"[1-9][0-9]{0,8}(-[1-9][0-9]{0,8})?|(0|[1-9][0-9]{0,8})\.[1-9][0-9]{0,8}")
_ANY_SPACE = re.compile(r"\s")
_DOUBLED = re.compile(r"\s\s")


def raw_problems(path: Path) -> Iterator[RuleViolation]:
    """Problems that are visible only in the bytes; of each kind, only the first line is reported."""
    line = 1
    with opened(path) as stream:
        # Read in chunks of whole lines, so that no line end is split.
        while lines := stream.readlines(_CHUNK):
            if line == 1 and lines[0].startswith(_BOM):
                yield _MARK.at(1, "the file begins with a byte order mark")
            for number, text in enumerate(lines, start=line):
                if text.endswith(b"\r\n"):
                    yield _LINE_END.at(number, "the line ends in a carriage return and a line feed")
                    return
            line += len(lines)


def watched(lines: Iterable[Line], report: Callable[[RuleViolation], None]) -> Iterator[Line]:
    """Pass on the lines, and report problems of the lines and of their order."""
    comments = rows = 0  # since the last blank line: their line numbers
    for line in lines:
        if line.invalid:
            report(_UTF8.at(line.number, line.invalid))
        elif not unicodedata.is_normalized("NFC", line.text):
            report(_NFC.at(line.number, _decomposed(line.text)))
        if not line.text.strip():
            if line.text:
                report(_SPACES.at(line.number, f"the line looks blank but holds {quoted(line.text)}"))
            if not rows:
                report(_STRAY.at(line.number, "a blank line before the rows of a sentence"))
            comments = rows = 0
        elif line.text.startswith("#"):
            comments = line.number
            if rows:
                report(_COMMENT.at(line.number, f"comment {quoted(line.text)} inside a sentence"))
            if line.text[-1].isspace() and line.text[1:].partition("=")[0].strip() == "text":
                report(_TEXT_END.at(line.number, f"# text ends in {quoted(line.text[-10:])}"))
        else:
            rows = line.number
        yield line
    if rows:
        report(_LAST.at(rows, "no blank line after the last sentence"))
    elif comments:
        report(_COMMENT.at(comments, "comments without a sentence at the end of the file"))


def readable_rows(block: LineBlock, report: Callable[[RuleViolation], None]) -> list[Row]:
    """The rows that have ten columns; reports the others."""
    rows = []
    for line in block.rows:
        if line.invalid:
            continue  # reported as the line was read
        try:
            rows.append(parse_row(line))
        except Flaw as flaw:
            report(_COLUMNS.at(flaw.line, flaw.problem))
    return rows


def _decomposed(text: str) -> str:
    composed = unicodedata.normalize("NFC", text)
    place = next((i for i, (a, b) in enumerate(zip(text, composed, strict=False)) if a != b), min(len(text), len(composed)))
    around = slice(max(0, place - 10), place + 10)
    return f"{quoted(text[around])} would be written {composed[place : place + 1]!a} at character {place + 1} if it were composed"


def row_problems(row: Row) -> Iterator[RuleViolation]:
    """Problems of the columns of a row that do not depend on their meaning."""
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
    """Problems of the order of ids in a sentence."""
    word, node, last = 0, 0, 0  # numbers of the word and empty node before, and where the range before ends
    ranged = False  # a range has been opened and waits for its first word
    for row in rows:
        if not _ID.fullmatch(row.id):
            yield _FORMAT.at(row.line, f"id {quoted(row.id)} is not a number, a range or an empty node")
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
