"""Tables of texts and their classes, such as GLUE's: comma-separated with quotes, or tab-separated without quotes."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from headscope.core.document import Document
from headscope.corpora.files import Line
from headscope.corpora.readers.fields import NAMES, NO_CLASS, label_field, sentences_of, text_fields
from headscope.corpora.readers.metadata import of_entry
from headscope.corpora.source import Flaw, Source, natural, quoted, sound
from headscope.errors import HeadscopeError

_PARTED = {
    ",": 'Separate the columns by commas, and put text that contains commas between quotes: "…"',
    "\t": "Separate the columns by tabs",
}
Row = tuple[int, list[str]]  # the number of its first line, and its cells


def read_table(source: Source, separator: str) -> Iterator[Document]:
    """A document for each row: a text or the two of a pair, in columns that the first row names as `fields` does,
    and its class.
    """
    header: Sequence[str] | None = None
    for line, cells in _rows(source, separator):
        try:
            if header is None:
                cells = _renamed(cells, source.columns, line)
                header = _header(line, cells, separator)
                if text_fields(cells):
                    continue
            if len(cells) != len(header):
                problem = f"{len(cells)} columns where there should be {len(header)} in {quoted(separator.join(cells))}"
                raise Flaw(line, "wrong number of columns", problem, _PARTED[separator])
            document = _document(dict(zip(header, cells, strict=True)), line, source.name)
        except Flaw as flaw:
            source.report(flaw, "rows")
            if header is None:
                return
            continue
        yield document


def holds_pairs(path: Path, columns: Mapping[str, str], separator: str) -> bool:
    """Whether the rows of a file are pairs of texts; False if the file is invalid, which reading will report."""
    try:
        with closing(Source(path)) as source:
            for line, cells in _rows(source, separator):
                return len(text_fields(_header(line, _renamed(cells, columns, line), separator))) == 2
    except (HeadscopeError, Flaw):
        pass
    return False


def _rows(source: Source, separator: str) -> Iterator[Row]:
    """The rows that are not blank. A cell between quotes may hold line ends, so that a row may be several lines."""
    taken: list[Line] = []

    def texts() -> Iterator[str]:
        for line in source.lines():
            taken.append(line)
            yield f"{line.text}\n"

    reader = csv.reader(texts(), delimiter=separator, quoting=csv.QUOTE_MINIMAL if separator == "," else csv.QUOTE_NONE, strict=True)
    begun = False
    while True:
        taken.clear()
        try:
            try:
                cells = next(reader, None)
            except csv.Error as error:
                raise _not_a_row(error, taken, separator) from None
            if cells is None:
                return
            for line in taken:
                sound(line)
        except Flaw as flaw:
            source.report(flaw, "rows")
            if not begun:  # without a header no row can be read
                return
            continue
        if any(cell.strip() for cell in cells):
            begun = True
            yield taken[0].number, cells


def _not_a_row(error: csv.Error, lines: Sequence[Line], separator: str) -> Flaw:
    first, last = lines[0], lines[-1]
    if "field larger" not in str(error):
        problem = f"this cannot be read as a row ({error}): {quoted(first.text)}"
        return Flaw(first.number, "not a row", problem, "Close every quote, and double quotes inside a quoted text, or use JSON lines")
    problem = f"a field has more than {csv.field_size_limit():,} characters: {quoted(first.text)}"
    if last.number > first.number:  # a field that spans lines is between quotes
        problem = f"{problem} up to line {last.number}, most often because a quote is not closed"
        return Flaw(first.number, "field too long", problem, "Close the quote, or use JSON lines if the text really has this length")
    remedy = "Use JSON lines for texts of this length"
    return Flaw(first.number, "field too long", problem, remedy if separator == "\t" else f"Check its quotes. {remedy}")


def _renamed(cells: list[str], columns: Mapping[str, str], line: int) -> list[str]:
    """The first row with columns renamed to fields. Any other column that has the name of such a field loses it."""
    if missing := [name for name in columns.values() if name not in cells]:
        raise Flaw(line, "missing column", f"there is no column {missing[0]!r}: {quoted(cells, 200)}", "Name one of these")
    names = {column: name for name, column in columns.items()}
    return [names.get(cell, "" if cell in columns else cell) for cell in cells]


def _header(line: int, cells: list[str], separator: str) -> Sequence[str]:
    """The names of the columns: from the first row or, for files of SST-2 and CoLA without a header, from its
    contents.
    """
    if fields := text_fields(cells):
        label = label_field(cells)
        for name in (*fields, *([label] if label else []), *(["id"] if "id" in cells else [])):
            if cells.count(name) > 1:
                problem = f"the first row names {cells.count(name)} columns {name!r}: {quoted(cells, 120)}"
                raise Flaw(line, "no header", problem, "Name each column once")
        return cells
    if separator == "\t" and len(cells) == 2 and natural(cells[1]) is not None:
        return "sentence", "label"
    if separator == "\t" and len(cells) == 4 and cells[1] in ("0", "1"):
        return "source", "label", "mark", "sentence"
    problem = f"the first row names no column with a text: {quoted(cells, 120)}"
    raise Flaw(line, "no header", problem, f"Name the columns in the first row: {NAMES}; and label, id if there are any")


def _document(row: dict[str, str], line: int, name: str) -> Document:
    fields = text_fields(row)
    for field in fields:
        if not row[field].strip():
            raise Flaw(line, "empty text", f"`{field}` is empty: {quoted(row[field])}", "Fill it in")
    field = label_field(row) or ""
    label = row.get(field, "").strip()
    known = label and label != NO_CLASS.get(field)
    id = row.get("id", "").strip() or f"{name}#{line}"
    used = (*fields, "id", field)
    metadata = of_entry({column: cell.strip() for column, cell in row.items() if column and cell.strip()}, used, line)
    return Document(id, sentences_of({field: row[field] for field in fields}), label=label if known else None, metadata=metadata)
