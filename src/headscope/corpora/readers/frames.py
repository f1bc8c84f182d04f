"""Spans in the columns of CoNLL-2012: named entities, and the arguments of predicates, with one column per
predicate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headscope.core.document import Edge
from headscope.corpora.readers.chunks import TaggedSpan, bracketed_chunks
from headscope.corpora.source import Flaw, Source, quoted

_FRAMESET, _ENTITIES, _ARGUMENTS = 7, 10, 11  # columns; those of arguments continue up to the last one, which is coreference
_MISSING = ("-", "_", "")


def edges_in(source: Source, rows: Sequence[Sequence[str]], line: int) -> Iterator[Edge]:
    """The entities of a sentence, and pairs of a predicate (first) and an argument (second), counted by the words of
    the sentence.
    """
    for label, start, end in _column(source, rows, _ENTITIES, line, "named entities"):
        yield Edge("entities", (label,), (start, end))
    framed = [place for place, columns in enumerate(rows) if columns[_FRAMESET] not in _MISSING]
    if not framed and not any(cell.startswith("(V*") for columns in rows for cell in columns[_ARGUMENTS:-1]):
        return  # no predicates: other contents of these columns, as in WinoBias, are not arguments
    last = len(rows[0]) - 1
    if any(len(columns) != last + 1 for columns in rows):
        source.note("arguments of sentences skipped: rows differ in length", line)
        return
    for number in range(_ARGUMENTS, last):
        chunks = _column(source, rows, number, line, "predicates")
        predicate = _predicate(chunks, framed, number - _ARGUMENTS, last - _ARGUMENTS)
        arguments = [chunk for chunk in chunks if chunk.label != "V"]
        if arguments and predicate is None:
            source.note("predicates skipped: none of their words is marked V", line)
        elif predicate is not None:
            yield from (Edge("srl", (label,), predicate, (start, end)) for label, start, end in arguments)


def _column(source: Source, rows: Sequence[Sequence[str]], number: int, line: int, what: str) -> list[TaggedSpan]:
    cells = [columns[number] for columns in rows]
    chunks = bracketed_chunks(cells)
    if chunks is None:
        report_brackets(source, "".join(cells), line, number, what)
    return chunks or []


def report_brackets(source: Source, brackets: str, line: int, column: int, what: str) -> None:
    """Report the contents of a column of a sentence: unbalanced brackets are a fault (the file may be truncated); other
    contents are not brackets.
    """
    if brackets.count("(") == brackets.count(")"):
        source.note(f"{what} skipped: they are not written as brackets", line)
        return
    problem = f"the brackets in column {column + 1} of the sentence that begins here do not balance: {quoted(brackets)}"
    source.report(Flaw(line, "their brackets do not balance", problem, "Complete the sentence, or correct its brackets"), what)


def _predicate(chunks: Sequence[TaggedSpan], framed: Sequence[int], number: int, columns: int) -> tuple[int, int] | None:
    """The words marked V; without a mark, the next word with a frameset."""
    for chunk in chunks:
        if chunk.label == "V":
            return chunk.start, chunk.end
    return (framed[number], framed[number] + 1) if len(framed) == columns else None
