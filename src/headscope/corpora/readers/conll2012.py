"""CoNLL-2012, twelve columns or more: words, tags, parse bits, speakers, entities, arguments and, in the last column,
coreference.

https://conll.cemantix.org/2012/data.html. Each part is a document. Chains of one mention are kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from headscope.core.document import Document, Sentence, Word
from headscope.corpora.files import Line
from headscope.corpora.readers.blocks import LineBlock, blocks
from headscope.corpora.readers.brackets import Schema
from headscope.corpora.readers.draft import Anchor, Draft
from headscope.corpora.readers.frames import edges_in, report_brackets
from headscope.corpora.source import Flaw, Source, natural, quoted, sound

_COLUMNS = 12
_MISSING = frozenset({"-", "_", ""})  # LitBank and others write _ where the shared task wrote -
_SCHEMA = Schema(fields=1, type=None)


class _Row(NamedTuple):
    line: int
    columns: list[str]


def read_conll2012(source: Source) -> Iterator[Document]:
    """The document parts of a CoNLL-2012 file, each named `id/part`."""
    draft: Draft | None = None
    began = 0
    for block in _sentences(source):
        for comment in block.comments:
            if comment.text.startswith(("begin document", "end document")):
                begins = comment.text.startswith("begin")
                if draft and (document := _finished(source, draft, began, ended=not begins)):
                    yield document
                draft = Draft(source, _document_id(comment.text)) if begins else None
                began = comment.line
        if block.rows:
            _add(source, draft, block.rows)
    if draft and (document := _finished(source, draft, began, ended=False)):
        yield document


def _finished(source: Source, draft: Draft, began: int, ended: bool) -> Document | None:
    """The document, if it has sentences and was `ended`: without #end document, the file may be truncated."""
    if not ended:
        problem = f"the document {quoted(draft.id)} that begins here has no #end document line, so part of it may be missing"
        remedy = "Copy or download the file again, or add the line if the document is complete"
        source.report(Flaw(began, "no #end document line", problem, remedy), "documents")
        return None
    return draft.finish() if draft.started else None


def _sentences(source: Source) -> Iterator[LineBlock]:
    """Blocks as `blocks` gives them, cut at #begin and #end lines too: real files have no blank line there."""
    for block in blocks(source.lines()):
        while block.rows and block.comments and block.comments[-1].line > block.rows[0].number:
            cut = next(comment.line for comment in block.comments if comment.line > block.rows[0].number)
            yield LineBlock([c for c in block.comments if c.line < cut], [row for row in block.rows if row.number < cut])
            block = LineBlock([c for c in block.comments if c.line >= cut], [row for row in block.rows if row.number >= cut])
        yield block


def _document_id(begin: str) -> str:
    """`id/part` of `begin document (id); part 000`, without a regular expression, which would take very long on many
    spaces.
    """
    whole = begin.removeprefix("begin document").strip()
    name, mark, rest = whole.rpartition(";")
    part = rest.split()
    if not mark or len(part) != 2 or part[0] != "part":
        name, part = whole, []
    name = name.strip()
    name = (name[1:-1] if name.startswith("(") and name.endswith(")") else name) or "document"
    return f"{name}/{part[1]}" if part else name


def _add(source: Source, draft: Draft | None, lines: list[Line]) -> None:
    try:
        if draft is None:
            raise Flaw(lines[0].number, "outside a document", "words outside a document", "Add a line #begin document (id); part 000")
        rows = [_row(line, position) for position, line in enumerate(lines)]
    except Flaw as flaw:
        source.report(flaw)
        if draft:
            draft.lose(_stray_anchors(lines), _SCHEMA)
        return
    words = tuple(Word(row.columns[3], lemma=_given(row.columns[6]), xpos=_given(row.columns[4])) for row in rows)
    sentence = Sentence(words, speaker=_given(rows[0].columns[9]), parse=_parse(source, rows))
    draft.add(sentence, _anchors(rows), _SCHEMA, edges_in(source, [row.columns for row in rows], rows[0].line))


def _split(text: str) -> list[str]:
    # Not str.split() for either: words can hold a no-break space.
    return text.split("\t") if "\t" in text else [column for column in text.split(" ") if column]


def _row(line: Line, position: int) -> _Row:
    columns = _split(sound(line))
    if len(columns) < _COLUMNS:
        problem = f"{len(columns)} columns where at least {_COLUMNS} are needed in {quoted(line.text)}"
        raise Flaw(
            line.number, "wrong number of columns", problem, "Complete the columns, or name the format of the file with --corpus-format"
        )
    if natural(columns[2]) != position:
        remedy = "Number the words 0, 1, 2 ... and put a blank line between sentences"
        raise Flaw(line.number, "bad id", f"id {quoted(columns[2])} where word {position} is expected", remedy)
    if not columns[3].strip():
        problem = f"word {position} has an empty form {quoted(columns[3])}"
        raise Flaw(line.number, "empty form", problem, "Write the word into the fourth column")
    return _Row(line.number, columns)


def _anchors(rows: list[_Row]) -> Iterator[Anchor]:
    for position, row in enumerate(rows):
        if row.columns[-1] not in {*_MISSING, "*"}:
            for value in row.columns[-1].split("|"):
                yield Anchor(position, position + 1, value, row.line)


def _stray_anchors(lines: list[Line]) -> Iterator[Anchor]:
    rows = (_Row(line.number, _split(line.text)) for line in lines if not line.invalid)
    return _anchors([row for row in rows if len(row.columns) >= _COLUMNS])


def _parse(source: Source, rows: list[_Row]) -> str | None:
    """The bracketed tree that the parse bits of a sentence make up, its parentheses in words escaped as the Penn
    Treebank does.
    """
    bits = [row.columns[5] for row in rows]
    if all(bit in _MISSING or bit == "*" for bit in bits):
        return None
    joined = "".join(bits)
    if any(bit.count("*") != 1 for bit in bits) or joined.count("(") != joined.count(")"):
        report_brackets(source, joined, rows[0].line, 5, "parses")
        return None
    leaves = (f" ({_escaped(_given(row.columns[4]) or 'XX')} {_escaped(row.columns[3])})" for row in rows)
    tree = "".join(bit.replace("(", " (").replace("*", leaf) for bit, leaf in zip(bits, leaves, strict=True))
    return tree.strip()


def _escaped(text: str) -> str:
    return text.replace("(", "-LRB-").replace(")", "-RRB-")


def _given(value: str) -> str | None:
    return None if value in _MISSING else value
