"""GAP, ambiguous pronouns: https://github.com/google-research-datasets/gap-coreference.

Each line of a table is a document with three mentions: a pronoun and two names A and B, one of which it may refer to.
"""

from __future__ import annotations

from collections.abc import Iterator

from headscope.core.document import Document, Mention
from headscope.corpora.files import Line
from headscope.corpora.readers.tokenise import Span, sentences, word_spans
from headscope.corpora.source import Flaw, Source, natural, quoted, sound

_COLUMNS = ("Text", "Pronoun", "Pronoun-offset", "A", "A-offset", "A-coref", "B", "B-offset", "B-coref")
_TRUTH = {"TRUE": True, "FALSE": False}


def read_gap(source: Source) -> Iterator[Document]:
    """A document for each line. The pronoun has the entity of the name that it refers to, or a separate entity if it
    refers to neither.
    """
    header: list[str] | None = None
    for line in source.lines():
        try:
            if header is None:
                header = _header(line)
                continue
            if line.text.strip():
                yield _document(source, dict(zip(header, _columns(line, len(header)), strict=True)), line.number)
        except Flaw as flaw:
            source.report(flaw, "lines")
            if header is None:
                return


def _header(line: Line) -> list[str]:
    names = sound(line).split("\t")
    for needed in _COLUMNS:
        if names.count(needed) != 1:
            problem = f"the first line names {names.count(needed)} columns {needed!r}: {quoted(line.text)}"
            raise Flaw(line.number, "no header", problem, f"Name the columns {', '.join(_COLUMNS)}, or another --corpus-format")
    return names


def _columns(line: Line, size: int) -> list[str]:
    columns = sound(line).split("\t")
    if len(columns) != size:
        problem = f"{len(columns)} columns where the header names {size} in {quoted(line.text)}"
        raise Flaw(line.number, "wrong number of columns", problem, "Separate the columns by tabs")
    return columns


def _document(source: Source, row: dict[str, str], line: int) -> Document:
    text = row["Text"]
    places = {name: _place(text, row[name], row[f"{name}-offset"], name, line) for name in ("Pronoun", "A", "B")}
    spans = word_spans(text, {edge for place in places.values() for edge in place})
    right = [name for name in ("A", "B") if _truth(row[f"{name}-coref"], name, line)]
    if len(right) > 1:
        raise Flaw(line, "two answers", "A-coref and B-coref are both TRUE", "Mark at most one name as TRUE")
    mentions = []
    for name, place in places.items():
        start, end = _words(spans, place)
        mentions.append(Mention("".join(right) or name if name == "Pronoun" else name, start, end, "person"))
    mentions.sort(key=lambda mention: (mention.start, mention.end, mention.entity))
    return Document(row.get("ID") or f"{source.name}#{line}", tuple(sentences(text, spans)), tuple(mentions))


def _place(text: str, form: str, offset: str, name: str, line: int) -> Span:
    start = natural(offset)
    if start is None:
        raise Flaw(line, "offset is not a number", f"{name}-offset is {quoted(offset)}", "Count characters from 0")
    found = text[start : start + len(form)]
    if found != form or not any(map(str.isalnum, form)) or form != form.strip():
        problem = f"{name} is {quoted(form)}, but at {name}-offset {start} the text has {quoted(found)}"
        raise Flaw(line, "wrong offset", problem, "Correct the offset, counted in characters from 0")
    return Span(start, start + len(form))


def _truth(value: str, name: str, line: int) -> bool:
    if value.upper() not in _TRUTH:
        raise Flaw(line, "neither TRUE nor FALSE", f"{name}-coref is {quoted(value)}", "Write TRUE or FALSE")
    return _TRUTH[value.upper()]


def _words(spans: list[Span], place: Span) -> tuple[int, int]:
    """The words [start, end) that cover a place in the text; words are split at its edges."""
    inside = [number for number, span in enumerate(spans) if place.start <= span.start and span.end <= place.end]
    return inside[0], inside[-1] + 1
