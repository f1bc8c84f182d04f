"""Level 1, lines: how a file is put together out of comments, rows and blank lines."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from headscope.corpora.checks.rules import RuleViolation, rule
from headscope.corpora.files import Line, opened
from headscope.corpora.readers.blocks import LineBlock
from headscope.corpora.readers.conllu_rows import Row, parse_row
from headscope.corpora.source import Flaw, quoted

FILE = rule("unreadable-file", 1, "the file can be read and holds something", "Copy or download the file again")
FORMAT = rule("not-conllu", 1, "a file has rows of ten columns", "Name a CoNLL-U or CoNLL-2012 file; other formats have no validator")
PARTS = rule("conll2012", 1, "the documents of a CoNLL-2012 file are complete and can be read", "Correct the document, or copy it again")
_MARK = rule("byte-order-mark", 1, "a file begins with its first comment or row", "Save the file as UTF-8 without a byte order mark")
_LINE_END = rule("line-end", 1, "lines end in a line feed alone", "Save the file with Unix line ends")
_UTF8 = rule("utf8", 1, "all bytes are UTF-8", "Save the file as UTF-8")
_NFC = rule("unicode-nfc", 1, "characters are composed (Unicode NFC)", "Normalise the file to NFC")
_STRAY = rule("stray-blank-line", 1, "one blank line follows a sentence, and none stands elsewhere", "Take the blank line out")
_SPACES = rule("blank-line-spaces", 1, "blank lines are empty", "Take the white space out")
_LAST = rule("final-blank-line", 1, "a blank line follows the last sentence too", "End the file with a blank line")
_COMMENT = rule("comment-place", 1, "comments stand before the rows of a sentence", "Move the comment up before the rows")
_TEXT_END = rule("text-end", 2, "# text does not end in white space", "Cut the end of the comment")
_COLUMNS = rule("columns", 1, "a row has ten columns", "Separate ten columns by tabs")

_BOM = b"\xef\xbb\xbf"
_CHUNK = 1 << 20


def raw_problems(path: Path) -> Iterator[RuleViolation]:
    """What only the bytes tell; the first line of its kind stands for all."""
    line = 1
    with opened(path) as stream:
        # Read by lines, a chunk of them at a time, so that no line end is cut in two.
        while lines := stream.readlines(_CHUNK):
            if line == 1 and lines[0].startswith(_BOM):
                yield _MARK.at(1, "the file begins with a byte order mark")
            for number, text in enumerate(lines, start=line):
                if text.endswith(b"\r\n"):
                    yield _LINE_END.at(number, "the line ends in a carriage return and a line feed")
                    return
            line += len(lines)


def watched(lines: Iterable[Line], report: Callable[[RuleViolation], None]) -> Iterator[Line]:
    """The same lines; reports what is wrong with them and with their order on the way."""
    comments = rows = 0  # since the last blank line; numbers of the latest
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
