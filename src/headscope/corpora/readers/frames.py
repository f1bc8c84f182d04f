"""What the columns of CoNLL-2012 say of spans: named entities, and the arguments of each predicate in a column of
its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from headscope.core.document import Edge
from headscope.corpora.readers.chunks import TaggedSpan, bracketed_chunks
from headscope.corpora.source import Flaw, Source, quoted

_FRAMESET, _ENTITIES, _ARGUMENTS = 7, 10, 11  # columns; those of arguments go on up to the last, which is coreference
_MISSING = ("-", "_", "")


def edges_in(source: Source, rows: Sequence[Sequence[str]], line: int) -> Iterator[Edge]:
    """Entities, and arguments (second) of predicates (first), of a sentence that begins on a line, by its own words."""
    for label, start, end in _column(source, rows, _ENTITIES, line, "named entities"):
        yield Edge("entities", (label,), (start, end))
    framed = [place for place, columns in enumerate(rows) if columns[_FRAMESET] not in _MISSING]
    if not framed and not any(cell.startswith("(V*") for columns in rows for cell in columns[_ARGUMENTS:-1]):
        return  # no predicates: whatever stands in these columns, as it does in WinoBias, is no argument
    last = len(rows[0]) - 1
    if any(len(columns) != last + 1 for columns in rows):
        source.note("sentences whose arguments are left out: their rows are not of the same length", line)
        return
    for number in range(_ARGUMENTS, last):
        chunks = _column(source, rows, number, line, "predicates")
        predicate = _predicate(chunks, framed, number - _ARGUMENTS, last - _ARGUMENTS)
        arguments = [chunk for chunk in chunks if chunk.label != "V"]
        if arguments and predicate is None:
            source.note("predicates left out: no word of theirs is marked V", line)
        elif predicate is not None:
            yield from (Edge("srl", (label,), predicate, (start, end)) for label, start, end in arguments)


def _column(source: Source, rows: Sequence[Sequence[str]], number: int, line: int, what: str) -> list[TaggedSpan]:
    cells = [columns[number] for columns in rows]
    chunks = bracketed_chunks(cells)
    if chunks is None:
        report_brackets(source, "".join(cells), line, number, what)
    return chunks or []


def report_brackets(source: Source, brackets: str, line: int, column: int, what: str) -> None:
    """Report what a column of a sentence holds: unequal brackets are a fault, as where a file was cut; anything else
    is no brackets.
    """
    if brackets.count("(") == brackets.count(")"):
        source.note(f"{what} left out: they are not written as brackets", line)
        return
    problem = f"the brackets in column {column + 1} of the sentence that begins here do not balance: {quoted(brackets)}"
    source.report(Flaw(line, "their brackets do not balance", problem, "Complete the sentence, or correct its brackets"), what)


def _predicate(chunks: Sequence[TaggedSpan], framed: Sequence[int], number: int, columns: int) -> tuple[int, int] | None:
    """The words marked V, or else the word with a frameset whose turn it is."""
    for chunk in chunks:
        if chunk.label == "V":
            return chunk.start, chunk.end
    return (framed[number], framed[number] + 1) if len(framed) == columns else None
